"""Tool calls of a chat stream: fragments of many shapes to one sequence (OC-5 to OC-12, OC-45)."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from woollama.core.canonical import NOTHING, Delta, OpaqueDelta, ToolCallDelta
from woollama.core.errors import ReplyError
from woollama.core.wire.arguments import arguments_text
from woollama.core.wire.framing import LIMIT_ARGUMENTS, too_many_arguments

__all__ = ["LIMIT_CALLS", "CallReading"]

LIMIT_CALLS = 1000
"""The most calls of one reply."""


class _Call:
    def __init__(self, position: int, wire_id: str | None) -> None:
        self.position = position
        self.wire_id = wire_id
        self.opened = False
        self.waiting: list[str] = []


class CallReading:
    """Puts fragments together by index, else by id, else to the last call."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        """Reads the calls of one reply; ``new_id`` names those without an id (C-7)."""
        self._new_id = new_id
        self._calls: list[_Call] = []
        # The latest call under an index or an id: one index may hold several (OC-6).
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._waiting = 0

    @property
    def any(self) -> bool:
        """Whether the reply calls a tool."""
        return bool(self._calls)

    def fragment(self, raw: Mapping[str, Any], out: list[Delta]) -> None:
        """Take in one element of ``tool_calls``."""
        function = raw.get("function")
        named = cast("Mapping[str, Any]", function) if isinstance(function, dict) else NOTHING
        name = _filled(named.get("name"))
        call = self._find(raw.get("index"), _filled(raw.get("id")), name)
        arguments = arguments_text(named.get("arguments"))
        if not call.opened:
            self._wait(call, arguments)
            if name is None:
                return
            self._open(call, name, out)
        elif arguments:
            out.append(ToolCallDelta(call.position, arguments=arguments))
        extra = raw.get("extra_content")
        if extra is not None:
            out.append(OpaqueDelta("compatible", "extra_content", extra, call.position))

    def flush(self, out: list[Delta]) -> None:
        """Open the calls whose name never came: the tool layer will say so."""
        for call in self._calls:
            if not call.opened:
                self._open(call, "", out)

    def _wait(self, call: _Call, arguments: str) -> None:
        self._waiting += len(arguments)
        if self._waiting > LIMIT_ARGUMENTS:
            raise too_many_arguments()
        call.waiting.append(arguments)

    def _open(self, call: _Call, name: str, out: list[Delta]) -> None:
        call.opened = True
        identity = call.wire_id if call.wire_id is not None else f"call_{self._new_id()}"
        out.append(ToolCallDelta(call.position, identity, name, "".join(call.waiting)))
        call.waiting.clear()

    def _find(self, index: object, identity: str | None, name: str | None) -> _Call:
        if isinstance(index, int):
            call = self._by_index.get(index)
            if call is None:
                return self._new(index, identity)
            other = identity is not None and call.wire_id not in {None, identity}
            if other and name is not None:
                return self._new(index, identity)
        else:
            call = self._by_id.get(identity) if identity is not None else None
            if call is not None:
                return call
            if identity is not None or name is not None or not self._calls:
                return self._new(None, identity)
            call = self._calls[-1]
        if call.wire_id is None and not call.opened and identity is not None:
            call.wire_id = identity
            self._by_id[identity] = call
        return call

    def _new(self, index: int | None, identity: str | None) -> _Call:
        if len(self._calls) >= LIMIT_CALLS:
            raise ReplyError(f"The reply calls more than {LIMIT_CALLS} tools.")
        call = _Call(len(self._calls), identity)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if identity is not None:
            self._by_id[identity] = call
        return call


def _filled(value: object) -> str | None:
    # Later fragments carry empty ids and names (OC-7), some servers write the word null (OC-11).
    return value if isinstance(value, str) and value not in {"", "null"} else None
