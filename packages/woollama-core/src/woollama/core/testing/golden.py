"""Golden exchanges: recorded requests and replies that a dialect must reproduce.

One directory a case: ``case.json`` (title, kind, directions, server settings, the reply's status,
headers and content type, the rules it covers), the canonical and the wire form of the request, and
the reply's bytes with what they must decode to. The string ``"<any>"`` in an expected file stands
for any value that is not null.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from woollama.core.canonical import (
    Assembly,
    ChatRequest,
    Delta,
    Finish,
    Params,
    ReasoningDelta,
    RefusalDelta,
    Start,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
    request_from_openai,
    usage_to_openai,
)
from woollama.core.errors import InferenceError
from woollama.core.wire.codec import Dialect, WireSettings

__all__ = [
    "FEEDINGS",
    "Case",
    "Feeding",
    "canonical_error",
    "canonical_events",
    "check_case",
    "load_cases",
    "matches",
]

Feeding = Literal["whole", "bytes", "chunks"]
FEEDINGS: tuple[Feeding, ...] = ("whole", "bytes", "chunks")
"""The three ways to feed a reply: at once, byte by byte, in the reads the case names."""

_NOW = 1_750_000_000.0
_BASE_URL = "http://peer.test/v1"


class Case(msgspec.Struct, frozen=True):
    """One golden exchange.

    Attributes:
        path: its directory.
        title: what it shows.
        dialect: the dialect's name.
        kind: ``exchange``, ``stream``, ``error`` or ``refuse``.
        directions: what is checked: ``encode_request``, ``decode_request``, ``decode_response``,
            ``decode_stream``.
        server: settings that differ from the defaults.
        http: status, headers and content type of the reply.
        covers: the rules it stands for.
        chunks: sizes of the first reads.
    """

    title: str
    dialect: str
    kind: str
    directions: tuple[str, ...]
    server: dict[str, Any] = {}
    http: dict[str, Any] = {}
    covers: tuple[str, ...] = ()
    chunks: tuple[int, ...] = ()
    path: Path = Path()

    def json(self, name: str) -> Any:
        """A JSON file of the case."""
        return json.loads((self.path / name).read_text())

    def has(self, name: str) -> bool:
        """Whether the case has this file."""
        return (self.path / name).exists()

    @property
    def body(self) -> bytes:
        """The reply's bytes."""
        for name in ("wire_stream.txt", "wire_response.txt", "wire_response.json"):
            if self.has(name):
                return (self.path / name).read_bytes()
        raise AssertionError(f"{self.path} has no reply.")


def load_cases(folder: Path) -> tuple[Case, ...]:
    """The cases under ``folder``, by name."""
    found: list[Case] = []
    for file in sorted(folder.glob("*/case.json")):
        case = msgspec.json.decode(file.read_bytes(), type=Case)
        found.append(msgspec.structs.replace(case, path=file.parent))
    return tuple(found)


def check_case(dialect: Dialect, case: Case, feeding: Feeding = "whole") -> None:
    """Run one case in all its directions.

    Args:
        dialect: the one under test.
        case: whose ``dialect`` names it.
        feeding: how the reply is cut.

    Raises:
        AssertionError: what came is not what the case says.
    """
    for direction in case.directions:
        match direction:
            case "encode_request":
                _check_encode(dialect, case)
            case "decode_request":
                _check_decode_request(dialect, case)
            case _:
                _check_reply(dialect, case, feeding)


def _request(case: Case) -> ChatRequest:
    return request_from_openai(case.json("canonical_request.json"))


def _check_encode(dialect: Dialect, case: Case) -> None:
    request = _request(case)
    settings = msgspec.convert(case.server, WireSettings)
    try:
        wire = dialect.codec.encode(
            request, base_url=_BASE_URL, stream=request.stream, settings=settings
        )
    except InferenceError as error:
        if case.kind != "refuse":
            raise
        _same(case.json("canonical_error.json"), canonical_error(error))
        return
    assert case.kind != "refuse", f"encoded instead of refused: {wire.body!r}"
    _same(case.json("wire_request.json"), json.loads(wire.body))


def _check_decode_request(dialect: Dialect, case: Case) -> None:
    decoded = dialect.codec.decode_request(case.json("wire_request.json"))
    _same_value(_comparable(_request(case)), _comparable(decoded))


def _comparable(request: ChatRequest) -> Any:
    params = msgspec.structs.replace(request.params, stream_options=None)
    assert isinstance(params, Params)
    return msgspec.to_builtins(msgspec.structs.replace(request, params=params, stream=False))


def _check_reply(dialect: Dialect, case: Case, feeding: Feeding) -> None:
    status = case.http["status"]
    headers = {key.lower(): value for key, value in case.http.get("headers", {}).items()}
    if status >= 400:
        error = dialect.codec.decode_error(status, headers, case.body, now=lambda: _NOW)
        _same(case.json("canonical_error.json"), canonical_error(error))
        return
    deltas, failure = decode(dialect, case, feeding)
    if failure is not None:
        assert case.has("canonical_error.json"), f"failed: {failure!r}"
        _same(case.json("canonical_error.json"), canonical_error(failure))
    else:
        assert case.has("canonical_response.json"), "decoded instead of failed"
        assembly = Assembly()
        for delta in deltas:
            assembly.add(delta)
        reply = assembly.reply().to_openai()
        _same(case.json("canonical_response.json"), reply)
    if case.has("canonical_events.json"):
        events = list(canonical_events(deltas, failure))
        _same(_with_made_id(case.json("canonical_events.json")), events)


def _with_made_id(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Where the server has no id the golden files say null, and a decoder makes one.
    return [
        {**event, "id": "<any>"} if event["type"] == "start" and event["id"] is None else event
        for event in events
    ]


def decode(
    dialect: Dialect, case: Case, feeding: Feeding
) -> tuple[list[Delta], InferenceError | None]:
    """The deltas of the case's reply, and the error they end in."""
    counter = itertools.count(1)
    decoder = dialect.codec.decoder(new_id=lambda: f"made{next(counter)}", now=lambda: _NOW)
    deltas: list[Delta] = []
    try:
        for chunk in _chunks(case, feeding):
            deltas.extend(decoder.feed(chunk))
            if decoder.done:
                break
        deltas.extend(decoder.finish())
    except InferenceError as error:
        return deltas, error
    return deltas, None


def _chunks(case: Case, feeding: Feeding) -> Iterator[bytes]:
    body = case.body
    match feeding:
        case "whole":
            yield body
        case "bytes":
            yield from (body[i : i + 1] for i in range(len(body)))
        case "chunks":
            at = 0
            for size in case.chunks:
                yield body[at : at + size]
                at += size
            yield body[at:]


def canonical_error(error: InferenceError) -> dict[str, Any]:
    """An error in the words of the golden files."""
    return {
        "kind": error.kind,
        "status": error.peer_status,
        "code": error.code,
        "type": error.native_type,
        "param": error.param,
        "message": error.message,
        "retryable": error.retryable,
        "retry_after": error.retry_after,
        "request_id": error.request_id,
    }


def canonical_events(
    deltas: Iterable[Delta], failure: InferenceError | None = None
) -> Iterator[dict[str, Any]]:
    """Deltas in the words of the golden files, neighbours joined."""
    last: dict[str, Any] = {}
    for event in _events(deltas):
        same = event["type"] == last.get("type") and event.get("index") == last.get("index")
        if same and "delta" in event:
            last["delta"] += event["delta"]
            continue
        if last:
            yield last
        last = event
    if last:
        yield last
    if failure is not None:
        yield {"type": "error", "error": canonical_error(failure)}


def _events(deltas: Iterable[Delta]) -> Iterator[dict[str, Any]]:
    usage = None
    for delta in deltas:
        match delta:
            case Start():
                yield {"type": "start", "id": delta.id, "model": delta.model}
            case TextDelta():
                yield {"type": "content", "delta": delta.text}
            case ReasoningDelta():
                yield {"type": "reasoning", "delta": delta.text}
            case RefusalDelta():
                yield {"type": "refusal", "delta": delta.text}
            case ToolCallDelta():
                if delta.id is not None or delta.name is not None:
                    named = {"id": delta.id, "name": delta.name}
                    yield {"type": "tool_call", "index": delta.index, **named}
                if delta.arguments:
                    arguments = {"index": delta.index, "delta": delta.arguments}
                    yield {"type": "tool_arguments", **arguments}
            case UsageDelta():
                usage = usage_to_openai(delta.usage)
            case Finish():
                reasons = {
                    "finish_reason": delta.reason,
                    "native_finish_reason": delta.native,
                }
                yield {"type": "finish", **reasons, "usage": usage}
            case _:
                continue


def _same(expected: Any, actual: Any) -> None:
    assert matches(expected, actual), f"\nexpected {expected}\nactual   {actual}"


def _same_value(expected: Any, actual: Any) -> None:
    assert expected == actual, f"\nexpected {expected}\nactual   {actual}"


def matches(expected: Any, actual: Any) -> bool:
    """Whether ``actual`` is what the golden file says, ``"<any>"`` standing for anything set."""
    if expected == "<any>":
        return actual is not None
    if isinstance(expected, dict) and isinstance(actual, dict):
        wanted, got = cast("dict[str, Any]", expected), cast("dict[str, Any]", actual)
        same_keys = wanted.keys() == got.keys()
        return same_keys and all(matches(wanted[key], got[key]) for key in wanted)
    if isinstance(expected, list) and isinstance(actual, list):
        items, found = cast("list[Any]", expected), cast("list[Any]", actual)
        same_length = len(items) == len(found)
        return same_length and all(map(matches, items, found))
    return expected == actual and isinstance(expected, bool) is isinstance(actual, bool)
