"""The test kit for plugins, and plugins in a whole server."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tests.server.plugins.parts import Keys, backend_of, provider_of
from woollama.core.errors import ConfigError, RequestError
from woollama.core.patterns import Pattern, PatternBackend
from woollama.server.plugins.contract import (
    Plugin,
    PluginContext,
    PluginRoute,
    ProvidedProvider,
)
from woollama.server.testing import Served, check_plugin, use_plugins

pytest_plugins = ["woollama.server.testing.pytest_plugin"]

Opener = Callable[..., AbstractAsyncContextManager[Served]]


async def greet(request: Request) -> Response:
    return JSONResponse({"hello": request.path_params["who"]})


async def refuse(_request: Request) -> Response:
    raise RequestError("Not that.", param="that")


async def fail(_request: Request) -> Response:
    raise KeyError("a secret")


class Echo:
    """An ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = f"{scope['method']} {scope['raw_path'].decode()}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body[:3], "more_body": True})
        await send({"type": "http.response.body", "body": body[3:]})


class Greeter(Plugin):
    """Has routes and a section."""

    name = "greeter"
    api_version = 1
    config_type = Keys

    def routes(self, context: PluginContext) -> Sequence[PluginRoute]:
        async def word(_request: Request) -> Response:
            return JSONResponse({"word": context.config.word})

        return (
            PluginRoute(path="/hello/{who}", endpoint=greet),
            PluginRoute(path="/word", endpoint=word, methods=("GET", "POST")),
            PluginRoute(path="/refuse", endpoint=refuse),
            PluginRoute(path="/fail", endpoint=fail),
            PluginRoute(path="/raw/{rest:path}", endpoint=Echo(), methods=()),
        )


async def test_routes_are_under_the_prefix_of_the_plugin() -> None:
    async with use_plugins(Greeter, config={"greeter": {"word": "moin"}}) as server:
        client = server.client
        assert {"hello": "you"} == (await client.get("/x/greeter/hello/you")).json()
        assert {"word": "moin"} == (await client.post("/x/greeter/word", {})).json()
        raw = await client.request("PUT", "/x/greeter/raw/a%2Fb?c=d")
        assert ("PUT /x/greeter/raw/a%2Fb", 2) == (raw.text, len(raw.chunks))
        assert 404 == (await client.get("/greeter/hello/you")).status
        assert 404 == (await client.get("/x/greeter/nothing")).status
        assert 405 == (await client.request("DELETE", "/x/greeter/word")).status


async def test_what_a_route_raises_is_the_standard_error() -> None:
    async with use_plugins(Greeter) as server:
        refused = await server.client.get("/x/greeter/refuse")
        failed = await server.client.get("/x/greeter/fail")
    assert (400, "Not that.") == (refused.status, refused.json()["error"]["message"])
    assert 500 == failed.status
    assert "secret" not in failed.text


async def test_a_route_is_authenticated_unless_nothing_is_there() -> None:
    """An unknown path is 401 before it is 404: what is not there is not told to strangers."""
    async with use_plugins(Greeter) as server:
        for path in ("/x/greeter/hello/you", "/x/greeter/nothing", "/x/other"):
            answer = await server.client.get(path, headers={"authorization": None})
            assert 401 == answer.status
        answer = await server.client.get(
            "/x/greeter/hello/you", headers={"authorization": "Bearer wrong"}
        )
        assert 401 == answer.status


class Library(Plugin):
    """Brings a provider, and a backend with one pattern."""

    name = "library"
    api_version = 1

    def providers(self, context: PluginContext) -> Sequence[ProvidedProvider]:
        return provider_of("librarian")(self, context)

    def pattern_backends(self, context: PluginContext) -> Sequence[PatternBackend]:
        (backend,) = backend_of("library")(self, context)
        backend.list = lambda: (Pattern(name="p", source="library", model="librarian/m"),)
        return (backend,)


async def test_providers_and_patterns_of_a_plugin_are_found_by_name() -> None:
    async with use_plugins(Library) as server:
        services = server.services
        names = services.directory.registry.names()
        patterns = services.directory.catalog.list()
        listed = (await server.client.get("/v1/models")).json()["data"]
    assert "librarian" in names
    assert "p" in [pattern.name for pattern in patterns]
    assert "woollama/p" in [entry["id"] for entry in listed]


class Broken(Plugin):
    """Brings a backend that raises while it is listed and searched, until it is mended."""

    name = "broken"
    api_version = 1
    fault: ClassVar[Exception | None] = None

    def pattern_backends(self, context: PluginContext) -> Sequence[PatternBackend]:
        (backend,) = backend_of("broken")(self, context)

        def listed() -> Sequence[Pattern]:
            if self.fault is not None:
                raise self.fault
            return (Pattern(name="mended", source="broken"),)

        def find(name: str) -> Pattern | None:
            return {each.name: each for each in listed()}.get(name)

        backend.list, backend.find = listed, find
        return (backend,)


async def test_a_backend_that_fails_takes_nothing_from_the_others_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fails(Broken):
        fault = KeyError("what a person wrote")

    caplog.set_level(logging.INFO)
    async with use_plugins(Fails, Library) as server:
        client = server.client
        for _ in range(3):
            patterns = (await client.get("/w1/patterns")).json()["data"]
            assert "p" in [pattern["name"] for pattern in patterns]
            assert 200 == (await client.get("/v1/models")).status
        answer = await client.get("/w1/patterns/nobodys")
        (said,) = _said_of_backends(caplog)
        Fails.fault = None
        patterns = (await client.get("/w1/patterns")).json()["data"]
        assert {"p", "mended"} <= {pattern["name"] for pattern in patterns}
    assert 500 == answer.status
    message = "The pattern backend 'broken' failed and cannot say whether it has 'nobodys'"
    assert f"{message}: KeyError" == answer.json()["error"]["message"]
    assert said.startswith("pattern backend 'broken' failed; its patterns are left out:\n")
    assert "in listed" in said
    assert "pattern backend 'broken' gives its list again" == _said_of_backends(caplog)[-1]
    assert "what a person wrote" not in caplog.text


def _said_of_backends(log: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in log.messages if text.startswith("pattern backend")]


async def test_a_server_sees_nothing_of_its_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOOLLAMA_PLUGINS", "nothing-of-that-name")
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", "/nowhere")
    async with use_plugins(Greeter) as server:
        assert not server.config_dir.is_relative_to("/nowhere")
        folder = server.config_dir
    assert not folder.exists()


async def test_a_wrong_set_is_refused_as_in_a_daemon() -> None:
    with pytest.raises(ConfigError, match=r"plugins\.greeter\.wort: unknown key"):
        async with use_plugins(Greeter, config={"greeter": {"wort": "x"}}):
            pass


async def test_the_fixtures_run_a_server_in_a_folder_of_the_test(
    woollama_server: Opener, woollama_config_dir: Path, plugin_check: Callable[..., Any]
) -> None:
    async with woollama_server(Greeter, files={"inferencers.toml": ""}) as server:
        assert woollama_config_dir == server.config_dir
        assert (woollama_config_dir / "inferencers.toml").exists()
    await plugin_check(Greeter)


async def test_the_check_passes_what_keeps_the_contract() -> None:
    await check_plugin(Greeter, config={"word": "x"})
    await check_plugin(Library)


async def test_the_check_finds_a_thread_that_is_left() -> None:
    end = threading.Event()

    class Leaves(Plugin):
        name = "leaves"
        api_version = 1

        async def setup(self, context: PluginContext) -> None:
            threading.Thread(target=end.wait, name="left over", daemon=True).start()

    with pytest.raises(AssertionError, match="left over"):
        await check_plugin(Leaves)
    end.set()


async def test_the_check_finds_contributions_that_change() -> None:
    class Changes(Plugin):
        name = "changes"
        api_version = 1

        def routes(self, context: PluginContext) -> Sequence[PluginRoute]:
            return (PluginRoute(path=f"/{id(context)}", endpoint=greet),)

    kept: list[PluginContext] = []

    class Keeps(Changes):
        def routes(self, context: PluginContext) -> Sequence[PluginRoute]:
            kept.append(context)
            return super().routes(context)

    with pytest.raises(AssertionError, match="something else each time"):
        await check_plugin(Keeps)


async def test_setup_may_use_the_transport_and_tasks() -> None:
    ran = anyio.Event()

    class Works(Plugin):
        name = "works"
        api_version = 1

        async def setup(self, context: PluginContext) -> None:
            context.tasks.start_soon(self.work)
            with anyio.fail_after(5):
                await ran.wait()

        async def work(self) -> None:
            ran.set()

    async with use_plugins(Works) as server:
        health = await server.services.plugins.health()
    assert health["plugin.works.tasks"].ok
