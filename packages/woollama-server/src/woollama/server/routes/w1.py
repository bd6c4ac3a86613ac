"""``/w1/patterns``: the prompts by name, rendered and run."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from woollama.core.canonical import Message, UserMessage, message_from_openai
from woollama.core.errors import RequestError, UnknownPattern
from woollama.core.patterns import Pattern, PatternBackend, PatternCall
from woollama.core.relay import whole_body
from woollama.server.leaving import while_connected
from woollama.server.logs import request_log
from woollama.server.services import Services
from woollama.server.surface.client import read_request
from woollama.server.surface.pattern_calls import answer_run

__all__ = ["pattern_entry", "w1_routes"]

_RENDER_KEYS = frozenset({"input", "variables"})
_BACKEND_KEYS = ("context", "strategy", "language", "search")
"""What some backends take beside the options; they see it among them."""

_RUN_KEYS = frozenset(
    {"input", "variables", "model", "options", "stream", "stream_options", *_BACKEND_KEYS}
)


def w1_routes(services: Services) -> list[Route]:
    """The routes of this family."""

    async def list_patterns(_request: Request) -> Response:
        entries = [pattern_entry(pattern) for pattern in services.directory.catalog.list()]
        return _json({"object": "list", "data": entries})

    async def show(request: Request) -> Response:
        _, pattern = _find(services, request.path_params["name"])
        return _json(pattern_entry(pattern))

    async def render(request: Request) -> Response:
        backend, pattern = _find(services, request.path_params["name"])
        body = await _body(request, services, _RENDER_KEYS)
        given = body.get("input")
        if given is not None and not isinstance(given, str):
            raise RequestError("'input' must be a string.", param="input")
        return _json(
            {"prompt": await backend.render(pattern.name, _object(body, "variables"), given)}
        )

    return [
        Route("/w1/patterns", list_patterns),
        Route("/w1/patterns/{name:path}/render", render, methods=["POST"]),
        Route("/w1/patterns/{name:path}/run", _RunRoute(services), methods=["POST"]),
        Route("/w1/patterns/{name:path}", show),
    ]


class _RunRoute:
    """``POST /w1/patterns/{name}/run``, a bare ASGI application because it may stream."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services
        backend, pattern = _find(services, scope["path_params"]["name"])
        body = await _body(Request(scope, receive), services, _RUN_KEYS)
        model = body.get("model")
        if model is not None and not isinstance(model, str):
            raise RequestError("'model' must be a string.", param="model")
        log = request_log(scope)
        log.model = model or f"woollama/{pattern.name}"
        stream = body.get("stream")
        if stream is not None and not isinstance(stream, bool):
            raise RequestError("'stream' must be true or false.", param="stream")
        own = {key: body[key] for key in _BACKEND_KEYS if body.get(key) is not None}
        call = PatternCall(
            name=pattern.name,
            messages=_messages(body.get("input")),
            variables=_object(body, "variables"),
            model=model,
            options={**own, **_object(body, "options")},
            stream=bool(stream),
        )
        with while_connected(scope, receive):
            await answer_run(
                backend,
                call,
                send,
                log,
                shown_model=log.model,
                reasoning=services.reasoning,
                include_usage=_object(body, "stream_options").get("include_usage") is True,
            )


def pattern_entry(pattern: Pattern) -> dict[str, Any]:
    """A pattern as the list shows it; what is not declared is absent.

    ``{"name", "variables": [{"name", "default"?, "choices"?, "description"?}], "source", "model"?,
    "description"?}``.
    """
    variables = [
        {key: value for key, value in msgspec.structs.asdict(variable).items() if value}
        | ({"default": variable.default} if variable.default is not None else {})
        for variable in pattern.variables
    ]
    entry: dict[str, Any] = {
        "name": pattern.name,
        "variables": variables,
        "source": pattern.source,
    }
    if pattern.model is not None:
        entry["model"] = pattern.model
    if pattern.description is not None:
        entry["description"] = pattern.description
    return entry


def _find(services: Services, name: str) -> tuple[PatternBackend, Pattern]:
    found = services.directory.catalog.find(name)
    if found is None:
        names = [pattern.name for pattern in services.directory.catalog.list()]
        near = get_close_matches(name, names, n=3)
        hint = f"Near names: {', '.join(near)}." if near else None
        raise UnknownPattern(f"There is no pattern {name!r}.", param="name", hint=hint)
    return found


async def _body(request: Request, services: Services, known: frozenset[str]) -> dict[str, Any]:
    data = await read_request(request.receive, limit_bytes=services.body_limit_bytes)
    fields = whole_body(data)
    for key in fields:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            advice = (
                f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}."
            )
            raise RequestError(f"There is no field {key!r} here; {advice}", param=key)
    return fields


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise RequestError(f"{name!r} must be an object, not {_kind(value)}.", param=name)


def _messages(given: object) -> tuple[Message, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (UserMessage(content=given),)
    if isinstance(given, list):
        items = cast("list[object]", given)
        return tuple(message_from_openai(item, f"input[{i}]") for i, item in enumerate(items))
    raise RequestError(
        f"'input' must be a string or a list of messages, not {_kind(given)}.", param="input"
    )


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else f"{value!r:.40}"


def _json(body: Any) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
