"""A stdio MCP server of the older protocol that does what a test wants; standard library only.

    python scripted_server.py [--pages N] [--noise] [--deaf | --shy | --mute] [--stubborn]
                              [--circle] [--instance ID] [--tools FILE]

What each tool does is in the method `do_<tool>`. Tools may be called in any number at once.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)

TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "description": "gives back its arguments", "inputSchema": OBJECT},
    {"name": "pid", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "heard", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "environment", "inputSchema": OBJECT},
    {"name": "barrier", "inputSchema": OBJECT},
    {"name": "hang", "inputSchema": OBJECT},
    {"name": "die", "inputSchema": OBJECT},
    {"name": "die_once", "inputSchema": OBJECT, "annotations": {"idempotentHint": True}},
    {"name": "grow", "inputSchema": OBJECT},
    {"name": "spawn", "inputSchema": OBJECT},
    {"name": "steps", "inputSchema": OBJECT},
    {"name": "give", "inputSchema": OBJECT},
    {"name": "refuse", "inputSchema": OBJECT},
    {"name": "complain", "inputSchema": OBJECT},
]


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.tools = list(TOOLS)
        if options.tools:
            self.tools = json.loads(Path(options.tools).read_text("utf-8"))
        self.heard: list[str] = []
        self.waiting: list[Any] = []
        self.lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        with self.lock:
            os.write(1, data.encode())

    def answer(self, call: Any, result: dict[str, Any]) -> None:
        self.send({"id": call, "result": result})

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            self.heard.append(message["method"])
            if "id" in message:
                self.request(message["id"], message["method"], message.get("params") or {})

    def request(self, call: Any, method: str, params: dict[str, Any]) -> None:
        if self.options.mute:
            return
        if method == "server/discover" and self.options.deaf:
            return
        if method == "server/discover" and self.options.shy:
            os._exit(4)
        match method:
            case "initialize":
                meta = {"_meta": {"woollama/instance": self.options.instance}}
                self.answer(
                    call,
                    {
                        "protocolVersion": params["protocolVersion"],
                        "capabilities": {"tools": {"listChanged": True}},
                        "serverInfo": {"name": "scripted", "version": "1"},
                        **(meta if self.options.instance else {}),
                    },
                )
            case "tools/list":
                self.answer(call, self.page(int(params.get("cursor") or 0)))
            case "tools/call":
                self.call(call, params["name"], params)
            case "ping":
                self.answer(call, {})
            case _:
                self.send({"id": call, "error": {"code": -32601, "message": "no such method"}})

    def page(self, start: int) -> dict[str, Any]:
        size = self.options.pages or len(self.tools)
        page: dict[str, Any] = {"tools": self.tools[start : start + size]}
        if self.options.circle:
            page["nextCursor"] = "0"
        elif start + size < len(self.tools):
            page["nextCursor"] = str(start + size)
        return page

    def call(self, call: Any, name: str, params: dict[str, Any]) -> None:
        do = getattr(self, f"do_{name}", None)
        if do is None:
            self.say(call, f"called {name}")
        else:
            do(call, params.get("arguments") or {}, params.get("_meta") or {})

    def do_echo(self, call: Any, args: dict[str, Any], meta: dict[str, Any]) -> None:
        self.say(call, args, {"seen": args, "meta": meta})

    def do_pid(self, call: Any, _args: dict[str, Any], _meta: dict[str, Any]) -> None:
        self.say(call, os.getpid())

    def do_heard(self, call: Any, _args: dict[str, Any], _meta: dict[str, Any]) -> None:
        self.say(call, self.heard)

    def do_environment(self, call: Any, _args: dict[str, Any], _meta: dict[str, Any]) -> None:
        self.say(call, dict(os.environ))

    def do_barrier(self, call: Any, args: dict[str, Any], _meta: dict[str, Any]) -> None:
        """Answers when as many are in flight as each of them says."""
        self.waiting.append(call)
        if len(self.waiting) == args["of"]:
            for each in self.waiting:
                self.say(each, "together")

    def do_hang(self, call: Any, args: dict[str, Any], meta: dict[str, Any]) -> None:
        pass

    def do_die(self, _call: Any, _args: dict[str, Any], _meta: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def do_die_once(self, call: Any, args: dict[str, Any], _meta: dict[str, Any]) -> None:
        try:
            Path(args["mark"]).mkdir()
        except FileExistsError:
            self.say(call, "alive")
        else:
            os._exit(9)

    def do_grow(self, call: Any, args: dict[str, Any], _meta: dict[str, Any]) -> None:
        self.tools.append({"name": args["name"], "inputSchema": OBJECT})
        self.send({"method": "notifications/tools/list_changed"})
        self.say(call, "grown")

    def do_spawn(self, call: Any, _args: dict[str, Any], _meta: dict[str, Any]) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", "import signal; [signal.pause() for _ in iter(int, 1)]"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.say(call, child.pid)

    def do_steps(self, call: Any, _args: dict[str, Any], meta: dict[str, Any]) -> None:
        for step in (1, 2):
            progress = {"progressToken": meta["progressToken"], "progress": step, "total": 2}
            self.send({"method": "notifications/progress", "params": progress})
        self.say(call, "done")

    def do_give(self, call: Any, args: dict[str, Any], _meta: dict[str, Any]) -> None:
        self.answer(call, args["result"])

    def do_refuse(self, call: Any, _args: dict[str, Any], _meta: dict[str, Any]) -> None:
        self.send({"id": call, "error": {"code": -32602, "message": "bad-params-77"}})

    def do_complain(self, call: Any, args: dict[str, Any], _meta: dict[str, Any]) -> None:
        os.write(2, (args["text"] + "\n").encode())
        self.say(call, "said")

    def say(self, call: Any, value: Any, structured: Any = None) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if structured is not None:
            result["structuredContent"] = structured
        self.answer(call, result)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int)
    parser.add_argument("--tools")
    parser.add_argument("--instance")
    for flag in ("--noise", "--deaf", "--shy", "--mute", "--stubborn", "--circle"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    if options.noise:
        os.write(1, 'Server v1.2 …\n\n{"level":"info","msg":"not rpc"}\n'.encode())
    if options.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Server(options).serve()
    while options.stubborn:
        signal.pause()


if __name__ == "__main__":
    main()
