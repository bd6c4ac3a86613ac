"""The strict Anthropic: what it refuses, what it takes, how it answers (N-20)."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from woollama.core.canonical import (
    AssistantMessage,
    Delta,
    FunctionCall,
    Reply,
    ToolCall,
    Usage,
    assemble,
    request_from_openai,
)
from woollama.core.errors import ProviderError
from woollama.core.testing.fake import FakeReply, FakeRequest, say
from woollama.core.testing.fakes.anthropic import AnthropicFake
from woollama.core.testing.fakes.anthropic_rules import signature_of
from woollama.core.wire import WireSettings
from woollama.core.wire.anthropic import ANTHROPIC

HEADERS = {
    "content-type": "application/json",
    "x-api-key": "sk-test",
    "anthropic-version": "2023-06-01",
}
HI: dict[str, Any] = {"role": "user", "content": "hi there"}
TOOL: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
OK = say("ok")


def post(
    body: Any, *, headers: Mapping[str, str] = HEADERS, path: str = "/v1/messages"
) -> FakeRequest:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return FakeRequest(method="POST", path=path, headers=headers, body=data)


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 4096, "messages": messages or [HI], **fields}


def answer(request: FakeRequest, script: Reply | FakeReply = OK, **options: Any) -> FakeReply:
    return AnthropicFake([script], **options).answer(request)


def payload(reply: FakeReply) -> Any:
    return json.loads(b"".join(reply.chunks))


def assert_refused(
    request: FakeRequest, status: int, type: str, *said: str, **options: Any
) -> None:
    reply = answer(request, **options)
    told = payload(reply)
    assert status == reply.status, told
    assert {"type", "error", "request_id"} == told.keys()
    assert ("error", type) == (told["type"], told["error"]["type"])
    assert "req_fake" == told["request_id"] == reply.headers["request-id"]
    for words in said:
        assert words in told["error"]["message"]


def assert_invalid(request: dict[str, Any], *said: str, version: str = "2023-06-01") -> None:
    headers = {**HEADERS, "anthropic-version": version}
    assert_refused(post(request, headers=headers), 400, "invalid_request_error", *said)


def assert_taken(request: dict[str, Any], *, version: str = "2023-06-01") -> None:
    reply = answer(post(request, headers={**HEADERS, "anthropic-version": version}))
    assert 200 == reply.status, payload(reply)


def turn(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def text(said: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **extra}


def call(identity: str = "a", **extra: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "f", "input": {}, **extra}


def result(identity: str = "a", **extra: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, **extra}


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in HEADERS.items() if name not in names}


def test_n_20_n_2_a_bearer_key_is_refused_whatever_stands_beside_it() -> None:
    bearer = {"authorization": "Bearer sk-test"}
    for headers in ({**without("x-api-key"), **bearer}, {**HEADERS, **bearer}):
        assert_refused(post(body(), headers=headers), 401, "authentication_error")
        listing = FakeRequest(method="GET", path="/v1/models", headers=headers)
        assert_refused(listing, 401, "authentication_error")


@pytest.mark.parametrize("key", [None, "", "sk-other"])
def test_a_missing_or_wrong_key_is_refused(key: str | None) -> None:
    headers = without("x-api-key") if key is None else {**HEADERS, "x-api-key": key}
    assert_refused(post(body(), headers=headers), 401, "authentication_error", key="sk-test")


def test_any_key_will_do_when_none_is_named() -> None:
    assert 200 == answer(post(body())).status
    assert 200 == answer(post(body()), key="sk-test").status


@pytest.mark.parametrize("version", [None, "2023-01-01", "latest"])
def test_n_20_a_missing_or_unknown_version_is_refused(version: str | None) -> None:
    headers = without("anthropic-version")
    if version is not None:
        headers["anthropic-version"] = version
    assert_refused(post(body(), headers=headers), 400, "invalid_request_error", "version")


def test_other_paths_and_methods_are_refused() -> None:
    assert_refused(post(body(), path="/messages"), 404, "not_found_error")
    assert_refused(post(body(), path="/v1/models"), 405, "invalid_request_error")
    got = FakeRequest(method="GET", path="/v1/messages", headers=HEADERS)
    assert_refused(got, 405, "invalid_request_error")


def test_a_body_that_is_too_large_is_refused() -> None:
    assert_refused(post(b" " * (32 * 1024 * 1024 + 1)), 413, "request_too_large")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"diagnostics":{"a":' + b"[" * 100_000])
def test_a_body_that_is_no_json_is_refused(data: bytes) -> None:
    assert_refused(post(data), 400, "invalid_request_error", "JSON")


def test_a_body_that_is_no_object_is_refused() -> None:
    assert_refused(post(b"[]"), 400, "invalid_request_error", "body")


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_n_20_a_required_field_that_is_missing_is_refused(name: str) -> None:
    request = {key: value for key, value in body().items() if key != name}
    assert_invalid(request, name)


UNKNOWN: list[dict[str, Any]] = [
    {"seed": 1},
    {"stop": ["a"]},
    {"reasoning_effort": "low"},
    {"tools": [{**TOOL, "parameters": {}}]},
    {"metadata": {"team": "x"}},
    {"output_config": {"verbosity": "low"}},
    {"thinking": {"type": "adaptive", "budget_tokens": 1024}},
    {"messages": [{**HI, "name": "Ann"}]},
    {"messages": [turn("user", text("a", colour="red"))]},
    {"messages": [turn("assistant", call(arguments="{}"))]},
    {"system": [text("A", title="t")]},
]


@pytest.mark.parametrize(
    "fields",
    UNKNOWN,
    ids=lambda fields: str(fields)[:40],
)
def test_n_20_an_unknown_field_is_refused_wherever_it_stands(fields: dict[str, Any]) -> None:
    assert_invalid(body(**fields), "unknown field")


WRONG: list[dict[str, Any]] = [
    {"model": ""},
    {"max_tokens": -1},
    {"max_tokens": 1.5},
    {"max_tokens": None},
    {"messages": []},
    {"messages": ["hi"]},
    {"messages": [{"role": "system", "content": "A"}]},
    {"messages": [{"role": "tool", "content": "A"}]},
    {"messages": [{"role": "user", "content": ""}]},
    {"messages": [{"role": "user", "content": " \n"}]},
    {"messages": [{"role": "user", "content": []}]},
    {"messages": [{"role": "user", "content": None}]},
    {"messages": [turn("user", text(""))]},
    {"messages": [turn("user", {"type": "input_audio"})]},
    {"messages": [turn("user", call())]},
    {"messages": [turn("assistant", result())]},
    {"messages": [turn("user", {"type": "thinking", "thinking": "", "signature": ""})]},
    {"messages": [turn("user", {"type": "image", "source": PDF})]},
    {"messages": [turn("user", {"type": "image", "source": {"type": "url", "url": "x"}})]},
    {"messages": [turn("user", {"type": "document", "source": {**PDF, "data": "data:"}})]},
    {"messages": [turn("assistant", call("a.b"))]},
    {"messages": [turn("assistant", call(""))]},
    {"messages": [turn("assistant", {**call(), "input": "{}"})]},
    {"messages": [turn("assistant", {**call(), "name": "server.tool"})]},
    {"system": ""},
    {"system": []},
    {"system": None},
    {"temperature": 1.5},
    {"top_p": -0.1},
    {"temperature": None},
    {"top_k": -1},
    {"stop_sequences": "a"},
    {"stop_sequences": [" "]},
    {"stream": "yes"},
    {"cache_control": {"type": "persistent"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1023}},
    {"thinking": {"type": "always"}},
    {"output_config": {"effort": "minimal"}, "thinking": {"type": "adaptive"}},
    {"output_config": {"format": {"type": "json_object"}}},
    {"tools": [{"name": "f"}]},
    {"tools": [{**TOOL, "name": "server.tool"}]},
    {"tools": [TOOL], "tool_choice": "auto"},
    {"tools": [TOOL], "tool_choice": {"type": "required"}},
    {"service_tier": "default"},
]


@pytest.mark.parametrize(
    "fields",
    WRONG,
    ids=lambda fields: str(fields)[:60],
)
def test_a_wrong_shape_is_refused(fields: dict[str, Any]) -> None:
    assert_invalid(body(**fields))


APART: list[tuple[dict[str, Any], str]] = [
    ({"output_config": {"effort": "low"}}, "adaptive thinking is required"),
    (
        {"output_config": {"effort": "low"}, "thinking": {"type": "disabled"}},
        "adaptive thinking is required",
    ),
    ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "budget_tokens"),
    ({"tools": [TOOL, TOOL]}, "unique"),
    ({"tools": [{"name": "f", "input_schema": {}}]}, "input_schema.type"),
    ({"tool_choice": {"type": "any"}}, "while providing tools"),
    ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}, "not found"),
    (
        {
            "tools": [TOOL],
            "tool_choice": {"type": "any"},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        },
        "forces tool use",
    ),
]


@pytest.mark.parametrize(
    ("fields", "said"),
    APART,
    ids=lambda value: str(value)[:40],
)
def test_n_20_ae_15_parts_that_do_not_go_together_are_refused(
    fields: dict[str, Any], said: str
) -> None:
    assert_invalid(body(**fields), said)


def test_n_12_a_model_before_4_6_refuses_adaptive_thinking_and_we_hint() -> None:
    asked = request_from_openai({"model": "m", "messages": [HI], "reasoning_effort": "low"})
    wire = ANTHROPIC.codec.encode(
        asked, base_url="http://peer.test/v1", stream=False, settings=WireSettings()
    )
    request = post(wire.body)
    assert 200 == answer(request).status
    reply = answer(request, adaptive=False)
    error = ANTHROPIC.codec.decode_error(
        reply.status, reply.headers, b"".join(reply.chunks), now=lambda: 0.0
    )
    assert ("invalid_request", "req_fake") == (error.kind, error.request_id)
    assert error.hint is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 1.0},
        {"top_p": 1},
        {"top_k": 5},
        {"messages": [HI, turn("assistant", {"type": "document", "source": PDF})]},
        {"messages": [turn("user", text("a", citations=[{"type": "page_location"}]))]},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_ae_1_the_newer_version_refuses_what_the_older_one_takes(fields: dict[str, Any]) -> None:
    assert_taken(body(**fields))
    assert_invalid(body(**fields), "permitted", version="2026-10-21")


def test_ae_1_the_newer_version_takes_the_rest() -> None:
    said = turn("user", {"type": "document", "source": PDF}, text("a"))
    assert_taken(body(said, {"role": "assistant", "content": "{"}), version="2026-10-21")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([turn("assistant", call())], "without tool_result"),
        ([turn("assistant", call()), HI], "without tool_result"),
        ([turn("assistant", call("a"), call("b")), turn("user", result("a"))], "['b']"),
        ([turn("assistant", call()), turn("user", text("x"), result())], "before other content"),
        ([turn("user", result())], "unexpected tool_use_id"),
        ([turn("assistant", call()), turn("user", result(), result())], "a single result"),
        ([turn("assistant", call(), call()), turn("user", result())], "must be unique"),
        (
            [turn("assistant", {"type": "thinking", "thinking": "x", "signature": "forged"})],
            "Invalid signature",
        ),
    ],
    ids=lambda value: str(value)[:50],
)
def test_ae_6_ae_24_a_history_that_does_not_fit_is_refused(
    messages: list[dict[str, Any]], said: str
) -> None:
    assert_invalid(body(*messages), said)


def test_ae_6_neighbours_of_one_role_are_one_turn() -> None:
    signed = {"type": "thinking", "thinking": "x", "signature": signature_of("x")}
    assert_taken(
        body(
            HI,
            turn("assistant", signed, {"type": "redacted_thinking", "data": "xx"}, text("Ok.")),
            turn("assistant", call("a"), call("b")),
            turn("user", result("a", content="1")),
            turn("user", result("b", content=[text("2")], is_error=True), text("and?")),
        )
    )


def test_its_models_are_listed_with_their_context() -> None:
    listing = FakeRequest(method="GET", path="/v1/models", headers=HEADERS)
    listed = answer(listing, models=("claude-x", "claude-y"))
    models = ANTHROPIC.codec.decode_models(b"".join(listed.chunks))
    assert [("claude-x", 200_000), ("claude-y", 200_000)] == [(m.id, m.context) for m in models]
    assert {"data": [], "has_more": False} == payload(answer(listing, models=()))


CALLS = (
    ToolCall(id="toolu_1", function=FunctionCall(name="f", arguments='{"city":"Oslo"}')),
    ToolCall(id="toolu_2", function=FunctionCall(name="g", arguments="{}")),
)
SPENT = Usage(
    prompt_tokens=108,
    completion_tokens=7,
    total_tokens=115,
    cached_tokens=100,
    cache_write_tokens=3,
    reasoning_tokens=2,
)
REPLIES = {
    "text": say("Hello, my friend."),
    "thinking": say("So.", reasoning="First this.\nThen that."),
    "calls": say("Looking.", calls=CALLS),
    "usage": say("ok", usage=SPENT),
    "counts": say("ok", usage=Usage(prompt_tokens=5, completion_tokens=2, total_tokens=7)),
    "cap": say("Hel", finish="length"),
    "empty": say(None),
    "refusal": Reply(
        id="msg_9",
        created=0,
        model="claude-y",
        message=AssistantMessage(content="So", refusal="Policy."),
        finish_reason="content_filter",
    ),
}


def read(reply: FakeReply) -> Reply:
    decoder = ANTHROPIC.codec.decoder(new_id=lambda: "made", now=lambda: 0.0)
    deltas: list[Delta] = []
    for chunk in reply.chunks:
        deltas += decoder.feed(chunk)
    return assemble([*deltas, *decoder.finish()])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", REPLIES)
def test_a_scripted_reply_is_said_in_the_dialect(name: str, stream: bool) -> None:
    said = REPLIES[name]
    got = read(answer(post(body(stream=stream)), said))
    expected, actual = said.message, got.message
    assert (expected.content, expected.reasoning, expected.refusal) == (
        actual.content,
        actual.reasoning,
        actual.refusal,
    )
    assert [(c.id, c.name, c.arguments) for c in expected.tool_calls] == [
        (c.id, c.name, c.arguments) for c in actual.tool_calls
    ]
    assert (said.id, said.model or "claude-x") == (got.id, got.model)
    assert said.finish_reason == got.finish_reason
    if said.usage is not None:
        assert said.usage == got.usage


def test_a_stream_comes_in_many_events_whose_names_are_their_types() -> None:
    reply = answer(post(body(stream=True)), say("Hello, my friend.", calls=CALLS))
    assert "text/event-stream" == reply.headers["content-type"]
    named = [chunk.split(b"\n")[0].removeprefix(b"event: ").decode() for chunk in reply.chunks]
    typed = [json.loads(chunk.split(b"\ndata: ")[1])["type"] for chunk in reply.chunks]
    assert named == typed
    assert ["message_start", "ping", "content_block_start"] == typed[:3]
    assert ["content_block_stop", "message_delta", "message_stop"] == typed[-3:]
    assert typed.count("content_block_delta") > 5


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_counted_by_words(stream: bool) -> None:
    asked = body(
        turn("user", text("one two"), {"type": "document", "source": PDF}),
        turn("assistant", text("three"), call(input={"city": "New York"})),
        turn("user", result(content="four five"), text("six")),
        system="be brief",
        stream=stream,
    )
    got = read(answer(post(asked), say("a b c", reasoning="d e", calls=CALLS[:1])))
    assert Usage(prompt_tokens=10, completion_tokens=6, total_tokens=16) == got.usage


def test_ae_4_thinking_is_not_shown_where_it_is_not_wanted() -> None:
    thinking = {"type": "adaptive", "display": "omitted"}
    got = read(answer(post(body(thinking=thinking)), REPLIES["thinking"]))
    assert got.message.reasoning is None
    kept = {"type": "thinking", "thinking": "", "signature": signature_of("")}
    assert (kept,) == got.message.opaque["anthropic"]


def test_the_native_word_of_a_reply_is_said() -> None:
    said = msgspec.structs.replace(OK, native_finish_reason="stop_sequence")
    told = payload(answer(post(body(stop_sequences=["END", "X"])), said))
    assert ("stop_sequence", "END") == (told["stop_reason"], told["stop_sequence"])
    assert payload(answer(post(body()), said))["stop_sequence"] is None


def test_a_reply_that_failed_is_an_error_of_the_server() -> None:
    failed = answer(post(body()), say("x", finish="error"))
    assert (500, "api_error") == (failed.status, payload(failed)["error"]["type"])


def test_a_raw_reply_is_said_as_it_is_and_the_script_ends() -> None:
    fake = AnthropicFake([FakeReply(status=529)])
    assert FakeReply(status=529) == fake.answer(post(body()))
    assert 500 == fake.answer(post(body())).status
    assert 2 == len(fake.requests)


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_it_takes_what_our_codec_encodes_turn_after_turn(replay: bool, stream: bool) -> None:
    fake = AnthropicFake(
        [say("Looking.", calls=CALLS, reasoning="hm"), say("3C.", reasoning="so")], key="sk-test"
    )
    asked = request_from_openai(
        {
            "model": "claude-x",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "w?"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                    ],
                },
            ],
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "reasoning_effort": "high",
            "temperature": 0.2,
            "stop": "END",
            "user": "u1",
        }
    )
    settings = WireSettings(replay_reasoning=replay, cache_control=True)
    replies: list[Reply] = []
    for _ in range(2):
        wire = ANTHROPIC.codec.encode(
            asked, base_url="http://peer.test/v1", stream=stream, settings=settings
        )
        reply = fake.answer(
            FakeRequest(
                method=wire.method,
                path="/v1/messages",
                headers={**wire.headers, "x-api-key": "sk-test"},
                body=wire.body,
            )
        )
        assert 200 == reply.status, payload(reply)
        replies.append(read(reply))
        results = request_from_openai(
            {
                "model": "claude-x",
                "messages": [
                    {"role": "tool", "tool_call_id": "toolu_1", "content": "3C"},
                    {"role": "tool", "tool_call_id": "toolu_2", "content": ""},
                    {"role": "user", "content": "and?"},
                ],
            }
        ).messages
        history = (*asked.messages, replies[-1].message, *results)
        asked = msgspec.structs.replace(asked, messages=history)
    assert ["Looking.", "3C."] == [reply.message.content for reply in replies]
    sent = json.loads(fake.requests[1].body)["messages"][1]["content"]
    assert replay is (sent[0]["type"] == "thinking")


def test_its_refusals_are_read_as_errors_of_the_provider() -> None:
    reply = AnthropicFake().error(529, "Overloaded", details={"error_code": "busy"})
    error = ANTHROPIC.codec.decode_error(
        reply.status, reply.headers, b"".join(reply.chunks), now=lambda: 0.0
    )
    assert isinstance(error, ProviderError)
    assert ("overloaded", "busy", True) == (error.kind, error.code, error.retryable)
