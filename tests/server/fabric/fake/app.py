"""fabric's REST API as its transcripts show it: a Starlette application.

It refuses what fabric refuses, in fabric's shapes, and shows what fabric would do with a variable
that it should not have got. Models are stubs that do what their names say.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.server.fabric.fake.template import Endless, TemplateError, fill

PATTERNS = {
    "summarize": "# PURPOSE\n\nSummarise <the> text.\n",
    "translate": "Translate to {{lang_code}}:\n\n{{input}}\n",
}
MODELS = {"Ollama": ["fail", "empty", "llama3.2:latest"], "OpenAI": []}
STRATEGIES = {"cot": "Think step by step."}
CONTEXTS = {"me": "I am a sheep."}


def encode(value: Any) -> bytes:
    """JSON as Go writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for plain in "<>&\u2028\u2029":
        text = text.replace(plain, f"\\u{ord(plain):04x}")
    return text.encode()


def answer(value: Any, status: int = 200) -> Response:
    return Response(encode(value), status, media_type="application/json; charset=utf-8")


class FakeFabric:
    """One fabric server.

    Attributes:
        requests: what it got: method, path with its query, headers, body.
        mode: ``new`` (v1.4.470), ``old`` (v1.4.261), ``swallow`` (up to v1.4.448), ``later``.
        left: set when a client has closed a stream before its end.
        control: further behaviour, looked at for each request: ``names`` (``empty``, ``null``,
            ``html``, ``fail``, ``hang``), ``models`` (``fail``), ``hang``.
    """

    def __init__(
        self,
        *,
        key: str | None = None,
        patterns: Mapping[str, str] | None = None,
        models: Mapping[str, list[str]] | None = None,
        control: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.key = key
        self.patterns = dict(PATTERNS if patterns is None else patterns)
        self.models = dict(MODELS if models is None else models)
        self.control = control
        self.mode = "new"
        self.requests: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self.go = asyncio.Event()
        self.asked = asyncio.Event()
        routes = [
            Route("/patterns/names", self._names),
            Route("/patterns/exists/{name}", self._exists),
            Route("/patterns/{name}/apply", self._apply, methods=["POST"]),
            Route("/patterns/{name}", self._pattern),
            Route("/patterns/{name}", self._write, methods=["POST", "DELETE"]),
            Route("/models/names", self._models),
            Route("/strategies", self._strategies),
            Route("/contexts/names", self._contexts),
            Route("/contexts/{name}", self._context),
            Route("/sessions/names", self._sessions),
            Route("/config", self._config),
            Route("/chat", self._chat, methods=["POST"]),
        ]
        inner = Starlette(routes=routes)
        inner.router.redirect_slashes = False
        self.app: ASGIApp = _Recorded(self, inner)

    def paths(self) -> list[str]:
        """Method and path of every request, but for the probes."""
        return [
            f"{each['method']} {each['path']}"
            for each in self.requests
            if each["path"] != "/patterns/names"
        ]

    def body(self, number: int = -1) -> Any:
        """The JSON of a ``/chat``, by default the last."""
        chats = [each for each in self.requests if each["path"] == "/chat"]
        return json.loads(chats[number]["body"])

    # Reading

    async def _names(self, _request: Request) -> Response:
        match self.control().get("names"):
            case "empty":
                return answer([])
            case "null":
                return answer(None)
            case "html":
                return Response("<html><h1>It works!</h1></html>", media_type="text/html")
            case "fail":
                return answer("could not read patterns", 500)
            case "hang":
                await asyncio.Event().wait()
                raise AssertionError
            case _:
                return answer(sorted(self.patterns))

    async def _exists(self, request: Request) -> Response:
        return answer(request.path_params["name"] in self.patterns)

    async def _pattern(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.patterns:
            return answer(self._unknown(name), 500)
        return answer({"Name": name, "Description": "", "Pattern": self.patterns[name]})

    def _unknown(self, name: str) -> str:
        if self.mode == "old":
            path = f"/home/you/.config/fabric/patterns/{name}/system.md"
            return f"could not load {name}/system.md: open {path}: no such file or directory"
        return f"pattern '{name}' not found. Run 'fabric -l' to see available patterns"

    async def _apply(self, request: Request) -> Response:
        name = request.path_params["name"]
        try:
            body: Any = json.loads(await request.body())
        except ValueError as error:
            return answer({"error": str(error)}, 400)
        own: dict[str, Any] = body.get("variables") or {}
        given: dict[str, Any] = {**dict(request.query_params), **own}
        if not all(isinstance(value, str) for value in given.values()):
            return answer({"error": "json: cannot unmarshal number into Go value"}, 400)
        if name not in self.patterns:
            return answer(self._unknown(name), 500)
        try:
            text = fill(self.patterns[name], given, body.get("input", ""))
        except TemplateError as error:
            return answer(str(error), 500)
        except Endless:
            await asyncio.Event().wait()
            raise
        return answer({"Name": name, "Description": "", "Pattern": text})

    async def _models(self, _request: Request) -> Response:
        if self.control().get("models") == "fail":
            return answer({"error": "no vendors"}, 500)
        flat = [model for models in self.models.values() for model in models]
        return answer({"models": flat or None, "vendors": self.models})

    async def _strategies(self, _request: Request) -> Response:
        return answer([{"name": n, "description": "", "prompt": p} for n, p in STRATEGIES.items()])

    async def _contexts(self, _request: Request) -> Response:
        return answer(sorted(CONTEXTS))

    async def _context(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in CONTEXTS:
            path = f"/home/you/.config/fabric/contexts/{name}"
            return answer(f"could not load {name}: open {path}: no such file or directory", 500)
        return answer({"Name": name, "Content": CONTEXTS[name]})

    async def _sessions(self, _request: Request) -> Response:
        return answer(None)

    async def _config(self, _request: Request) -> Response:
        return answer({"openai": "sk-in-clear"})

    async def _write(self, request: Request) -> Response:
        name = request.path_params["name"]
        if request.method == "POST":
            self.patterns[name] = (await request.body()).decode()
        else:
            self.patterns.pop(name, None)
        return Response()

    # Running

    async def _chat(self, request: Request) -> Response:
        self.asked.set()
        try:
            body: Any = json.JSONDecoder().raw_decode((await request.body()).decode())[0]
            prompts: Any = body.get("prompts") or []
        except (ValueError, AttributeError) as error:
            return self._malformed(str(error))
        if not isinstance(prompts, list):
            kind = "string" if isinstance(prompts, str) else "object"
            message = f"json: cannot unmarshal {kind} into Go struct field ChatRequest.prompts of "
            return self._malformed(f"{message}type []restapi.PromptRequest")
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        if self.mode == "later":
            media = "text/event-stream"
        else:
            media = "text/readystream"
            headers["access-control-allow-origin"] = "http://localhost:5173"
        if not prompts:
            return Response(b"", headers={**headers, "content-type": media})
        frames = _watched(self._frames(cast("list[dict[str, Any]]", prompts)), self.left)
        return StreamingResponse(frames, headers={**headers, "content-type": media})

    def _malformed(self, message: str) -> Response:
        body = encode({"error": f"invalid request format: {message}"}).decode()
        return PlainTextResponse(body, 400)

    async def _frames(self, prompts: list[dict[str, Any]]) -> AsyncIterator[bytes]:
        for prompt in prompts:
            async for frame in self._prompt(prompt):
                yield frame
            empty = {"content": ""} if self.mode == "old" else {}
            yield _frame({"type": "complete", "format": "plain", **empty})

    async def _prompt(self, prompt: dict[str, Any]) -> AsyncIterator[bytes]:
        try:
            text = self._built(prompt)
        except TemplateError as error:
            if self.mode != "swallow":
                yield _error(f"Error: {error}")
            return
        model = prompt.get("model", "")
        fault = self._vendor_fault(prompt.get("vendor", ""), model)
        if fault is not None:
            if self.mode != "swallow":
                yield _error(fault)
            return
        async for frame in self._say(model, text):
            yield frame

    def _built(self, prompt: dict[str, Any]) -> str:
        context, strategy = prompt.get("contextName", ""), prompt.get("strategyName", "")
        if context and context not in CONTEXTS:
            raise TemplateError(f"could not find context {context}: could not load {context}: open")
        if strategy and strategy not in STRATEGIES:
            raise TemplateError(
                f"could not load strategy {strategy}: strategy {strategy} not found. Please run "
                "'fabric --liststrategies' for list"
            )
        name = prompt.get("patternName", "")
        text = prompt.get("userInput", "")
        if name:
            if name not in self.patterns:
                raise TemplateError(f"could not get pattern {name}: {self._unknown(name)}")
            try:
                text = fill(self.patterns[name], prompt.get("variables") or {}, text)
            except TemplateError as error:
                raise TemplateError(f"could not get pattern {name}: {error}") from error
        parts = (STRATEGIES.get(strategy, ""), CONTEXTS.get(context, ""), text)
        return "\n".join(part for part in parts if part)

    def _vendor_fault(self, vendor: str, model: str) -> str | None:
        if vendor:
            known = {name.lower(): models for name, models in self.models.items()}
            if model not in known.get(vendor.lower(), []):
                return f"Error: model {model} not available for vendor {vendor}"
        elif not any(model in models for models in self.models.values()):
            return (
                f"Error: Requested Model = {model}\nDefault Model = llama3.2:latest\n"
                "Default Vendor = Ollama.\n\ncould not find vendor"
            )
        return None

    async def _say(self, model: str, text: str) -> AsyncIterator[bytes]:
        for frame in _SAYINGS.get(model, ()):
            yield frame
        match model:
            case _ if model in _SAYINGS:
                return
            case "echo":
                yield _content(text)
            case "hold":
                yield _content("partial ")
                await asyncio.Event().wait()
            case "hang":
                await asyncio.Event().wait()
            case "wait":
                await self.go.wait()
                yield _content("late")
            case "cut":
                yield _content("partial ")
                raise ConnectionAbortedError
            case _ if self.mode == "old":
                yield _content("Hello <world>\n")
            case _:
                yield _content("Hello")
                yield _content(" <world>\n")
                usage = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}
                yield _frame({"type": "usage", "usage": usage})


def _frame(event: dict[str, Any]) -> bytes:
    return b"data: " + encode(event) + b"\n\n"


def _content(text: str) -> bytes:
    return _frame({"type": "content", "format": "markdown", "content": text})


def _error(text: str) -> bytes:
    return _frame({"type": "error", "format": "plain", "content": text})


_SAYINGS = {
    "fail": (_content("partial "), _error("Error: upstream exploded")),
    "empty": (_error("Error: empty response"),),
    "silent": (),
    "big": (_content("x" * 1024 * 1024),),
    "odd": (
        _frame({"type": "content", "format": "markdown"}),
        _frame({"type": "novelty", "content": "?"}),
        _content("odd"),
    ),
    "garbage": (b"data: {not json}\n\n",),
}
"""What stub models say that say always the same."""


async def _watched(frames: AsyncIterator[bytes], left: asyncio.Event) -> AsyncIterator[bytes]:
    try:
        async for frame in frames:
            yield frame
    except asyncio.CancelledError:
        left.set()
        raise


class _Recorded:
    """Asks for the key, and writes down what comes."""

    def __init__(self, fake: FakeFabric, inner: ASGIApp) -> None:
        self._fake = fake
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        fake = self._fake
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        query = scope["query_string"].decode()
        path = scope["raw_path"].decode().partition("?")[0]
        record: dict[str, Any] = {
            "method": scope["method"],
            "path": f"{path}?{query}" if query else path,
            "headers": headers,
            "body": b"",
        }
        fake.requests.append(record)

        async def recorded() -> Any:
            message = await receive()
            record["body"] += message.get("body", b"")
            return message

        if fake.control().get("hang"):
            await asyncio.Event().wait()
        refusal = self._refusal(headers)
        app: ASGIApp = refusal if refusal is not None else self._inner
        await app(scope, recorded, send)

    def _refusal(self, headers: Mapping[str, str]) -> Response | None:
        if self._fake.key is None or headers.get("x-api-key") == self._fake.key:
            return None
        word = "Wrong" if "x-api-key" in headers else "Missing"
        return answer({"error": f"{word} API Key"}, 401)
