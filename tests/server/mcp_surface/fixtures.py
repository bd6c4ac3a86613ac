"""An MCP server with what the conformance suite calls by name; from the SDK, on stdio, both eras.

    python fixtures.py [--tools-only]

Tools that ask a person something do it in the way of the era that is spoken.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMA_2020: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DEFAULTS_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
}
ENUMS_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": f"value{n}", "title": title}
                for n, title in ((1, "First Option"), (2, "Second Option"), (3, "Third Option"))
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": f"value{n}", "title": title}
                    for n, title in ((1, "First Choice"), (2, "Second Choice"), (3, "Third Choice"))
                ]
            },
        },
    },
}
CONTENT: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [{"type": "text", "text": "This is a simple text response for testing."}],
    "test_image_content": [{"type": "image", "data": PNG, "mimeType": "image/png"}],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }
    ],
    "test_multiple_content_types": [
        {"type": "text", "text": "Multiple content types test:"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": '{"test":"data","value":123}',
            },
        },
    ],
}
NAMES = (
    *CONTENT,
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
)
FORMS = {
    "test_elicitation": ("message", NAME_FORM),
    "test_elicitation_sep1034_defaults": ("Please review", DEFAULTS_FORM),
    "test_elicitation_sep1330_enums": ("Please choose", ENUMS_FORM),
}
SAMPLE: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}
        ],
        "maxTokens": 100,
    },
}
ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
STATE = "signed-by-the-fixture"
UNCACHED = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


def form(message: str, schema: dict[str, Any]) -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


ASK_NAME = form("What is your name?", NAME_FORM)
REQUIRED: dict[str, dict[str, Any]] = {
    "elicitation": {"user_name": ASK_NAME},
    "sampling": {"capital_question": SAMPLE},
    "list_roots": {"client_roots": ROOTS},
    "request_state": {"confirm": form("Please confirm", NAME_FORM)},
    "tampered_state": {"confirm": form("Please confirm", NAME_FORM)},
    "multiple_inputs": {"user_name": ASK_NAME, "greeting": SAMPLE, "client_roots": ROOTS},
}
WITH_STATE = frozenset({"request_state", "tampered_state", "multiple_inputs"})


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


async def list_tools(_ctx: Any, _params: Any) -> dict[str, Any]:
    tools: list[dict[str, Any]] = [
        {"name": name, "description": f"{name} of the fixtures", "inputSchema": OBJECT}
        for name in NAMES
    ]
    tools.append(
        {
            "name": "json_schema_2020_12_tool",
            "description": "Tool with JSON Schema 2020-12 features",
            "inputSchema": SCHEMA_2020,
        }
    )
    return {"tools": tools, **UNCACHED}


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    name, raw = params.name, dict(ctx.params)
    if name in CONTENT:
        return complete({"content": CONTENT[name]})
    if name in FORMS:
        return await ask_form(ctx, name, raw)
    if name in DOES:
        return await DOES[name](ctx, raw)
    if name.startswith("test_input_required_result"):
        return require_input(name, raw)
    return complete(text(name))


def complete(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "resultType": "complete"}


def asks(requests: dict[str, Any], state: str | None = None) -> dict[str, Any]:
    more = {} if state is None else {"requestState": state}
    return {"resultType": "input_required", "inputRequests": requests, **more}


async def ask_form(ctx: Any, name: str, raw: dict[str, Any]) -> dict[str, Any]:
    message, schema = FORMS[name]
    message = str(raw.get("arguments", {}).get("message", message))
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        if "question" not in raw.get("inputResponses", {}):
            return asks({"question": form(message, schema)})
        answer: dict[str, Any] = raw["inputResponses"]["question"]
    else:
        given = await ctx.session.send_request(
            types.ElicitRequest.model_validate(form(message, schema)),
            types.ElicitResult,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
        answer = given.model_dump(by_alias=True, mode="json", exclude_none=True)
    said = f"action={answer['action']}, content={json.dumps(answer.get('content'))}"
    return complete(text(f"User response: {said}"))


async def fail(_ctx: Any, _raw: dict[str, Any]) -> dict[str, Any]:
    said = "This tool intentionally returns an error for testing"
    return complete({**text(said), "isError": True})


async def report(ctx: Any, _raw: dict[str, Any]) -> dict[str, Any]:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
    return complete(text("done"))


async def log(ctx: Any, raw: dict[str, Any]) -> dict[str, Any]:
    """Always to the older protocol; to the newer one when it was asked to."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    if not modern or types.LOG_LEVEL_META_KEY in raw["_meta"]:
        for said in ("started", "processing data", "completed"):
            message = types.LoggingMessageNotificationParams(level="info", data=f"Tool {said}")
            await ctx.session.send_notification(
                types.LoggingMessageNotification(params=message), related_request_id=ctx.request_id
            )
    return complete(text("logged"))


async def sample(ctx: Any, _raw: dict[str, Any]) -> dict[str, Any]:
    request = types.CreateMessageRequest.model_validate(SAMPLE)
    answer = await ctx.session.send_request(request, types.CreateMessageResult)
    return complete(text(f"LLM response: {answer.content}"))


async def need_sampling(_ctx: Any, raw: dict[str, Any]) -> dict[str, Any]:
    if "sampling" not in raw["_meta"]["io.modelcontextprotocol/clientCapabilities"]:
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool samples", needed)
    return complete(text("sampled"))


async def stream_question(ctx: Any, _raw: dict[str, Any]) -> dict[str, Any]:
    await ctx.session.report_progress(1, 2)
    return asks({"user_name": ASK_NAME})


DOES: dict[str, Callable[[Any, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "test_error_handling": fail,
    "test_tool_with_progress": report,
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_sampling": sample,
    "test_missing_capability": need_sampling,
    "test_streaming_elicitation": stream_question,
}


def require_input(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = raw.get("inputResponses", {})
    state = raw.get("requestState")
    kind = name.removeprefix("test_input_required_result_")
    if kind == "multi_round":
        return rounds(answers)
    if kind == "tampered_state" and state not in (None, STATE):
        raise MCPError(types.INVALID_PARAMS, "the state was tampered with")
    if kind == "capabilities":
        declared = raw["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        requests = {"sample": SAMPLE} if "sampling" in declared else {}
        requests |= {"name": ASK_NAME} if "elicitation" in declared else {}
        return asks(requests)
    requests = REQUIRED[kind]
    if requests.keys() <= answers.keys():
        return complete(text(f"state-ok {json.dumps(answers)}"))
    return asks(requests, STATE if kind in WITH_STATE else None)


def rounds(answers: dict[str, Any]) -> dict[str, Any]:
    if "step2" in answers:
        return complete(text("both steps"))
    if "step1" in answers:
        return asks({"step2": form("Step 2: What is your favorite color?", NAME_FORM)}, "two")
    return asks({"step1": form("Step 1: What is your name?", NAME_FORM)}, "one")


RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}


async def list_resources(_ctx: Any, _params: Any) -> dict[str, Any]:
    listed = [
        {"uri": uri, "name": uri, "description": "of the fixtures", "mimeType": each["mimeType"]}
        for uri, each in RESOURCES.items()
    ]
    return {"resources": listed, **UNCACHED}


async def list_templates(_ctx: Any, _params: Any) -> dict[str, Any]:
    template = {"uriTemplate": "test://template/{id}/data", "name": "template"}
    return {"resourceTemplates": [template], **UNCACHED}


async def read_resource(_ctx: Any, params: types.ReadResourceRequestParams) -> dict[str, Any]:
    uri = params.uri
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}], **UNCACHED}
    if uri.startswith("test://template/"):
        number = uri.split("/")[3]
        said = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        content = {"uri": uri, "mimeType": "application/json", "text": json.dumps(said)}
        return {"contents": [content], **UNCACHED}
    raise MCPError(types.INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})


async def main() -> None:
    handlers: dict[str, Any] = {"on_list_tools": list_tools, "on_call_tool": call_tool}
    if "--tools-only" not in sys.argv:
        handlers |= {
            "on_list_resources": list_resources,
            "on_list_resource_templates": list_templates,
            "on_read_resource": read_resource,
        }
    server: Server[Any] = Server("fixtures", version="1", **handlers)
    async with stdio_server() as (read, write):
        options = server.create_initialization_options(NotificationOptions())
        await server.run(read, write, options)


if __name__ == "__main__":
    anyio.run(main)
