"""A recipe against a strict fake: registry, transport and calls in a line, for every dialect."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from woollama.core import (
    Capabilities,
    ModelRegistry,
    Provider,
    ToolResult,
    ToolSpec,
    Transport,
)
from woollama.core.canonical import FunctionCall, Reply, ToolCall
from woollama.core.testing.fake import FakeReply, FakeRequest, FakeTransport, say
from woollama.core.testing.fakes import FAKES
from woollama.core.wire import DIALECTS, WireSettings

KEY = "sk-of-the-test"
MODEL = "gpt-oss-120b"
HI: dict[str, Any] = {"role": "user", "content": "hi"}
Script = Iterable[Reply | FakeReply]


class Scripted:
    """A provider ``up`` of one dialect whose replies are scripted.

    Attributes:
        fake: what it got.
        transport: counts its open replies.
        registry: knows it, and nobody else.
        call: the arguments that lead a call to it.
    """

    def __init__(
        self,
        script: Script,
        *,
        dialect: str = "compatible",
        sees: bool = False,
        settings: WireSettings | None = None,
    ) -> None:
        self.fake = FAKES[dialect](script)
        self.transport = FakeTransport(self.fake)
        family = DIALECTS[dialect].family
        provider = Provider(
            "up",
            "http://up.test/v1",
            kind=family,
            dialect=dialect if family == "openai" else "",
            capabilities=Capabilities(accepts_image_parts=sees),
            settings=settings or WireSettings(),
        )
        self.registry = ModelRegistry([provider])
        self.call = self.over(self.transport)

    def over(self, transport: Transport) -> dict[str, Any]:
        """The arguments that lead a call to the provider over another network."""
        return {"registry": self.registry, "transport": transport, "api_key": KEY}

    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests, in their order."""
        return [body_of(request) for request in self.fake.requests]


def body_of(request: FakeRequest) -> dict[str, Any]:
    return json.loads(request.body)


def recipe(*tools: str, **more: Any) -> dict[str, Any]:
    """A recipe on the scripted provider."""
    return {"inferencer": f"up/{MODEL}", "tools": list(tools), **more}


def call(name: str, arguments: str = "{}", identity: str | None = None) -> ToolCall:
    """A call that a scripted model makes."""
    return ToolCall(
        id=f"call_{name}" if identity is None else identity,
        function=FunctionCall(name=name, arguments=arguments),
    )


def calls(*names: str) -> Reply:
    """A reply that calls tools without arguments."""
    return say(calls=[call(name) for name in names])


def function(name: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """OpenAI's function tool."""
    return {"type": "function", "function": {"name": name, "parameters": dict(parameters or {})}}


class Tools:
    """A tool provider of an embedder's own: what it offers, and what was dispatched to it."""

    def __init__(self, *names: str, results: Mapping[str, Any] | None = None) -> None:
        self.names = names
        self.results = results or {}
        self.asked: list[list[str]] = []
        self.dispatched: list[tuple[str, dict[str, Any]]] = []

    def tools_for(self, allow: list[str]) -> list[ToolSpec]:
        self.asked.append(allow)
        return [ToolSpec(name, function(name)) for name in self.names]

    async def dispatch(self, name: str, args: dict[str, Any]) -> Any:
        self.dispatched.append((name, args))
        result = self.results.get(name, ToolResult(f"{name} done"))
        if isinstance(result, BaseException):
            raise result
        return result


def tool_messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool messages of a Chat Completions body."""
    return [message for message in body["messages"] if message["role"] == "tool"]
