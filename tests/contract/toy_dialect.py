"""A dialect in one file: its codec, and a strict server that speaks it.

A request is a Chat Completions body in other words; a reply is one JSON line for each delta.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from woollama.core.canonical import (
    ChatRequest,
    Delta,
    Finish,
    Reply,
    deltas_of,
    message_to_openai,
    request_from_openai,
    tool_to_openai,
)
from woollama.core.errors import ProviderError, ReplyError, TruncatedReply
from woollama.core.testing.fake import Fake, FakeReply, FakeRequest, json_reply, pieces
from woollama.core.wire import Decoder, Dialect, Header, ModelInfo, WireRequest, WireSettings
from woollama.core.wire.codec import JSON_HEADERS
from woollama.core.wire.faults import payload_error, reply_error
from woollama.core.wire.framing import ReplyDecoder, parse
from woollama.core.wire.ndjson import LineSplitter
from woollama.core.wire.refusals import unspoken

_SPOKEN = frozenset({"max_tokens", "response_format"})
_delta_decoder = msgspec.json.Decoder(Delta)
_encoder = msgspec.json.Encoder()


class ToyCodec:
    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        dropped = unspoken(request, "toy", _SPOKEN, settings.drop_params)
        asked = request.params.asked()
        body = {
            "name": request.model,
            "talk": [message_to_openai(message) for message in request.messages],
            "tools": [tool_to_openai(tool) for tool in request.tools],
            "piecewise": stream,
            **{name: asked[name] for name in _SPOKEN & asked.keys()},
        }
        return WireRequest(
            method="POST",
            url=f"{base_url}/talk",
            headers=JSON_HEADERS,
            body=_encoder.encode({**settings.extra_body, **body, **request.extra_body}),
            dropped=dropped,
        )

    def decode_request(self, body: Mapping[str, Any]) -> ChatRequest:
        words = {"name": "model", "talk": "messages", "piecewise": "stream"}
        return request_from_openai({words.get(key, key): body[key] for key in body})

    def decoder(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> Decoder:
        return ReplyDecoder(ToyReading(), LineSplitter(), objects=False)

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes, *, now: Callable[[], float]
    ) -> ProviderError:
        return reply_error(status, headers, body, now)

    def models_request(self, base_url: str) -> WireRequest:
        return WireRequest(method="GET", url=f"{base_url}/names")

    def decode_models(self, body: bytes) -> tuple[ModelInfo, ...]:
        return tuple(ModelInfo(id=name) for name in parse(body))


class ToyReading:
    def __init__(self) -> None:
        self._ended = False

    def whole(self, payload: Any, out: list[Delta]) -> None:
        raise ReplyError("A toy never answers with one object.", payload=payload)

    def event(self, data: bytes, out: list[Delta]) -> bool:
        payload = parse(data)
        if isinstance(payload, dict) and "error" in payload:
            raise payload_error(cast("dict[str, Any]", payload))
        try:
            delta = _delta_decoder.decode(data)
        except msgspec.ValidationError as error:
            raise ReplyError("A line is no delta.", payload=payload) from error
        out.append(delta)
        self._ended = isinstance(delta, Finish)
        return self._ended

    def end(self, out: list[Delta]) -> None:
        if not self._ended:
            raise TruncatedReply("stream ended before its finish")


TOY = Dialect(name="toy", family="openai", codec=ToyCodec(), key_place=Header(name="x-toy-key"))


class ToyFake(Fake):
    def refuse(self, request: FakeRequest) -> FakeReply | None:
        key = request.headers.get("x-toy-key")
        if key is None or (self._key is not None and key != self._key):
            return self.error(401, "wrong key")
        if request.path not in {"/v1/talk", "/v1/names"}:
            return self.error(404, "no such path")
        return None

    def models(self, request: FakeRequest) -> FakeReply:
        return json_reply(200, ["m"])

    def render(self, reply: Reply, body: Mapping[str, Any]) -> FakeReply:
        start, *rest = deltas_of(reply)
        deltas = [msgspec.structs.replace(start, model=body["name"]), *rest]
        lines = [line for delta in deltas for line in _lines(delta, piecewise=body["piecewise"])]
        headers = {"content-type": "application/x-ndjson"}
        return FakeReply(headers=headers, chunks=tuple(lines))

    def error(self, status: int, message: str, **fields: Any) -> FakeReply:
        return json_reply(status, {"error": {"message": message, **fields}})


def _lines(delta: Delta, *, piecewise: bool) -> list[bytes]:
    text = getattr(delta, "text", None)
    if not piecewise or not isinstance(text, str):
        return [_encoder.encode(delta) + b"\n"]
    made = [msgspec.structs.replace(delta, text=piece) for piece in pieces(text)]
    return [_encoder.encode(piece) + b"\n" for piece in made]
