"""Every dialect with a strict server that speaks it, and whole turns between the two."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import anyio

from woollama.core.canonical import Reply, request_from_openai
from woollama.core.providers import ModelRegistry, Provider, Target
from woollama.core.retries import NO_RETRIES, Retries
from woollama.core.testing.fake import Fake, FakeReply, FakeTransport
from woollama.core.testing.fakes import FAKES
from woollama.core.turn import fetch_reply
from woollama.core.wire import DIALECTS

__all__ = [
    "EFFORTS",
    "EFFORT_WORDS",
    "NAMES",
    "OPENAI",
    "ask",
    "fake_of",
    "target_of",
    "wire_chunks",
    "wire_reply",
]

EFFORTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "anthropic": {"output_config": {"effort": "high"}},
        "cerebras": {"reasoning_effort": "high"},
        "compatible": {"reasoning_effort": "high"},
        "ollama": {"think": "high"},
        "responses": {"reasoning": {"effort": "high"}},
    }
)
"""What an effort of ``high`` is in each dialect's body (A-13)."""

EFFORT_WORDS = frozenset({"output_config", "reasoning", "reasoning_effort", "think", "thinking"})
"""The fields of any dialect that speak of an effort."""

NAMES = tuple(DIALECTS)
OPENAI = tuple(name for name in NAMES if DIALECTS[name].family == "openai")


def fake_of(name: str, script: Iterable[Reply | FakeReply] = ()) -> Fake:
    """The strict server of a dialect; it knows the model ``m``."""
    return FAKES[name](script, models=["m"])


def target_of(name: str, base_url: str = "http://peer.test/v1", **fields: Any) -> Target:
    """The model ``m`` of a provider that is spoken to in a dialect."""
    kind = DIALECTS[name].family
    if kind == "openai":
        fields["dialect"] = name
    provider = Provider("up", base_url, kind=kind, **fields)
    return ModelRegistry([provider]).resolve("up/m")


async def ask(fake: Fake, target: Target, *, retries: Retries = NO_RETRIES, **fields: Any) -> Reply:
    """One turn; it says hi unless ``messages`` say more."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    with anyio.fail_after(5):
        return await fetch_reply(
            target,
            request_from_openai(body),
            transport=FakeTransport(fake),
            api_key="k",
            retries=retries,
        )


def asked(name: str, *, stream: bool = True) -> dict[str, Any]:
    """The least of a request in a dialect's words."""
    body: dict[str, Any] = {"model": "m", "stream": stream}
    said = [{"role": "user", "content": "hi"}]
    body |= {"input": said} if name == "responses" else {"messages": said}
    return body | ({"max_tokens": 9} if name == "anthropic" else {})


def wire_chunks(name: str, reply: Reply, *, stream: bool = True) -> tuple[bytes, ...]:
    """``reply`` as the server of a dialect says it, in the pieces in which it leaves."""
    return fake_of(name).render(reply, asked(name, stream=stream)).chunks


def wire_reply(name: str, reply: Reply, *, stream: bool = True) -> bytes:
    """``reply`` as the server of a dialect says it."""
    return b"".join(wire_chunks(name, reply, stream=stream))
