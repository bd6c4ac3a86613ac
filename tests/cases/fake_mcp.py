"""A scripted MCP server on stdin and stdout: ``fake_mcp.py SCRIPT.json LOG``.

The script, a JSON object: ``tools`` (as ``tools/list`` gives them), ``page_size`` (of that list),
``noise`` (lines written before anything is asked), ``exit_at_start``, ``calls`` (by the tool's name
a list of outcomes, of which the last one repeats: ``{"result": …}``, ``{"error": …}`` or
``{"action": "hang"}``, each with ``delay_ms``) and ``after_call`` (by the tool's name
``{"add_tools": […]}``, once, and the client is told). A tool without ``calls`` answers
``ok:<arguments as JSON>``. Its start and each message that it gets are noted in LOG.

It needs nothing but Python itself, so that it starts at once.
"""

import json
import sys
import threading
import time
from collections import Counter
from io import TextIOWrapper
from pathlib import Path
from typing import Any

_EMPTY_LISTS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_NOTHING: dict[str, Any] = {}


class FakeServer:
    """Answers as the script says; a call that takes long holds up no other message."""

    def __init__(self, script: dict[str, Any], log: Path) -> None:
        self._script = script
        self._log = log
        self._lock = threading.Lock()
        self._tools: list[dict[str, Any]] = list(script.get("tools", []))
        self._counts: Counter[str] = Counter()

    def run(self) -> int:
        """Serves until the input ends; the exit status."""
        self._note({"event": "start"})
        if self._script.get("exit_at_start"):
            sys.stderr.write("boom: cannot start\n")
            return 3
        for line in self._script.get("noise", []):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        for line in sys.stdin:
            if line.strip():
                message = json.loads(line)
                self._note({"event": "message", "message": message})
                if message.get("id") is not None:
                    self._answer(message)
        return 0

    def _answer(self, message: dict[str, Any]) -> None:
        method: Any = message.get("method")
        params: dict[str, Any] = message.get("params") or _NOTHING
        if method == "tools/call":
            arguments = (message["id"], params.get("name"), params.get("arguments"))
            threading.Thread(target=self._call, args=arguments, daemon=True).start()
            return
        match method:
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }
            case "tools/list":
                result = self._page(int(params.get("cursor") or 0))
            case "ping":
                result = {}
            case "prompts/list" | "resources/list" | "resources/templates/list":
                result = {_EMPTY_LISTS[method]: []}
            case _:
                error = {"code": -32601, "message": "no such method"}
                self._send({"id": message["id"], "error": error})
                return
        self._send({"id": message["id"], "result": result})

    def _page(self, start: int) -> dict[str, Any]:
        end = start + (self._script.get("page_size") or len(self._tools))
        page: dict[str, Any] = {"tools": self._tools[start:end]}
        if end < len(self._tools):
            page["nextCursor"] = str(end)
        return page

    def _call(self, id: Any, name: str, arguments: Any) -> None:
        outcomes = self._script.get("calls", {}).get(name) or [_echo(arguments)]
        with self._lock:
            outcome = outcomes[min(self._counts[name], len(outcomes) - 1)]
            self._counts[name] += 1
            first = self._counts[name] == 1
        time.sleep(outcome.get("delay_ms", 0) / 1000)
        if outcome.get("action") == "hang":
            return
        kind = "error" if "error" in outcome else "result"
        self._send({"id": id, kind: outcome[kind]})
        change = self._script.get("after_call", {}).get(name)
        if change and first:
            self._tools = [*self._tools, *change["add_tools"]]
            self._send({"method": "notifications/tools/list_changed"})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        with self._lock:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def _note(self, note: dict[str, Any]) -> None:
        with self._lock, self._log.open("a", encoding="utf-8") as log:
            log.write(f"{json.dumps(note)}\n")


def _echo(arguments: Any) -> dict[str, Any]:
    text = "ok:" + json.dumps(arguments, sort_keys=True, ensure_ascii=False)
    return {"result": {"content": [{"type": "text", "text": text}]}}


def main() -> int:
    """Runs the server that the command line names."""
    # The streams carry UTF-8, whatever the locale is.
    for stream in (sys.stdin, sys.stdout):
        assert isinstance(stream, TextIOWrapper)
        stream.reconfigure(encoding="utf-8")
    script = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    return FakeServer(script, Path(sys.argv[2])).run()


if __name__ == "__main__":
    sys.exit(main())
