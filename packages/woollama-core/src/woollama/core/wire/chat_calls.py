"""Tool calls of a chat stream: fragments of many shapes to one sequence (OC-5 to OC-12, OC-45)."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from woollama.core.canonical import NOTHING, Delta, OpaqueDelta, ToolCallDelta
from woollama.core.wire.arguments import arguments_text

__all__ = ["CallReading"]


class _Call:
    def __init__(self, position: int, wire_index: int | None, wire_id: str | None) -> None:
        self.position = position
        self.wire_index = wire_index
        self.wire_id = wire_id
        self.opened = False
        self.waiting = ""


class CallReading:
    """Puts fragments together by index, else by id, else to the last call."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        """Reads the calls of one reply; ``new_id`` names those without an id (C-7)."""
        self._new_id = new_id
        self._calls: list[_Call] = []

    @property
    def any(self) -> bool:
        """Whether the reply calls a tool."""
        return bool(self._calls)

    def fragment(self, raw: Mapping[str, Any], out: list[Delta]) -> None:
        """Take in one element of ``tool_calls``."""
        function = raw.get("function")
        named = cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else NOTHING
        name = _filled(named.get("name"))
        call = self._find(raw.get("index"), _filled(raw.get("id")), name)
        arguments = arguments_text(named.get("arguments"))
        if not call.opened:
            call.waiting += arguments
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

    def _open(self, call: _Call, name: str, out: list[Delta]) -> None:
        call.opened = True
        identity = call.wire_id if call.wire_id is not None else f"call_{self._new_id()}"
        out.append(ToolCallDelta(call.position, identity, name, call.waiting))

    def _find(self, index: object, identity: str | None, name: str | None) -> _Call:
        if isinstance(index, int):
            known = [call for call in self._calls if call.wire_index == index]
            if not known:
                return self._new(index, identity)
            call = known[-1]
            other = identity is not None and call.wire_id not in {None, identity}
            if other and name is not None:
                return self._new(index, identity)
        else:
            same = [c for c in self._calls if identity is not None and c.wire_id == identity]
            if same:
                return same[-1]
            if identity is not None or name is not None or not self._calls:
                return self._new(None, identity)
            call = self._calls[-1]
        if call.wire_id is None and not call.opened:
            call.wire_id = identity
        return call

    def _new(self, index: int | None, identity: str | None) -> _Call:
        call = _Call(len(self._calls), index, identity)
        self._calls.append(call)
        return call


def _filled(value: object) -> str | None:
    # Later fragments carry empty ids and names (OC-7), some servers write the word null (OC-11).
    return value if isinstance(value, str) and value not in {"", "null"} else None
