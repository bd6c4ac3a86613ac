"""The strict Ollama: it takes what our codec writes and refuses what is wrong with it."""

import itertools
import json
from typing import Any

import pytest

from woollama.core.canonical import (
    AssistantMessage,
    FunctionCall,
    Reply,
    ToolCall,
    Usage,
    assemble,
    request_from_openai,
)
from woollama.core.testing.fake import FakeReply, FakeRequest, say
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.wire import WireSettings
from woollama.core.wire.ollama import OLLAMA

HI: dict[str, Any] = {"role": "user", "content": "hi there"}
CALL: dict[str, Any] = {"id": "a", "function": {"name": "f", "arguments": {}}}
CALLED: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT: dict[str, Any] = {"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "a"}
TIED: dict[str, Any] = {"function": CALL["function"]}
NAMED: dict[str, Any] = {"role": "Tool", "content": "1", "tool_name": "f"}
WEATHER = ToolCall(id="call_1", function=FunctionCall(name="get_weather", arguments='{"a":1}'))


def post(fake: OllamaFake, body: Any, **headers: str) -> FakeReply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = FakeRequest(method="POST", path="/api/chat", headers=names, body=data)
    return fake.answer(request)


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [HI], "stream": False, **fields}


def error_of(reply: FakeReply) -> tuple[int, str]:
    return reply.status, json.loads(b"".join(reply.chunks))["error"]


def lines_of(reply: FakeReply) -> list[dict[str, Any]]:
    return [json.loads(chunk) for chunk in reply.chunks]


def ask(fake: OllamaFake, *, stream: bool, **fields: Any) -> Reply:
    """One turn through the codec."""
    request = request_from_openai({"model": "m", "messages": [HI], **fields})
    wire = OLLAMA.codec.encode(request, base_url="http://h", stream=stream, settings=WireSettings())
    sent = FakeRequest(method="POST", path="/api/chat", headers=wire.headers, body=wire.body)
    answer = fake.answer(sent)
    assert 200 == answer.status, answer
    made = itertools.count(1)
    decoder = OLLAMA.codec.decoder(new_id=lambda: f"id{next(made)}", now=lambda: 0.0)
    deltas = [delta for chunk in answer.chunks for delta in decoder.feed(chunk)]
    return assemble([*deltas, *decoder.finish()])


@pytest.mark.parametrize("stream", [True, False])
def test_a_scripted_reply_comes_back_whole(stream: bool) -> None:
    scripted = say("It is 3 C. ", calls=[WEATHER], reasoning="need a tool", model="m")
    got = ask(OllamaFake([scripted]), stream=stream)
    assert (scripted.message, 1_700_000_000, "m") == (got.message, got.created, got.model)
    assert ("tool_calls", "stop") == (got.finish_reason, got.native_finish_reason)
    # hi there; need a tool, It is 3 C., {"a":1}
    assert Usage(prompt_tokens=2, completion_tokens=8, total_tokens=10) == got.usage


def test_a_stream_comes_in_several_lines() -> None:
    scripted = say("a b", reasoning="c", calls=[WEATHER])
    reply = post(OllamaFake([scripted]), {"model": "m", "messages": [HI]})
    assert "application/x-ndjson" == reply.headers["content-type"]
    lines = lines_of(reply)
    assert [False, False, False, False, True] == [line["done"] for line in lines]
    assert ["", "a", " b", "", ""] == [line["message"]["content"] for line in lines]


def test_a_plain_reply_is_one_object() -> None:
    reply = post(OllamaFake([say("a")]), chat())
    assert "application/json" == reply.headers["content-type"]
    message = lines_of(reply)[0]["message"]
    assert [{"role": "assistant", "content": "a"}] == [message]


def test_a_refusal_is_text_here() -> None:
    message = AssistantMessage(refusal="I will not.")
    reply = Reply(id="r", created=1, model=None, message=message, finish_reason="stop")
    assert "I will not." == ask(OllamaFake([reply]), stream=False).message.content


def test_usage_and_reason_are_as_scripted_and_a_count_of_0_is_left_out() -> None:
    usage = Usage(prompt_tokens=0, completion_tokens=5)
    reply = post(OllamaFake([say("a", finish="length", usage=usage)]), chat())
    last = lines_of(reply)[0]
    assert ("length", 5) == (last["done_reason"], last["eval_count"])
    assert "prompt_eval_count" not in last


def test_a_raw_reply_is_said_as_it_is() -> None:
    raw = FakeReply(status=503, chunks=(b'{"error":"server busy"}',))
    assert raw == post(OllamaFake([raw]), chat())


def test_the_end_of_the_script_is_an_error() -> None:
    assert 500 == post(OllamaFake(), chat()).status


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({}, "load"), ({"keep_alive": 0}, "unload"), ({"keep_alive": "0"}, "unload")],
)
@pytest.mark.parametrize("stream", [True, False])
def test_ol_16_no_messages_load_and_unload(
    fields: dict[str, Any], reason: str, stream: bool
) -> None:
    fake = OllamaFake([say("a")])
    loaded = post(fake, {"model": "m", "stream": stream, **fields})
    assert [(True, reason)] == [(line["done"], line["done_reason"]) for line in lines_of(loaded)]
    assert "a" == ask(fake, stream=False).message.content


def test_the_list_of_models() -> None:
    fake = OllamaFake(models=["a", "b:1b"])
    wire = OLLAMA.codec.models_request("http://h")
    reply = fake.answer(FakeRequest(method=wire.method, path="/api/tags"))
    found = OLLAMA.codec.decode_models(b"".join(reply.chunks))
    assert [("a", 1_700_000_000), ("b:1b", 1_700_000_000)] == [(m.id, m.created) for m in found]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/v1/chat/completions", 404), ("GET", "/api/chat", 405), ("POST", "/api/tags", 405)],
)
def test_o_1_other_paths_are_not_there(method: str, path: str, status: int) -> None:
    reply = OllamaFake([say("a")]).answer(FakeRequest(method=method, path=path))
    assert (status, "text/plain") == (reply.status, reply.headers["content-type"])


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [
        (None, {}, 200),
        (None, {"authorization": "Bearer any"}, 200),
        (None, {"authorization": "Basic any"}, 401),
        (None, {"x_api_key": "any"}, 401),
        ("k", {"authorization": "Bearer k"}, 200),
        ("k", {"authorization": "Bearer other"}, 401),
        ("k", {"authorization": "Bearer k", "api_key": "k"}, 401),
        ("k", {}, 401),
    ],
)
def test_o_4_a_key_is_a_bearer_or_is_refused(
    key: str | None, headers: dict[str, str], status: int
) -> None:
    reply = post(OllamaFake([say("a")], key=key), chat(), **headers)
    assert status == reply.status
    if status == 401:
        body = json.loads(reply.chunks[0])
        assert {"error": "unauthorized", "signin_url": "https://example.org/connect"} == body


def test_a_model_that_is_not_there_is_not_found() -> None:
    reply = post(OllamaFake([say("a")], models=["other"]), chat())
    assert (404, "model 'm' not found") == error_of(reply)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "missing request body"),
        (b"{", "json: "),
        ([], "json: "),
        (chat(model=""), "model is required"),
        (chat(hologram=1), "unknown field `hologram`"),
        (chat(reasoning_effort="low"), "unknown field `reasoning_effort`"),
        (chat(temperature=0), "unknown field `temperature`"),
        (chat(stream=1), "$.stream"),
        (chat(tools=[{"type": "function"}]), "$.tools"),
        (chat(messages=[{"content": "a"}]), "required field `role`"),
        (chat(messages=[{**HI, "name": "n"}]), "unknown field `name`"),
        (chat(messages=[{"role": "user", "content": [HI]}]), "$.messages[0].content"),
        (chat(messages=[{**HI, "images": ["http://x"]}]), "base64"),
        (chat(messages=[{"role": "owner"}]), "invalid role 'owner'"),
        (chat(messages=[{**HI, "tool_calls": [CALL]}]), "only an assistant"),
        (chat(messages=[{**HI, "thinking": "t"}]), "only an assistant"),
        (chat(messages=[{**HI, "tool_name": "f"}]), "only a tool's result"),
        (chat(messages=[CALLED, HI]), "'f' was called and has no result"),
        (chat(messages=[CALLED]), "'f' was called and has no result"),
        (chat(messages=[RESULT]), "no call before it"),
        (chat(messages=[CALLED, RESULT, RESULT]), "no call before it"),
        (chat(messages=[CALLED, {**RESULT, "tool_name": "g"}]), "no call before it"),
        (chat(messages=[CALLED, {**RESULT, "tool_call_id": "b"}]), "no call before it"),
        (
            chat(messages=[{**CALLED, "tool_calls": [{"function": {"name": "f"}}]}]),
            "required field `arguments`",
        ),
        (
            chat(
                messages=[
                    {**CALLED, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
                ]
            ),
            "$.messages[0].tool_calls[0].function.arguments",
        ),
        (chat(format="xml"), "invalid format"),
        (chat(format=7), "invalid format"),
        (chat(keep_alive="soon"), "time: invalid duration"),
        (chat(top_logprobs=21), "between 0 and 20"),
        (chat(think="banana"), "invalid think value"),
        (chat(think=1), "invalid think value"),
        (chat(options={"temperature": "hot"}), '"temperature" must be of type float32'),
        (chat(options={"num_ctx": True}), '"num_ctx" must be of type integer'),
        (chat(options={"stop": "X"}), '"stop" must be of type array'),
        (chat(options={"use_mmap": 1}), '"use_mmap" must be of type boolean'),
    ],
)
def test_a_bad_request_is_refused_in_words(body: Any, words: str) -> None:
    fake = OllamaFake([say("a")])
    status, message = error_of(post(fake, body))
    assert 400 == status
    assert words in message
    assert 1 == len(fake.requests)


TAKEN: list[dict[str, Any]] = [
    {"messages": [CALLED, RESULT, HI]},
    {"messages": [{**CALLED, "tool_calls": [TIED, TIED]}, NAMED, NAMED]},
    {"messages": [CALLED, NAMED]},
    {"messages": [{**CALLED, "tool_calls": [TIED]}, RESULT]},
    {"keep_alive": "-1m30.5s"},
    {"keep_alive": -1},
    {"format": {"type": "object"}},
    {"think": False},
    {"options": {"hologram": 1, "num_ctx": 4096.0, "temperature": None, "stop": []}},
]


@pytest.mark.parametrize("fields", TAKEN)
def test_ol_22_what_the_server_takes_is_taken(fields: dict[str, Any]) -> None:
    assert 200 == post(OllamaFake([say("a")]), chat(**fields)).status


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"think": "low"}, '"m" does not support thinking'),
        ({"tools": [{"function": {"name": "f"}}]}, '"m" does not support tools'),
    ],
)
def test_ol_6_a_model_is_not_asked_for_what_it_cannot(asked: dict[str, Any], words: str) -> None:
    fake = OllamaFake([say("a")], abilities=[])
    assert (400, words) == error_of(post(fake, chat(**asked)))
    assert 200 == post(fake, chat(think=False)).status


def test_the_play_of_a_call_its_result_and_a_later_question() -> None:
    fake = OllamaFake([say(calls=[WEATHER], reasoning="need a tool"), say("3 C"), say("bye")])
    tools: list[Any] = [{"type": "function", "function": {"name": "get_weather"}}]
    first = ask(fake, stream=True, tools=tools)
    history: list[Any] = [HI, first.to_openai()["choices"][0]["message"]]
    history.append({"role": "tool", "tool_call_id": "call_1", "content": "3 C"})
    second = ask(fake, stream=True, tools=tools, messages=history)
    history += [second.to_openai()["choices"][0]["message"], {"role": "user", "content": "thanks"}]
    assert "bye" == ask(fake, stream=False, messages=history).message.content
    assert 3 == len(fake.requests)
