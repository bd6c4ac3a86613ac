"""``tools/call``: our own tool, or one of a server with everything that goes with a direct call."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    LOG_LEVEL_META_KEY,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    URL_ELICITATION_REQUIRED,
)
from starlette.requests import Request

from woollama.core.canonical.value import NOTHING
from woollama.core.directory import OWN_NAMESPACE
from woollama.core.errors import UnknownTool
from woollama.server.instance import INSTANCE_META
from woollama.server.logs import request_log
from woollama.server.mcp.faults import CallTimedOut, Refused, ServerFault, Unreachable
from woollama.server.mcp.federation import trail_of
from woollama.server.mcp.health import OnProgress
from woollama.server.mcp.offered import OfferedTool
from woollama.server.mcp.questions import Asker, CannotAsk, Direct
from woollama.server.mcp.surface_chat import CHAT, ChatTool, failed
from woollama.server.mcp.surface_questions import (
    Conversations,
    asker_over,
    declared_by,
    questions_in,
)
from woollama.server.mcp.surface_results import Context, is_modern, mapping_in, readable
from woollama.server.mcp.surface_sources import Sources
from woollama.server.mcp.surface_tools import ExportedTools
from woollama.server.mcp.surface_voice import Levels, Voice, meta_of

__all__ = ["ToolCalls", "passed_meta"]

_RESERVED = "io.modelcontextprotocol/"
_ROUNDS_LIMIT = 10
"""How often a server may ask within one call of a client of the older protocol."""

_PASSED_ON = frozenset(
    {INVALID_PARAMS, URL_ELICITATION_REQUIRED, MISSING_REQUIRED_CLIENT_CAPABILITY}
)
"""Errors that are for the client's program; it tells its model of any other as of a result."""

_CAPABILITIES = MappingProxyType(
    {
        "elicitation/create": "elicitation",
        "sampling/createMessage": "sampling",
        "roots/list": "roots",
    }
)
"""What a server may ask of a client, and what that has declared who answers it."""

_ASKS = "The tool asks for something before it goes on, and this client cannot give it"


def passed_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What of a client's ``_meta`` goes on to a server: what is not between us and the client."""
    return {
        key: value
        for key, value in meta.items()
        if key == LOG_LEVEL_META_KEY
        or not (key.startswith(_RESERVED) or key in {"progressToken", INSTANCE_META})
    }


class ToolCalls:
    """Runs what clients call."""

    def __init__(
        self,
        sources: Sources,
        exported: ExportedTools,
        chat: ChatTool,
        *,
        conversations: Conversations,
        levels: Levels,
    ) -> None:
        """Nothing runs yet."""
        self._tools = sources.tools
        self._instance_id = sources.instance_id
        self._exported = exported
        self._chat = chat
        self._conversations = conversations
        self._levels = levels

    async def call(self, ctx: Context) -> dict[str, Any]:
        """The result of one call, as this client can read it.

        Raises:
            MCPError: there is no such tool, or the call goes round in a circle.
        """
        params = ctx.params or {}
        name = params["name"]
        arguments = cast("Mapping[str, Any] | None", params.get("arguments"))
        if self._instance_id in trail_of(params.get("_meta")):
            raise MCPError(INVALID_PARAMS, "A loop: this call has come through this woollama.")
        voice = Voice(ctx, self._levels)
        if name == CHAT:
            result = await self._chat.call(arguments or {}, voice)
            _note(ctx, arguments or {}, result)
            return result
        tool = self._exported.find(name)
        if tool is None:
            await self._exported.settle()
            tool = self._exported.find(name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}")
        raw = await _DirectCall(self._tools.call, ctx, tool, arguments, voice).run(
            self._conversations
        )
        return readable(raw, ctx.protocol_version)


def _note(ctx: Context, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """What the request's log line tells of a chat: which model, how many tokens."""
    request: object = ctx.request
    if not isinstance(request, Request):
        return
    log = request_log(request.scope)
    pattern = arguments.get("recipe") or arguments.get("pattern")
    model = arguments.get("model") or (f"{OWN_NAMESPACE}/{pattern}" if pattern else None)
    log.model = model if isinstance(model, str) else None
    usage = mapping_in(mapping_in(result.get("structuredContent")).get("usage"))
    log.count(usage.get("prompt_tokens"), usage.get("completion_tokens"))


class _DirectCall:
    """A call of a server's tool by a client."""

    def __init__(
        self,
        call: Any,
        ctx: Context,
        tool: OfferedTool,
        arguments: Mapping[str, Any] | None,
        voice: Voice,
    ) -> None:
        self._call = call
        self._ctx = ctx
        self._tool = tool
        self._arguments = arguments
        self._voice = voice

    async def run(self, conversations: Conversations) -> dict[str, Any]:
        if is_modern(self._ctx.protocol_version):
            raw = await self._begun(conversations)
            missing = _missing(raw, declared_by(self._ctx))
            if missing:
                raise MCPError(
                    MISSING_REQUIRED_CLIENT_CAPABILITY,
                    f"{_ASKS}: it has not declared {', '.join(missing)}.",
                    {"requiredCapabilities": {name: {} for name in missing}},
                )
            return raw
        asker = asker_over(self._ctx)
        return await self._answered(await self._once(self._direct(asker)), asker)

    @property
    def _progress(self) -> OnProgress | None:
        return self._voice.pass_on if self._voice.wants_progress else None

    async def _begun(self, conversations: Conversations) -> dict[str, Any]:
        """The first or the next part of a call by a client of the newer protocol."""
        params = self._ctx.params or {}
        if conversations.resumes(params):
            return await conversations.resume(params, on_progress=self._progress)
        given = ("inputResponses", "requestState")
        direct = Direct(
            capabilities=declared_by(self._ctx),
            answers={key: params[key] for key in given if params.get(key) is not None},
            on_log=self._voice.pass_on_log,
        )
        capability = direct.capabilities.get("elicitation")
        if capability is None:
            return await self._once(direct)
        return await conversations.begin(
            capability,
            lambda asker, on_progress: self._once(
                msgspec.structs.replace(direct, asker=asker), on_progress
            ),
            on_progress=self._progress,
        )

    def _direct(self, asker: Asker | None, answers: Mapping[str, Any] = NOTHING) -> Direct:
        """What goes with the call of a client of the older protocol."""
        return Direct(
            capabilities=NOTHING if asker is None else {"elicitation": asker.capability},
            answers=answers,
            asker=asker,
            on_log=self._voice.pass_on_log,
        )

    async def _answered(self, raw: dict[str, Any], asker: Asker | None) -> dict[str, Any]:
        """A server of the newer protocol wants input: the client of the older one is asked here."""
        for _ in range(_ROUNDS_LIMIT):
            if raw.get("resultType") != "input_required":
                return raw
            questions = questions_in(raw)
            if questions is None or (questions and asker is None):
                return failed(f"{_ASKS}: it has not declared {', '.join(_missing(raw, NOTHING))}.")
            answers: dict[str, Any] = {}
            if raw.get("requestState") is not None:
                answers["requestState"] = raw["requestState"]
            if asker is not None and questions:
                try:
                    asked = {key: dict(await asker.ask(each)) for key, each in questions.items()}
                except CannotAsk as reason:
                    return failed(f"The tool asks something, and nobody was asked: {reason}.")
                answers["inputResponses"] = asked
            raw = await self._once(self._direct(asker, answers))
        return failed(f"The tool has asked {_ROUNDS_LIMIT} times and has not come to an end.")

    async def _once(self, direct: Direct, on_progress: OnProgress | None = None) -> dict[str, Any]:
        meta = meta_of(self._ctx)
        try:
            return await self._call(
                self._tool.source_name,
                self._arguments,
                meta=self._voice.with_level(passed_meta(meta)),
                trail=trail_of(meta),
                on_progress=on_progress or self._progress,
                direct=direct,
            )
        except Refused as fault:
            if fault.rpc_code in _PASSED_ON:
                raise MCPError(fault.rpc_code, fault.message, fault.data) from fault
            return failed(fault.message)
        except (CallTimedOut, Unreachable, UnknownTool) as fault:
            return failed(f"{fault.message}.")
        except ServerFault as fault:
            return failed(f"MCP server {self._tool.server!r}: {fault.message}.")


def _missing(raw: Mapping[str, Any], declared: Mapping[str, Any]) -> list[str]:
    """What a client has not declared of what a result requires of it."""
    if raw.get("resultType") != "input_required":
        return []
    requests = mapping_in(raw.get("inputRequests")).values()
    methods = [str(mapping_in(request).get("method")) for request in requests]
    needed = dict.fromkeys(_CAPABILITIES.get(method, method) for method in methods)
    return [name for name in needed if name not in declared]
