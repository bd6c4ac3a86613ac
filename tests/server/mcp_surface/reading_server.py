"""A stdio MCP server of the older protocol that has things to read; standard library only.

    python reading_server.py [--pages N] [--circle] [--no-templates] [--odd] [--quiet]

Its tool `grow` adds a resource and says so.
"""

import argparse
import json
import os
import sys
from typing import Any


def send(message: dict[str, Any]) -> None:
    os.write(1, (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.resources: list[Any] = [{"uri": f"r://{n}", "name": f"n{n}"} for n in range(5)]
        if options.odd:
            self.resources += ["no resource", {"name": "no uri"}, {"uri": "r://bare"}]
        self.asked = 0

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message:
                self.request(message["id"], message["method"], message.get("params") or {})

    def request(self, call: Any, method: str, params: dict[str, Any]) -> None:
        match method:
            case "initialize":
                resources = {} if self.options.quiet else {"listChanged": True}
                send(
                    {
                        "id": call,
                        "result": {
                            "protocolVersion": params["protocolVersion"],
                            "capabilities": {"tools": {}, "resources": resources},
                            "serverInfo": {"name": "reading", "version": "1"},
                        },
                    }
                )
            case "tools/list":
                tools: list[dict[str, Any]] = [
                    {"name": name, "inputSchema": {}} for name in ("grow", "asked")
                ]
                send({"id": call, "result": {"tools": tools}})
            case "tools/call":
                if params["name"] == "grow":
                    self.resources.append({"uri": "r://late", "name": "late"})
                    if not self.options.quiet:
                        send({"method": "notifications/resources/list_changed"})
                content = [{"type": "text", "text": str(self.asked)}]
                send({"id": call, "result": {"content": content}})
            case "resources/list":
                self.asked += 1
                self.page(call, int(params.get("cursor") or 0))
            case "resources/templates/list" if not self.options.no_templates:
                send({"id": call, "result": {"resourceTemplates": []}})
            case "resources/read":
                contents = [{"uri": params["uri"], "text": json.dumps(params.get("_meta"))}]
                result = {"contents": contents, "x-novel": None}
                send({"id": call, "result": result})
            case _:
                send({"id": call, "error": {"code": -32601, "message": "no such method"}})

    def page(self, call: Any, start: int) -> None:
        size = self.options.pages or len(self.resources)
        page: dict[str, Any] = {"resources": self.resources[start : start + size]}
        if self.options.circle:
            page["nextCursor"] = "0"
        elif start + size < len(self.resources):
            page["nextCursor"] = str(start + size)
        send({"id": call, "result": page})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int)
    for flag in ("--circle", "--no-templates", "--odd", "--quiet"):
        parser.add_argument(flag, action="store_true")
    Server(parser.parse_args()).serve()


if __name__ == "__main__":
    main()
