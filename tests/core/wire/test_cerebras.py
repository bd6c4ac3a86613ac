"""Rules CB-1 to CB-9, and those of the ADR that tell ``cerebras`` from ``compatible``."""

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    Delta,
    Finish,
    FunctionCall,
    ReasoningDelta,
    Reply,
    Start,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolMessage,
    Usage,
    UsageDelta,
    UserMessage,
    assemble,
    request_from_openai,
)
from woollama.core.errors import CannotEncode, InferenceError, ProviderError
from woollama.core.testing.fake import FakeReply, FakeRequest, say
from woollama.core.testing.fakes.cerebras import CerebrasFake
from woollama.core.wire import Bearer, Dialect, WireSettings
from woollama.core.wire.cerebras import CEREBRAS
from woollama.core.wire.chat import COMPATIBLE

HI = {"role": "user", "content": "hi"}
HEAD = {"id": "c-1", "object": "chat.completion.chunk", "created": 7, "model": "gpt-oss-120b"}
CALL = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"city":"Oslo"}'))


def body(
    dialect: Dialect = CEREBRAS, settings: WireSettings | None = None, **fields: Any
) -> dict[str, Any]:
    given = {"model": "gpt-oss-120b", "messages": [HI], **fields}
    request = request_from_openai(given)
    wire = dialect.codec.encode(
        request,
        base_url="https://api.test/v1",
        stream=request.stream,
        settings=settings or WireSettings(),
    )
    assert "https://api.test/v1/chat/completions" == wire.url
    return json.loads(wire.body)


def chunk(delta: Any, **fields: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None, **fields}]}


def read(chunks: list[bytes]) -> tuple[list[Delta], InferenceError | None]:
    made = itertools.count(1)
    decoder = CEREBRAS.codec.decoder(new_id=lambda: f"id{next(made)}", now=lambda: 0.0)
    deltas: list[Delta] = []
    try:
        for data in chunks:
            deltas.extend(decoder.feed(data))
        deltas.extend(decoder.finish())
    except InferenceError as error:
        return deltas, error
    return deltas, None


def stream(*payloads: Any) -> list[bytes]:
    events = [f"data: {json.dumps(payload)}\n\n".encode() for payload in payloads]
    return [*events, b"data: [DONE]\n\n"]


def error(status: int, payload: Any) -> ProviderError:
    data = json.dumps(payload).encode()
    return CEREBRAS.codec.decode_error(status, {}, data, now=lambda: 0.0)


@pytest.mark.parametrize("alias", ["reasoning", "reasoning_content"])
def test_a_2_thinking_of_earlier_turns_is_reasoning_under_whichever_name_it_came(
    alias: str,
) -> None:
    said = {"role": "assistant", "content": "4", alias: "2+2"}
    assert {"role": "assistant", "content": "4", "reasoning": "2+2"} == body(
        messages=[HI, said, HI]
    )["messages"][1]


def test_a_3_the_other_dialect_names_it_reasoning_content() -> None:
    said = {"role": "assistant", "content": "4", "reasoning": "2+2"}
    assert {"role": "assistant", "content": "4", "reasoning_content": "2+2"} == body(
        COMPATIBLE, messages=[HI, said, HI]
    )["messages"][1]


@pytest.mark.parametrize("alias", ["reasoning", "reasoning_content"])
def test_a_4_both_names_are_read_in_replies(alias: str) -> None:
    deltas, _ = read(stream(chunk({alias: "2+2"}), chunk({"content": "4"}, finish_reason="stop")))
    assert [ReasoningDelta("2+2"), TextDelta("4")] == deltas[1:3]


def test_a_7_the_cap_is_max_completion_tokens_whatever_the_setting_says() -> None:
    sent = body(max_tokens=9, settings=WireSettings(output_field="max_tokens"))
    assert 9 == sent["max_completion_tokens"]
    assert "max_tokens" not in sent


@pytest.mark.parametrize(("given", "sent"), [({}, "set"), ({"prompt_cache_key": "own"}, "own")])
def test_a_8_cb_9_the_cache_key_is_sent(given: dict[str, str], sent: str) -> None:
    settings = WireSettings(cache_key="set")
    assert sent == body(CEREBRAS, settings, **given)["prompt_cache_key"]


def test_a_13_a_chosen_effort_is_reasoning_effort_and_none_is_none() -> None:
    assert "low" == body(reasoning_effort="low")["reasoning_effort"]
    assert {"model", "messages"} == body().keys()


def test_the_key_is_a_bearer() -> None:
    assert (Bearer(), "openai") == (CEREBRAS.key_place, CEREBRAS.family)


def test_ru_12_nothing_opaque_is_sent() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "s"}},
    }
    said = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call],
        "reasoning_details": [{"type": "reasoning.text", "text": "t"}],
    }
    assert said == body(COMPATIBLE, messages=[said])["messages"][0]
    plain = {key: value for key, value in call.items() if key != "extra_content"}
    assert {"role": "assistant", "content": None, "tool_calls": [plain]} == body(messages=[said])[
        "messages"
    ][0]


@pytest.mark.parametrize(("name", "value"), [("options", {"num_ctx": 1}), ("keep_alive", "5m")])
def test_c_3_what_is_ollamas_alone_is_refused(name: str, value: Any) -> None:
    with pytest.raises(CannotEncode) as caught:
        body(CEREBRAS, None, **{name: value})
    assert ("unsupported_parameter", name) == (caught.value.kind, caught.value.param)


def test_r_11_fields_of_the_family_are_sent_as_they_are() -> None:
    sent = body(logit_bias={"1": 2}, reasoning_format="parsed", clear_thinking=False, n=2)
    assert ({"1": 2}, "parsed", False, 2) == (
        sent["logit_bias"],
        sent["reasoning_format"],
        sent["clear_thinking"],
        sent["n"],
    )


def test_cb_1_a_whole_history_holds_only_properties_that_the_server_knows() -> None:
    said: dict[str, Any] = {
        "role": "assistant",
        "content": "Hm",
        "reasoning_content": "why",
        "reasoning_details": [{}],
        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "a", "content": "1", "is_error": True}
    data = json.dumps(body(messages=[{"role": "developer", "content": "d"}, HI, said, result]))
    fake = CerebrasFake([say("ok")])
    headers = {"authorization": "Bearer k"}
    path = "/v1/chat/completions"
    answer = fake.answer(FakeRequest(method="POST", path=path, headers=headers, body=data.encode()))
    assert 200 == answer.status, answer


def test_cb_2_error_bodies_are_flat() -> None:
    found = error(
        400,
        {
            "message": "property is unsupported",
            "type": "invalid_request_error",
            "param": "validation_error",
            "code": "wrong_api_format",
        },
    )
    assert (
        "invalid_request",
        "property is unsupported",
        "invalid_request_error",
        "validation_error",
        "wrong_api_format",
        None,
    ) == (found.kind, found.message, found.type, found.param, found.code, found.hint)


def test_cb_3_reasoning_streams_and_usage_comes_on_the_last_chunk() -> None:
    last = chunk({}, finish_reason="stop") | {
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
        "time_info": {"queue_time": 0.1},
    }
    deltas, _ = read(stream(chunk({"reasoning": "2+"}), chunk({"reasoning": "2"}), last))
    usage = Usage(prompt_tokens=9, completion_tokens=3, total_tokens=12)
    assert [
        Start("c-1", "gpt-oss-120b", 7),
        ReasoningDelta("2+"),
        ReasoningDelta("2"),
        UsageDelta(usage),
        Finish("stop", "stop"),
    ] == deltas


def test_cb_4_id_index_and_name_of_a_fragment_may_be_null() -> None:
    first = {"index": None, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}
    later = {"index": None, "id": None, "function": {"name": None, "arguments": ":1}"}}
    deltas, _ = read(
        stream(
            chunk({"tool_calls": [first]}),
            chunk({"tool_calls": [later]}),
            chunk({}, finish_reason="tool_calls"),
        )
    )
    assert [ToolCallDelta(0, "a", "f", '{"x"'), ToolCallDelta(0, arguments=":1}")] == deltas[1:3]


def test_cb_5_choices_and_delta_may_be_null() -> None:
    deltas, failure = read(
        stream(
            {**HEAD, "choices": None},
            chunk(None),
            chunk({"content": "a"}),
            chunk(None, finish_reason="stop"),
            {**HEAD, "choices": None},
        )
    )
    assert failure is None
    assert [TextDelta("a"), Finish("stop", "stop")] == deltas[1:]


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request"), (429, "rate_limit"), (500, "server_error")]
)
def test_cb_6_an_error_chunk_carries_its_status_beside_it(status: int, kind: str) -> None:
    payload = {
        "error": {"message": "no", "type": "t", "param": "", "code": "c", "id": ""},
        "status_code": status,
    }
    deltas, failure = read(stream(chunk({"content": "a"}), payload))
    assert [TextDelta("a")] == deltas[1:]
    assert isinstance(failure, ProviderError)
    assert (kind, status, "no", "c") == (
        failure.kind,
        failure.peer_status,
        failure.message,
        failure.code,
    )


def test_cb_7_thinking_inside_the_text_stays_there() -> None:
    tagged = "<think>x</think>4"
    deltas, _ = read(stream(chunk({"content": tagged}, finish_reason="stop")))
    assert tagged == assemble(deltas).message.content


def test_cb_7_the_format_of_the_thinking_can_be_asked_for() -> None:
    assert "raw" == body(extra_body={"reasoning_format": "raw"})["reasoning_format"]


def test_cb_8_reasoning_is_sent_to_every_model() -> None:
    said = {"role": "assistant", "content": "4", "reasoning": "2+2"}
    sent = body(model="zai-glm-4.7", messages=[HI, said, HI], clear_thinking=False)
    assert ("2+2", False) == (sent["messages"][1]["reasoning"], sent["clear_thinking"])


def test_thinking_in_parts_is_read_as_text() -> None:
    parts = [{"type": "text", "text": "2"}, {"type": "text", "text": "+2"}]
    sent = {"model": "m", "messages": [{"role": "assistant", "content": "4", "reasoning": parts}]}
    request = CEREBRAS.codec.decode_request(sent)
    assert (AssistantMessage(content="4", reasoning="2+2"),) == request.messages


WORDS = st.text(min_size=1, max_size=8)
CALLS = st.builds(
    ToolCall, id=WORDS, function=st.builds(FunctionCall, name=WORDS, arguments=st.text())
)
MESSAGES = (
    st.builds(SystemMessage, content=st.text())
    | st.builds(UserMessage, content=st.text())
    | st.builds(
        AssistantMessage,
        content=st.none() | st.text(),
        reasoning=st.none() | WORDS,
        tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    )
    | st.builds(ToolMessage, tool_call_id=st.text(), content=st.text())
)
REQUESTS = st.builds(ChatRequest, model=WORDS, messages=st.lists(MESSAGES, max_size=4).map(tuple))


def encode(request: ChatRequest, dialect: Dialect, base_url: str = "http://h") -> dict[str, Any]:
    wire = dialect.codec.encode(request, base_url=base_url, stream=False, settings=WireSettings())
    return json.loads(wire.body)


@given(REQUESTS)
def test_a_request_is_read_as_it_was_written(request: ChatRequest) -> None:
    assert request == CEREBRAS.codec.decode_request(encode(request, CEREBRAS))


@given(REQUESTS)
def test_a_2_no_body_holds_reasoning_content(request: ChatRequest) -> None:
    messages = encode(request, CEREBRAS)["messages"]
    assert not any("reasoning_content" in message for message in messages)


@given(REQUESTS)
def test_a_1_neither_the_address_nor_the_models_name_chooses_the_dialect(
    request: ChatRequest,
) -> None:
    other = msgspec.structs.replace(request, model="gpt-oss-120b")
    for dialect in (CEREBRAS, COMPATIBLE):
        at_cerebras = encode(other, dialect, "https://api.cerebras.ai/v1")
        assert encode(request, dialect) | {"model": "gpt-oss-120b"} == at_cerebras


REPLIES = st.builds(
    say,
    st.none() | WORDS,
    reasoning=st.none() | WORDS,
    calls=st.lists(CALLS, max_size=2),
    usage=st.just(Usage(prompt_tokens=1, completion_tokens=2)),
)


@given(REPLIES, st.lists(st.integers(0, 10_000), max_size=6))
def test_any_cut_of_the_bytes_gives_the_same_deltas(reply: Reply, places: list[int]) -> None:
    asked = {"model": "gpt-oss-120b", "messages": [HI], "stream": True}
    data = b"".join(CerebrasFake().render(reply, asked).chunks)
    whole = read([data])
    ends = sorted({place % (len(data) + 1) for place in places})
    assert whole == read([data[a:b] for a, b in itertools.pairwise([0, *ends, len(data)])])
    assert whole == read([data[i : i + 1] for i in range(len(data))])


@given(st.lists(st.binary(max_size=40) | st.binary().map(lambda b: b"data: " + b), max_size=4))
def test_no_bytes_raise_anything_but_our_errors(chunks: list[bytes]) -> None:
    read(chunks)


def ask(fake: CerebrasFake, dialect: Dialect, messages: list[Any]) -> FakeReply:
    data = json.dumps(body(dialect, messages=messages, stream=True)).encode()
    headers = {"authorization": "Bearer k"}
    return fake.answer(
        FakeRequest(method="POST", path="/v1/chat/completions", headers=headers, body=data)
    )


def test_a_12_the_play_of_a_call_its_result_and_a_later_question() -> None:
    script = [say(calls=[CALL], reasoning="I must look."), say("3 C"), say("Bye.")]
    fake = CerebrasFake(script)
    history: list[Any] = [HI]
    for asked in (
        {"role": "tool", "tool_call_id": "call_1", "content": "3 C"},
        {"role": "user", "content": "thanks"},
    ):
        deltas, failure = read(list(ask(fake, CEREBRAS, history).chunks))
        assert failure is None
        said = assemble(deltas).to_openai(reasoning="reasoning_content")
        history += [said["choices"][0]["message"], asked]
    assert "I must look." == history[1]["reasoning_content"]
    refused = ask(fake, COMPATIBLE, history)
    assert 400 == refused.status
    found = CEREBRAS.codec.decode_error(400, {}, refused.chunks[0], now=lambda: 0.0)
    place = "messages.1.assistant.reasoning_content"
    assert f"{place}: property '{place}' is unsupported" == found.message
    assert "wrong_api_format" == found.code
    deltas, _ = read(list(ask(fake, CEREBRAS, history).chunks))
    assert "Bye." == assemble(deltas).message.content


def test_a_9_a_refusal_is_raised_and_no_field_is_taken_away() -> None:
    fake = CerebrasFake([say("never")])
    said = {"role": "assistant", "content": "4", "reasoning": "2+2"}
    assert 400 == ask(fake, COMPATIBLE, [HI, said, HI]).status
    assert 1 == len(fake.requests)
