"""The contract suite finds what it is there to find: each fault breaks the check of its name."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.contract.toy_dialect import TOY, ToyCodec, ToyFake, ToyReading
from woollama.core.canonical import (
    ChatRequest,
    Delta,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
    UserMessage,
    text_of,
)
from woollama.core.errors import ProviderError
from woollama.core.testing.dialect_contract import BEHAVIOURS
from woollama.core.testing.kits import DialectKit
from woollama.core.wire import Bearer, Decoder, Dialect, NoKey, WireRequest, WireSettings
from woollama.core.wire.framing import ReplyDecoder
from woollama.core.wire.ndjson import LineSplitter


class BrokenReading(ToyReading):
    """Changes or leaves out some deltas."""

    def change(self, delta: Delta) -> Delta | None:
        return delta

    def event(self, data: bytes, out: list[Delta]) -> bool:
        found: list[Delta] = []
        ended = super().event(data, found)
        out.extend(kept for kept in map(self.change, found) if kept is not None)
        return ended


class BrokenCodec(ToyCodec):
    reading: type[ToyReading] = ToyReading

    def decoder(self, *, new_id: Any, now: Any) -> Decoder:
        return ReplyDecoder(self.reading(), LineSplitter(), objects=False)


class LosesText(BrokenReading):
    def change(self, delta: Delta) -> Delta | None:
        return None if isinstance(delta, TextDelta) and "dry" in delta.text else delta


class MixesCalls(BrokenReading):
    def change(self, delta: Delta) -> Delta | None:
        if isinstance(delta, ToolCallDelta):
            return ToolCallDelta(0, delta.id, delta.name, delta.arguments)
        return delta


class TellsThoughts(BrokenReading):
    def change(self, delta: Delta) -> Delta | None:
        return TextDelta(delta.text) if isinstance(delta, ReasoningDelta) else delta


class CountsWrong(BrokenReading):
    def change(self, delta: Delta) -> Delta | None:
        if isinstance(delta, UsageDelta):
            return UsageDelta(Usage(prompt_tokens=1, completion_tokens=1, total_tokens=2))
        return delta


class NeverEndsBadly(BrokenReading):
    def end(self, out: list[Delta]) -> None:
        if not self._ended:
            out.append(Finish("stop"))


class ForgetsTheEnd(BrokenReading):
    def change(self, delta: Delta) -> Delta | None:
        return Finish("stop") if isinstance(delta, Finish) else delta


class LosesImages(ToyCodec):
    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        messages = tuple(
            msgspec.structs.replace(message, content=text_of(message.content))
            if isinstance(message, UserMessage)
            else message
            for message in request.messages
        )
        request = msgspec.structs.replace(request, messages=messages)
        return super().encode(request, base_url=base_url, stream=stream, settings=settings)


class LosesTools(ToyCodec):
    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        request = msgspec.structs.replace(request, tools=())
        return super().encode(request, base_url=base_url, stream=stream, settings=settings)


class LosesFormats(ToyCodec):
    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        params = msgspec.structs.replace(request.params, response_format=None)
        request = msgspec.structs.replace(request, params=params)
        return super().encode(request, base_url=base_url, stream=stream, settings=settings)


class LosesStatus(ToyCodec):
    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes, *, now: Any
    ) -> ProviderError:
        return super().decode_error(500, headers, body, now=now)


def reading(broken: type[ToyReading]) -> Dialect:
    codec = BrokenCodec()
    codec.reading = broken
    return msgspec.structs.replace(TOY, codec=codec)


def writing(broken: ToyCodec) -> Dialect:
    return msgspec.structs.replace(TOY, codec=broken)


FAULTS = [
    ("text", reading(LosesText)),
    ("text", msgspec.structs.replace(TOY, key_place=Bearer())),
    ("stream", reading(LosesText)),
    ("tools", writing(LosesTools())),
    ("parallel tools", reading(MixesCalls)),
    ("reasoning", reading(TellsThoughts)),
    ("images", writing(LosesImages())),
    ("structured output", writing(LosesFormats())),
    ("usage", reading(CountsWrong)),
    ("errors", writing(LosesStatus())),
    ("errors", msgspec.structs.replace(TOY, key_place=NoKey())),
    ("truncation", reading(NeverEndsBadly)),
    ("truncation", reading(ForgetsTheEnd)),
]


@pytest.mark.parametrize(("name", "broken"), FAULTS, ids=lambda value: str(value)[:20])
async def test_a_broken_dialect_is_found_out(
    name: str, broken: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("woollama.core.wire.dialects.DIALECTS", {"toy": broken})
    kit = DialectKit(dialect=broken, make_fake=ToyFake)
    with pytest.raises((AssertionError, ProviderError)):
        await BEHAVIOURS[name](kit)


def test_every_behaviour_has_a_fault_that_it_finds() -> None:
    assert set(BEHAVIOURS) == {name for name, _ in FAULTS}
