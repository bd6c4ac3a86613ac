"""The plugin before a real fabric, where one is on ``PATH``; elsewhere there is nothing to run.

fabric's model is Ollama's API of the documentation's upstream, so that no key and no network is
needed. What these tests hold is what the fake of the other tests holds.
"""

import base64
import os
import shutil
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.docs.upstream import serve_upstream
from tests.server.fabric.rig import (
    Machine,
    answer_of,
    backend_of,
    call,
    events_of,
    serving,
    text_of,
    until,
)
from woollama.core.canonical import ImagePart, TextPart, UserMessage
from woollama.core.errors import RequestError
from woollama.core.patterns import fill
from woollama.core.transport import Timeouts
from woollama.core.transport.fast import FastTransport
from woollama.core.wire.codec import WireRequest
from woollama.server.supervision import Supervisor
from woollama.server.testing import Served

FABRIC = shutil.which("fabric")
QUESTION = "What is the capital of France?"
PATTERNS = {
    "answer": "# TASK\n\nAnswer the question.\n",
    "translate": "Translate to {{lang_code}}:\n\n{{input}}\n",
}


@pytest.fixture
def machine(tmp_path: Path) -> Generator[Machine]:
    with serve_upstream() as upstream:
        made = Machine(tmp_path, patterns=PATTERNS)
        (made.store / ".env").write_text(
            f"DEFAULT_VENDOR=Ollama\nDEFAULT_MODEL=qwen3\nOLLAMA_API_URL=http://{upstream}\n"
        )
        yield made


@asynccontextmanager
async def real(machine: Machine, command: str) -> AsyncGenerator[Served]:
    section = {"managed": True, "command": command, "default_model": "ollama/qwen3"}
    async with serving(section, machine.environ) as server:
        yield server


async def bytes_of(url: str) -> bytes:
    transport = FastTransport()
    async with transport.open(WireRequest(method="GET", url=url), timeouts=Timeouts()) as response:
        body = b"".join([chunk async for chunk in response.chunks])
    await transport.aclose()
    return body


def child_of(parent: int) -> int:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(children[0])


async def check_library(machine: Machine, command: str) -> None:
    async with real(machine, command) as server:
        backend = backend_of(server)
        assert ["answer", "translate"] == [pattern.name for pattern in backend.list()]
        variables = {"lang_code": '{"a": "b"}'}
        rendered = await backend.render("translate", variables, "x {{y}}")
        native = fill(PATTERNS["translate"], variables).replace("{{input}}", "x {{y}}")
        assert native == rendered
        with pytest.raises(RequestError, match="'lang_code'"):
            await backend.render("translate", {}, "x")
        with pytest.raises(RequestError, match="'lang_code'"):
            await answer_of(server, call("translate", QUESTION))
        with pytest.raises(RequestError, match="must not contain"):
            await answer_of(
                server, call("translate", variables={"lang_code": "{{plugin:sys:pwd}}"})
            )


async def check_runs(machine: Machine, command: str) -> None:
    async with real(machine, command) as server:
        whole = await answer_of(server, call("answer", QUESTION))
        events = await events_of(server, call("answer", QUESTION, stream=True))
        assert whole
        assert whole == text_of(events)
        url = f"data:image/png;base64,{base64.b64encode(b'no real image').decode()}"
        parts = (TextPart(text=QUESTION), ImagePart(url=url))
        assert await answer_of(server, call("answer", messages=(UserMessage(content=parts),)))


async def check_proxy_and_respawn(machine: Machine, command: str) -> None:
    async with real(machine, command) as server:
        address = machine.left_address()
        for path in ("/patterns/names", "/patterns/translate", "/models/names", "/strategies"):
            proxied = await server.client.get(f"/fabric{path}")
            assert await bytes_of(f"http://{address}{path}") == proxied.body
        supervisor: Supervisor[None] = cast("Any", backend_of(server))._client.server.supervisor
        assert supervisor.pid is not None
        os.kill(child_of(supervisor.pid), signal.SIGKILL)
        assert await answer_of(server, call("answer", QUESTION))
        assert address == machine.left_address()
    await until(lambda: machine.left_address() is None)


if FABRIC is not None:
    CHECKS = [check_library, check_runs, check_proxy_and_respawn]

    @pytest.mark.live
    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_the_plugin_works_with_a_real_fabric(
        machine: Machine, check: Callable[[Machine, str], Awaitable[None]]
    ) -> None:
        assert FABRIC is not None
        await check(machine, FABRIC)
