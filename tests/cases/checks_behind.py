"""Checks of what the servers behind the product got: upstreams and MCP servers."""

import json
import re
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.cases.comparison import MISSING, compare, dig
from tests.cases.evaluation import Evaluate
from tests.cases.scene import Scene
from tests.cases.schema import Check
from tests.cases.workspace import messages_of_mcp_server

__all__ = ["BEHIND_CHECKS"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REFERENCE = re.compile(r'"\$ref": "#/([^"]+)"')


def _upstream(scene: Scene, check: Check) -> str | None:
    return compare(dig(scene.request(check).json, check.path or ""), check)


def _raw(scene: Scene, check: Check) -> str | None:
    request = scene.request(check)
    return compare(f"{request.head}\n{request.body.decode('utf-8', 'replace')}", check)


def _header(scene: Scene, check: Check) -> str | None:
    return compare(scene.request(check).headers.get(check.name.lower(), MISSING), check)


def _count(scene: Scene, check: Check) -> str | None:
    paths = [request.path for request in scene.requests(check)]
    return compare(sum(check.path in {None, path} for path in paths), check)


def _find(scene: Scene, check: Check) -> str | None:
    posts = [request for request in scene.requests(check) if request.method == "POST"]
    found = [dig(request.json, check.path or "") for request in posts]
    return None if found == check.equals_all else f"are {found}, wanted {check.equals_all}"


def _closed(scene: Scene, check: Check) -> str | None:
    request = scene.request(check)
    reply = scene.reply(check)
    left_at = reply.left_at or reply.ended_at
    request.closed.wait(max(0, left_at + check.within_ms / 1000 - time.monotonic()))
    if request.closed_at is None:
        return f"still open {check.within_ms} ms later"
    late_s = request.closed_at - left_at
    return f"only {late_s:.2f} s after the client left" if late_s * 1000 > check.within_ms else None


def _tools_count(scene: Scene, check: Check) -> str | None:
    return compare(len(scene.request(check).tools), check)


def _valid_tools(scene: Scene, check: Check) -> str | None:
    tools = scene.request(check).tools
    names = [str(tool.get("name")) for tool in tools]
    if len(set(names)) != len(names):
        return f"one name twice: {names}"
    if check.count is not None and len(names) != check.count:
        return f"are {len(names)}, wanted {check.count}: {names}"
    wrong = [name for name in names if check.names and not _NAME.fullmatch(name)]
    if wrong:
        return f"a name that providers refuse: {wrong}"
    schemas = [(tool.get("parameters") or tool.get("input_schema")) for tool in tools]
    found = (_wrong_schema(name, schema) for name, schema in zip(names, schemas, strict=True))
    return next((problem for problem in found if problem), None)


def _wrong_schema(name: str, schema: Any) -> str | None:
    text = json.dumps(schema)
    if dig(schema, "type") != "object" or not isinstance(dig(schema, "properties"), dict):
        return f"the parameters of {name!r} are no object with properties: {text}"
    dangling = [
        path for path in _REFERENCE.findall(text) if dig(schema, path.split("/")) is MISSING
    ]
    return f"the parameters of {name!r} refer to nothing: {dangling}" if dangling else None


def _tool_result(scene: Scene, check: Check) -> str | None:
    messages = dig(scene.request(check).json, "messages")
    results = [message for message in messages if dig(message, "role") == "tool"]
    if check.count is not None and len(results) != check.count:
        return f"are {len(results)}, wanted {check.count}"
    return compare(dig(results[check.i], check.path or "content"), check)


def _mcp_messages(scene: Scene, check: Check) -> list[dict[str, Any]]:
    return messages_of_mcp_server(scene.folder, check.server, check.method or "tools/call")


def _mcp(scene: Scene, check: Check) -> str | None:
    message = _mcp_messages(scene, check)[check.n]
    return compare(dig(message, check.path or "params.arguments"), check)


def _mcp_count(scene: Scene, check: Check) -> str | None:
    return compare(len(_mcp_messages(scene, check)), check)


BEHIND_CHECKS: Mapping[str, Evaluate] = MappingProxyType(
    {
        "upstream": _upstream,
        "upstream_raw": _raw,
        "upstream_header": _header,
        "upstream_count": _count,
        "upstream_find": _find,
        "upstream_closed": _closed,
        "upstream_valid_tools": _valid_tools,
        "upstream_valid_tools_count": _tools_count,
        "upstream_tool_result": _tool_result,
        "mcp": _mcp,
        "mcp_count": _mcp_count,
    }
)
"""Each by its name: requests, tools offered, results sent back, messages, closed connections."""
