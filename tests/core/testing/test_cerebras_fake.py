"""The strict Cerebras: it takes what our codec writes and refuses what it does not know."""

import json
from typing import Any

import pytest

from woollama.core.canonical import FunctionCall, Reply, ToolCall, Usage, assemble
from woollama.core.testing.fake import FakeReply, FakeRequest, say
from woollama.core.testing.fakes.cerebras import CerebrasFake
from woollama.core.wire.cerebras import CEREBRAS

PATH = "/v1/chat/completions"
HI: dict[str, Any] = {"role": "user", "content": "hi there"}
CALL: dict[str, Any] = {
    "id": "a",
    "type": "function",
    "function": {"name": "f", "arguments": "{}"},
}
CALLED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "a", "content": "1"}
LOOK = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"a":1}'))


def post(fake: CerebrasFake, body: Any, **headers: str) -> FakeReply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    request = FakeRequest(
        method="POST", path=PATH, headers=given or {"authorization": "Bearer k"}, body=data
    )
    return fake.answer(request)


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-oss-120b", "messages": list(messages or (HI,)), **fields}


def read(reply: FakeReply) -> Reply:
    decoder = CEREBRAS.codec.decoder(new_id=lambda: "id", now=lambda: 0.0)
    deltas = [delta for chunk in reply.chunks for delta in decoder.feed(chunk)]
    return assemble([*deltas, *decoder.finish()])


def error_of(reply: FakeReply) -> dict[str, Any]:
    return json.loads(b"".join(reply.chunks))


@pytest.mark.parametrize("stream", [True, False])
def test_a_scripted_reply_comes_back_whole(stream: bool) -> None:
    scripted = say("It is 3 C. ", calls=[LOOK], reasoning="I must look.")
    got = read(post(CerebrasFake([scripted]), chat(stream=stream)))
    assert (scripted.message, "tool_calls") == (got.message, got.finish_reason)
    assert ("reply-1", 1_700_000_000, "gpt-oss-120b") == (got.id, got.created, got.model)
    assert Usage(prompt_tokens=2, completion_tokens=8, total_tokens=10) == got.usage


def test_cb_3_usage_and_time_come_with_the_finish_reason() -> None:
    reply = post(CerebrasFake([say("a b")]), chat(stream=True))
    assert "text/event-stream" == reply.headers["content-type"]
    *chunks, last, done = reply.chunks
    assert b"data: [DONE]\n\n" == done
    assert 3 == len(chunks)
    assert not any(b"usage" in chunk for chunk in chunks)
    payload = json.loads(last.removeprefix(b"data: "))
    assert {"usage", "time_info"} <= payload.keys()
    assert "stop" == payload["choices"][0]["finish_reason"]


def test_cb_4_later_fragments_of_a_call_have_null_for_id_and_name() -> None:
    reply = post(CerebrasFake([say(calls=[LOOK])]), chat(stream=True))
    deltas = [
        json.loads(c.removeprefix(b"data: "))["choices"][0]["delta"] for c in reply.chunks[:-1]
    ]
    fragments = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert [("call_1", "look"), (None, None)] == [
        (fragment["id"], fragment["function"]["name"]) for fragment in fragments
    ]


@pytest.mark.parametrize(
    ("model", "format", "content", "reasoning"),
    [
        ("gpt-oss-120b", "parsed", "4", "2+2"),
        ("gpt-oss-120b", "raw", "2+24", None),
        ("zai-glm-4.7", "raw", "<think>2+2</think>4", None),
        ("zai-glm-4.7", "hidden", "4", None),
    ],
)
def test_cb_7_thinking_is_shown_as_asked(
    model: str, format: str, content: str, reasoning: str | None
) -> None:
    fake = CerebrasFake([say("4", reasoning="2+2")])
    got = read(post(fake, chat() | {"model": model, "reasoning_format": format})).message
    assert (content, reasoning) == (got.content, got.reasoning)


def test_cb_7_without_thinking_there_is_nothing_to_show() -> None:
    fake = CerebrasFake([say(calls=[LOOK])])
    assert None is read(post(fake, chat(reasoning_format="raw"))).message.content


def test_usage_and_finish_are_as_scripted() -> None:
    usage = Usage(prompt_tokens=5, completion_tokens=6, cached_tokens=1)
    got = read(post(CerebrasFake([say("a", finish="length", usage=usage)]), chat()))
    assert ("length", 1) == (got.finish_reason, got.usage and got.usage.cached_tokens)
    odd = read(post(CerebrasFake([say("a", finish="error")]), chat()))
    assert "stop" == odd.finish_reason


def test_the_list_of_models() -> None:
    wire = CEREBRAS.codec.models_request("http://h/v1")
    request = FakeRequest(
        method=wire.method, path="/v1/models", headers={"authorization": "Bearer k"}
    )
    reply = CerebrasFake(models=["a", "b"]).answer(request)
    found = CEREBRAS.codec.decode_models(b"".join(reply.chunks))
    assert [("a", "Cerebras"), ("b", "Cerebras")] == [(m.id, m.owned_by) for m in found]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/responses"), ("GET", PATH), ("POST", "/v1/models")]
)
def test_other_paths_are_not_there(method: str, path: str) -> None:
    assert 404 == CerebrasFake().answer(FakeRequest(method=method, path=path)).status


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [
        (None, {"authorization": "Bearer any"}, 200),
        (None, {"authorization": "Bearer "}, 401),
        (None, {"authorization": "Basic any"}, 401),
        (None, {"x_api_key": "any"}, 401),
        ("k", {"authorization": "Bearer k"}, 200),
        ("k", {"authorization": "Bearer other"}, 401),
    ],
)
def test_a_key_is_a_bearer_or_is_refused(
    key: str | None, headers: dict[str, str], status: int
) -> None:
    reply = post(CerebrasFake([say("a")], key=key), chat(), **headers)
    assert status == reply.status
    if status == 401:
        assert "wrong_api_key" == error_of(reply)["code"]


def test_a_model_that_is_not_there_is_not_found() -> None:
    reply = post(CerebrasFake([say("a")]), chat() | {"model": "other"})
    assert (404, "model_not_found") == (reply.status, error_of(reply)["code"])


def test_the_end_of_the_script_is_an_error() -> None:
    assert (500, "server_error") == (
        post(CerebrasFake(), chat()).status,
        error_of(post(CerebrasFake(), chat()))["type"],
    )


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    (chat(reasoning="high"), "reasoning"),
    (chat(enable_thinking=True), "enable_thinking"),
    (chat(options={}), "options"),
    (chat({**HI, "foo": 1}), "messages.0.user.foo"),
    (
        chat(HI, {"role": "assistant", "content": "a", "reasoning_content": "t"}),
        "messages.1.assistant.reasoning_content",
    ),
    (
        chat(HI, {"role": "assistant", "content": "a", "reasoning_details": []}),
        "messages.1.assistant.reasoning_details",
    ),
    (
        chat({**CALLED, "tool_calls": [{**CALL, "extra_content": {}}]}),
        "messages.0.assistant.tool_calls.0.extra_content",
    ),
]


@pytest.mark.parametrize(("body", "place"), UNKNOWN)
def test_cb_1_cb_2_an_unknown_property_is_refused_by_its_place(
    body: dict[str, Any], place: str
) -> None:
    reply = post(CerebrasFake([say("a")]), body)
    assert 400 == reply.status
    assert {
        "message": f"{place}: property '{place}' is unsupported",
        "type": "invalid_request_error",
        "param": "validation_error",
        "code": "wrong_api_format",
    } == error_of(reply)


REFUSED: list[tuple[Any, str]] = [
    (b"", "truncated"),
    ([], "Expected `object`"),
    ({"messages": [HI]}, "missing required field `model`"),
    ({"model": "gpt-oss-120b", "messages": []}, "at least one message"),
    (chat({"content": "a"}), "missing required field `role`"),
    (chat({"role": "owner", "content": "a"}), "Invalid value 'owner'"),
    (chat({"role": "tool", "content": "a"}), "missing required field `tool_call_id`"),
    (chat(reasoning_effort="xhigh"), "Invalid enum value 'xhigh'"),
    (chat(CALLED), "the call 'a' has no result"),
    (chat(CALLED, HI), "the call 'a' has no result"),
    (chat(RESULT), "messages.0.tool.tool_call_id"),
    (chat(CALLED, RESULT, RESULT), "messages.2.tool.tool_call_id"),
    (chat(disable_reasoning=True), "disable_reasoning is not supported"),
    (
        chat({"role": "developer", "content": "d"}) | {"model": "zai-glm-4.7"},
        "messages.0.developer",
    ),
]


@pytest.mark.parametrize(("body", "words"), REFUSED)
def test_a_bad_request_is_refused_in_words(body: Any, words: str) -> None:
    reply = post(CerebrasFake([say("a")]), body)
    assert 400 == reply.status
    assert words in error_of(reply)["message"]


TAKEN: list[dict[str, Any]] = [
    chat(CALLED, RESULT, HI),
    chat({"role": "developer", "content": "d"}, HI),
    chat(HI, {"role": "assistant", "content": "4", "reasoning": "2+2"}, HI),
    chat(
        {"role": "assistant", "reasoning": [{"type": "text", "text": "2+2"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ),
    chat(disable_reasoning=True) | {"model": "zai-glm-4.7"},
    chat(prompt_cache_key="k", service_tier="flex", clear_thinking=False, stop="x"),
]


@pytest.mark.parametrize("body", TAKEN)
def test_cb_1_cb_8_cb_9_what_the_server_takes_is_taken(body: dict[str, Any]) -> None:
    assert 200 == post(CerebrasFake([say("a")]), body).status
