"""Rules of all dialects: C-1 to C-16 and A-1 to A-17.

Where a rule says how one dialect writes a thing, each is asked; C-10 is in ``test_think_tags``,
A-11 in ``test_fingerprint``.
"""

import json
import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.exchange import (
    HI,
    WEATHER,
    body_of,
    call,
    decoder_of,
    deltas_of,
    encode,
    error_of,
    failure_of,
    read,
    refused,
    reply_of,
    stream,
)
from tests.core.wire.peers import (
    EFFORT_WORDS,
    EFFORTS,
    NAMES,
    OPENAI,
    ask,
    fake_of,
    target_of,
    wire_chunks,
    wire_reply,
)
from woollama.core.canonical import (
    AssistantMessage,
    FunctionCall,
    OpaqueDelta,
    Reply,
    ToolCall,
    Usage,
    request_from_openai,
)
from woollama.core.errors import (
    ConfigError,
    ProviderError,
    ReplyError,
    RequestError,
    TruncatedReply,
)
from woollama.core.providers import Credential, ModelRegistry, ModelSettings, Provider
from woollama.core.retries import Retries
from woollama.core.testing.fake import FakeReply, json_reply, say
from woollama.core.turn import new_id
from woollama.core.wire import DIALECTS, WireSettings
from woollama.core.wire.framing import LIMIT_BYTES as OBJECT_LIMIT
from woollama.core.wire.ndjson import LIMIT_BYTES as LINE_LIMIT
from woollama.core.wire.ndjson import LineSplitter
from woollama.core.wire.sse import LIMIT_BYTES as EVENT_LIMIT
from woollama.core.wire.sse import EventSplitter

pytestmark = pytest.mark.anyio

CHAT_SHAPED = ("compatible", "cerebras", "ollama")
PNG = "iVBORw0KGgo="
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
CALL = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"a":1}'))
TURN: list[dict[str, Any]] = [
    HI,
    {"role": "assistant", "content": None, "tool_calls": [call("call_1")]},
    {"role": "tool", "tool_call_id": "call_1", "content": "3 C"},
    HI,
]


def sent(name: str, **fields: Any) -> dict[str, Any]:
    return body_of(DIALECTS[name], **fields)


# --- conversion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHAT_SHAPED)
def test_c_1_developer_is_sent_as_system(name: str) -> None:
    messages = sent(name, messages=[{"role": "developer", "content": "d"}, HI])["messages"]
    assert {"role": "system", "content": "d"} == messages[0]


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("compatible", "response_format", None),
        ("cerebras", "response_format", None),
        ("ollama", "format", SCHEMA),
        ("anthropic", "output_config", {"format": {"type": "json_schema", "schema": SCHEMA}}),
        (
            "responses",
            "text",
            {"format": {"type": "json_schema", "name": "out", "schema": SCHEMA}},
        ),
    ],
)
def test_c_2_a_response_format_is_said_in_the_dialects_place(
    name: str, place: str, expected: Any
) -> None:
    given = {"type": "json_schema", "json_schema": {"name": "out", "schema": SCHEMA}}
    assert (given if expected is None else expected) == sent(name, response_format=given)[place]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("compatible", {"image_url": {"url": f"data:image/png;base64,{PNG}"}}),
        ("cerebras", {"image_url": {"url": f"data:image/png;base64,{PNG}"}}),
        ("responses", {"image_url": f"data:image/png;base64,{PNG}"}),
        ("anthropic", {"source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
        ("ollama", None),
    ],
)
def test_c_2_an_image_is_said_in_the_dialects_words_and_once(name: str, expected: Any) -> None:
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    body = sent(name, messages=[{"role": "user", "content": [part]}])
    message = body["input" if name == "responses" else "messages"][0]
    if expected is None:
        assert [PNG] == message["images"]
    else:
        assert expected.items() <= message["content"][0].items()
    assert 1 == json.dumps(body).count(PNG)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("field", "value"), [("seed", 7), ("n", 2), ("logit_bias", {"1": 2}), ("options", {"x": 1})]
)
def test_c_3_nothing_that_was_set_is_dropped(name: str, field: str, value: Any) -> None:
    """It is sent, or refused by its name; RU-18 says which."""
    family = DIALECTS[name].family
    own = "ollama" if field in {"seed", "options"} else "openai"
    if family == own or (family == "openai" and field != "options"):
        body = sent(name, **{field: value})
        found = (body.get(field), body.get("options", {}).get(field))
        assert value in found
    else:
        error = refused(DIALECTS[name], **{field: value})
        assert ("unsupported_parameter", field) == (error.kind, error.param)


@pytest.mark.parametrize("name", NAMES)
def test_c_3_what_the_operator_drops_is_named(name: str) -> None:
    """Design decision 17."""
    settings = WireSettings(drop_params=frozenset({"n"}))
    wire = encode(DIALECTS[name], n=2, settings=settings)
    assert ("n",) == wire.dropped
    assert "n" not in json.loads(wire.body)


@pytest.mark.parametrize("name", NAMES)
def test_c_4_extra_bodies_go_under_and_over_what_is_encoded(name: str) -> None:
    """A-17, RU-14."""
    under = {"model": "under", "vendor": {"a": 1}, "both": "under"}
    settings = WireSettings(extra_body=under)
    over = {"both": "over", "stream": "over"}
    body = sent(name, stream=True, settings=settings, extra_body=over)
    expected = {"model": "m", "vendor": {"a": 1}, "both": "over", "stream": "over"}
    assert expected == {key: body[key] for key in expected}


# --- replies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (say("a", calls=[CALL], finish="length"), "length"),
        (say("a", calls=[CALL]), "tool_calls"),
        (say("a"), "stop"),
        (say("a", finish="length"), "length"),
    ],
)
def test_c_5_a_cap_wins_over_calls_and_calls_win_over_stop(
    name: str, reply: Reply, reason: str
) -> None:
    for streamed in (False, True):
        found = reply_of(DIALECTS[name], wire_reply(name, reply, stream=streamed))
        assert reason == found.finish_reason
        assert found.native_finish_reason is not None


@pytest.mark.parametrize("name", OPENAI)
def test_c_5_a_filter_wins_over_calls(name: str) -> None:
    reply = say("a", calls=[CALL], finish="content_filter")
    assert "content_filter" == reply_of(DIALECTS[name], wire_reply(name, reply)).finish_reason


@pytest.mark.parametrize("name", ["compatible", "cerebras"])
def test_c_6_counts_of_chat_chunks_are_never_added_up(name: str) -> None:
    running = ({"prompt_tokens": 9, "completion_tokens": n} for n in (1, 2, 3))
    counts: list[Any] = [{"usage": usage} for usage in running]
    data = stream({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}, *counts)
    expected = Usage(prompt_tokens=9, completion_tokens=3, total_tokens=12)
    assert expected == reply_of(DIALECTS[name], data).usage


def test_c_6_counts_of_anthropics_deltas_are_cumulative() -> None:
    usage = [{"input_tokens": 9, "output_tokens": n} for n in (1, 5)]
    data = stream(
        {"type": "message_start", "message": {"id": "x", "model": "m", "usage": usage[0]}},
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": usage[0]},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage[1]},
        {"type": "message_stop"},
    )
    found = reply_of(DIALECTS["anthropic"], data).usage
    assert found is not None
    assert (9, 5) == (found.prompt_tokens, found.completion_tokens)


WITHOUT_IDS: dict[str, Any] = {
    "compatible": {"choices": [{"message": {"tool_calls": [{"function": {"name": "f"}}] * 2}}]},
    "cerebras": {"choices": [{"message": {"tool_calls": [{"function": {"name": "f"}}] * 2}}]},
    "ollama": {
        "model": "m",
        "done": True,
        "message": {"tool_calls": [{"function": {"name": "f", "arguments": {}}}] * 2},
    },
    "responses": {
        "status": "completed",
        "output": [{"type": "function_call", "name": "f", "arguments": ""}] * 2,
    },
}


@pytest.mark.parametrize("name", WITHOUT_IDS)
def test_c_7_made_ids_are_unique_short_and_the_same_in_call_and_result(name: str) -> None:
    decoder = DIALECTS[name].codec.decoder(new_id=new_id, now=lambda: 0.0)
    data = json.dumps(WITHOUT_IDS[name]).encode() + b"\n"
    made = [getattr(delta, "id", None) for delta in (*decoder.feed(data), *decoder.finish())]
    ids = [identity for identity in made if identity and identity.startswith("call_")]
    assert 2 == len(set(ids))
    for other in NAMES:
        body = sent(
            other,
            messages=[
                HI,
                {"role": "assistant", "content": None, "tool_calls": [call(i) for i in ids]},
                *({"role": "tool", "tool_call_id": i, "content": "x"} for i in ids),
            ],
        )
        for identity in ids:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", identity)
            assert 2 == json.dumps(body).count(identity)


async def test_c_7_ids_that_a_dialect_does_not_allow_are_cleaned_alike() -> None:
    """AE-22, N-7: the strict server takes the call and its result."""
    fake = fake_of("anthropic", [say("ok")])
    turn = {"role": "assistant", "content": None, "tool_calls": [call("call:1/ü")]}
    result = {"role": "tool", "tool_call_id": "call:1/ü", "content": "x"}
    await ask(fake, target_of("anthropic"), messages=[HI, turn, result], tools=[WEATHER])
    assert 2 == fake.requests[0].body.count(b"call_1__")


@pytest.mark.parametrize("name", NAMES)
def test_c_8_arguments_are_passed_on_as_they_are_or_as_none(name: str) -> None:
    """N-9, OL-4: only where the field is an object is a non-object replaced."""
    turn = {"role": "assistant", "content": None, "tool_calls": [call("c", arguments="[1, 2")]}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    body = json.dumps(sent(name, messages=[HI, turn, result]))
    assert (name in OPENAI) is ("[1, 2" in body)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("streamed", [False, True])
def test_c_9_unknown_keys_are_ignored(name: str, streamed: bool) -> None:
    reply = say("It is warm.", calls=[CALL], reasoning="Hm.")
    data = wire_reply(name, reply, stream=streamed)
    odd = b"\n".join(map(_with_unknown_keys, data.split(b"\n")))
    assert data != odd
    # What is opaque is kept as it came, whatever it holds.
    plain = [d for d in deltas_of(DIALECTS[name], data) if not isinstance(d, OpaqueDelta)]
    assert plain == [d for d in deltas_of(DIALECTS[name], odd) if not isinstance(d, OpaqueDelta)]


def _with_unknown_keys(line: bytes) -> bytes:
    head, brace, rest = line.partition(b"{")
    if not brace:
        return line
    return head + json.dumps(_odd(json.loads(brace + rest))).encode()


def _odd(value: Any) -> Any:
    if isinstance(value, list):
        return [_odd(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    raw = cast("dict[str, Any]", value)
    # What a model wrote as arguments is no key of the reply.
    kept = {"arguments", "input"}
    return {"x_new": [{"y": None}], **{k: v if k in kept else _odd(v) for k, v in raw.items()}}


@pytest.mark.parametrize("name", ["compatible", "cerebras", "anthropic", "responses"])
def test_c_9_unknown_types_of_events_are_skipped(name: str) -> None:
    data = wire_reply(name, say("a"))
    odd = stream({"type": "new", "delta": {"type": "new", "text": "x"}, "choices": None}) + data
    assert "a" == reply_of(DIALECTS[name], odd).message.content


@pytest.mark.parametrize("name", NAMES)
def test_c_10_tags_inside_text_are_left_alone(name: str) -> None:
    reply = say("<think>a</think>b")
    assert "<think>a</think>b" == reply_of(DIALECTS[name], wire_reply(name, reply)).message.content


# --- framing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": comment\n\nevent: x\nid: 1\nretry: 2\ndata: a\n\n", [b"a"]),
        (b"event: x\n\ndata\n\ndata:\n\n", []),
        (b"data: \xc3\xbc\n\n", ["ü".encode()]),
    ],
)
def test_c_11_lines_are_split_on_bytes(data: bytes, expected: list[bytes]) -> None:
    whole = EventSplitter()
    assert expected == [*whole.feed(data), *whole.finish()]
    bytewise = EventSplitter()
    found = [event for i in range(len(data)) for event in bytewise.feed(data[i : i + 1])]
    assert expected == [*found, *bytewise.finish()]
    assert not whole.foreign


def test_c_11_a_leading_byte_order_mark_is_dropped() -> None:
    data = b"\xef\xbb\xbf" + wire_reply("compatible", say("a"))
    expected = deltas_of(DIALECTS["compatible"], data[3:])
    assert expected == deltas_of(DIALECTS["compatible"], data)
    found, error = read(DIALECTS["compatible"], [data[i : i + 1] for i in range(len(data))])
    assert ("a", None) == ("".join(getattr(d, "text", "") for d in found), error)


def test_c_11_a_line_that_no_event_stream_has_is_noticed() -> None:
    splitter = EventSplitter()
    assert [] == splitter.feed(b"<html>\n\n")
    assert splitter.foreign


def test_c_11_one_event_has_a_limit() -> None:
    splitter = EventSplitter()
    with pytest.raises(ReplyError, match="longer than"):
        splitter.feed(b"data: " + b"x" * EVENT_LIMIT)


def test_c_12_an_event_pending_at_the_end_is_dispatched() -> None:
    for end in (b"", b"\n", b"\r"):
        splitter = EventSplitter()
        assert [] == splitter.feed(b"data: a" + end)
        assert [b"a"] == splitter.finish()


def test_c_13_lines_of_json_are_split_at_line_feeds() -> None:
    data = b'{"a":1}\n\n  \r\n{"b":2}\r\n{"c":3}'
    for size in (1, 4, len(data)):
        splitter = LineSplitter()
        chunks = [data[i : i + size] for i in range(0, len(data), size)]
        found = [line for chunk in chunks for line in splitter.feed(chunk)]
        assert [b'{"a":1}', b'{"b":2}', b'{"c":3}'] == [*found, *splitter.finish()]


def test_c_13_a_line_may_be_as_long_as_the_limit() -> None:
    splitter = LineSplitter()
    assert [] == splitter.feed(b"x" * LINE_LIMIT)
    with pytest.raises(ReplyError, match="longer than"):
        splitter.feed(b"x")


@pytest.mark.parametrize("name", NAMES)
def test_c_14_whether_a_reply_is_an_object_is_decided_by_its_first_byte(name: str) -> None:
    for streamed in (False, True):
        data = wire_reply(name, say("It is warm."), stream=streamed)
        assert "It is warm." == reply_of(DIALECTS[name], b" \n\t" + data).message.content


def test_c_14_what_is_no_json_is_an_error_and_a_beginning_of_json_is_a_cut() -> None:
    codec = DIALECTS["compatible"]
    assert isinstance(failure_of(codec, b'{"choices": ['), TruncatedReply)
    assert "bad_response" == failure_of(codec, b"{nonsense}").kind
    html = failure_of(codec, b"<html>busy</html>")
    assert ("bad_response", "<html>busy</html>") == (html.kind, html.payload)


def test_c_14_an_object_has_a_limit() -> None:
    decoder = decoder_of(DIALECTS["compatible"])
    assert () == decoder.feed(b"{" + b" " * (OBJECT_LIMIT - 1))
    with pytest.raises(ReplyError, match="longer than"):
        decoder.feed(b" ")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [b"", b" \n ", b"\xef\xbb"])
def test_c_15_an_empty_reply_is_an_error(name: str, data: bytes) -> None:
    assert isinstance(failure_of(DIALECTS[name], data), TruncatedReply | ReplyError)


@pytest.mark.parametrize("name", NAMES)
def test_c_15_a_clean_end_without_the_terminal_mark_is_an_error(name: str) -> None:
    """P-24."""
    chunks = wire_chunks(name, say("It is warm."))
    marks = {"anthropic": 2, "cerebras": 2, "compatible": 2, "ollama": 1, "responses": 1}
    error = failure_of(DIALECTS[name], b"".join(chunks[: -marks[name]]))
    assert isinstance(error, TruncatedReply)
    assert ("incomplete_stream", True) == (error.kind, error.retryable)


def test_c_15_a_decoder_says_a_fault_again() -> None:
    decoder = decoder_of(DIALECTS["compatible"])
    with pytest.raises(ProviderError):
        decoder.feed(stream({"error": {"message": "gone"}}))
    assert decoder.done
    with pytest.raises(ProviderError):
        decoder.feed(b"more")
    with pytest.raises(ProviderError):
        decoder.finish()


SOON = Retries(attempts=3, first_wait_s=0.0)


@pytest.mark.parametrize("name", NAMES)
async def test_c_16_a_stream_that_failed_after_its_first_event_is_not_asked_for_again(
    name: str,
) -> None:
    cut = FakeReply(chunks=wire_chunks(name, say("It is warm."))[:3])
    fake = fake_of(name, [cut, say("again")])
    with pytest.raises(TruncatedReply):
        await ask(fake, target_of(name), retries=SOON)
    assert 1 == len(fake.requests)


@pytest.mark.parametrize("name", NAMES)
async def test_c_16_what_fails_before_its_first_event_may_be_asked_for_again(name: str) -> None:
    busy = json_reply(503, {"error": {"message": "busy"}})
    fake = fake_of(name, [busy, say("again")])
    reply = await ask(fake, target_of(name), retries=SOON)
    assert ("again", 2) == (reply.message.content, len(fake.requests))


# --- the decision record --------------------------------------------------------------------------

hosts = st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){0,2}", fullmatch=True)
models = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-._:/", min_size=1, max_size=12)


@given(st.sampled_from(NAMES), hosts, hosts, models, models)
def test_a_1_only_the_configuration_chooses_how_a_provider_is_spoken_to(
    name: str, host: str, other: str, model: str, another: str
) -> None:
    """P-7: configurations that differ only in URL or model give equal bodies."""
    bodies: list[Any] = []
    for place, asked in ((host, model), (other, another)):
        provider = target_of(name, f"https://{place}/v1").provider
        target = ModelRegistry([provider]).resolve(f"up/{asked}")
        request = request_from_openai({"model": "x", "messages": TURN, "tools": [WEATHER]})
        body = json.loads(target.encode(request, stream=True).body)
        assert asked == body.pop("model")
        bodies.append(body)
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize(
    ("name", "alias"), [("cerebras", "reasoning"), ("compatible", "reasoning_content")]
)
def test_a_2_and_a_3_thinking_in_history_has_the_name_of_the_dialect(name: str, alias: str) -> None:
    said = {"role": "assistant", "content": "b", "reasoning": "a"}
    assert [{"role": "assistant", "content": "b", alias: "a"}] == sent(name, messages=[said])[
        "messages"
    ]
    everything = json.dumps(sent(name, messages=[said, *TURN], reasoning_effort="high"))
    assert (name == "compatible") is ("reasoning_content" in everything)


@pytest.mark.parametrize("dialect", ["", "compatible"])
def test_a_3_an_empty_dialect_is_compatible(dialect: str) -> None:
    provider = Provider("p", "http://x/v1", dialect=dialect)
    assert "compatible" == provider.dialect_for("m").name


@pytest.mark.parametrize("name", ["compatible", "cerebras"])
@pytest.mark.parametrize("alias", ["reasoning", "reasoning_content"])
def test_a_4_both_names_of_thinking_are_read_on_both(name: str, alias: str) -> None:
    said = {"choices": [{"message": {"content": "b", alias: "a"}, "finish_reason": "stop"}]}
    assert "a" == reply_of(DIALECTS[name], json.dumps(said).encode()).message.reasoning
    chunk = {"choices": [{"delta": {alias: "a"}, "finish_reason": "stop"}]}
    assert "a" == reply_of(DIALECTS[name], stream(chunk)).message.reasoning


@pytest.mark.parametrize(
    "provider",
    [
        Provider("p", "http://x", dialect="klingon"),
        Provider("p", "http://x", dialect="anthropic"),
        Provider("p", "http://x", kind="ollama", dialect="compatible"),
        Provider("p", "http://x", kind="anthropic", dialect="responses"),
        Provider("p", "http://x", model_settings={"m": ModelSettings(dialect="klingon")}),
        Provider(
            "p", "http://x", kind="ollama", model_settings={"m": ModelSettings(dialect="cerebras")}
        ),
    ],
    ids=repr,
)
def test_a_5_a_dialect_that_is_unknown_or_out_of_place_is_refused(provider: Provider) -> None:
    with pytest.raises(ConfigError):
        ModelRegistry([provider])


def test_a_5_the_refusal_names_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"'klingon'.*cerebras, compatible, responses"):
        ModelRegistry([Provider("p", "http://x", dialect="klingon")])


def test_a_6_a_model_inherits_its_providers_dialect_and_sets_no_second_one() -> None:
    own = {"m": ModelSettings(dialect="responses")}
    with pytest.raises(ConfigError, match="may not set"):
        ModelRegistry([Provider("p", "http://x", dialect="cerebras", model_settings=own)])
    registry = ModelRegistry(
        [
            Provider("p", "http://x", model_settings=own),
            Provider("q", "http://x", dialect="cerebras"),
        ]
    )
    found = [registry.resolve(name).dialect.name for name in ("p/m", "p/other", "q/m")]
    assert ["responses", "compatible", "cerebras"] == found


def test_a_6_every_way_of_selecting_gives_the_same_dialect() -> None:
    provider = Provider("p", "http://x", dialect="cerebras")
    registry = ModelRegistry({"p": provider})
    registry.add(provider)
    target = registry.resolve("p/m")
    ways = (target, target.at(None), target.at("http://elsewhere"), registry.resolve("p/m"))
    assert {"cerebras"} == {way.dialect.name for way in ways}


def test_a_7_the_name_of_the_cap_is_a_setting_of_the_provider() -> None:
    settings = WireSettings(output_field="max_completion_tokens")
    assert 9 == sent("compatible", max_tokens=9, settings=settings)["max_completion_tokens"]
    assert 9 == sent("compatible", max_tokens=9)["max_tokens"]


@pytest.mark.parametrize("name", OPENAI)
def test_a_8_the_cache_key_is_a_setting_of_the_provider(name: str) -> None:
    """CB-9: for Cerebras too."""
    assert "k" == sent(name, settings=WireSettings(cache_key="k"))["prompt_cache_key"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_9_nothing_is_asked_for_again_with_fields_removed(name: str) -> None:
    no = json_reply(400, {"error": {"message": "Unknown parameter: 'top_p'.", "param": "top_p"}})
    fake = fake_of(name, [no, say("ok")])
    with pytest.raises(ProviderError):
        await ask(fake, target_of(name), retries=SOON, top_p=0.5)
    assert 1 == len(fake.requests)
    busy = json_reply(503, {"error": {"message": "busy"}})
    fake = fake_of(name, [busy, say("ok")])
    await ask(fake, target_of(name), retries=SOON, top_p=0.5)
    assert fake.requests[0] == fake.requests[1]


def test_a_10_opaque_reasoning_leaves_in_no_answer() -> None:
    """RU-12."""
    item: dict[str, Any] = {"type": "reasoning", "summary": [], "encrypted_content": "opaque"}
    data = json.dumps({"status": "completed", "output": [item]}).encode()
    found = reply_of(DIALECTS["responses"], data)
    assert "opaque" in repr(found.message.opaque)
    assert "opaque" not in json.dumps(found.to_openai())
    data = json.dumps(
        {
            "type": "message",
            "content": [{"type": "thinking", "thinking": "t", "signature": "opaque"}],
            "stop_reason": "end_turn",
        }
    ).encode()
    assert "opaque" not in json.dumps(reply_of(DIALECTS["anthropic"], data).to_openai())


@pytest.mark.parametrize("name", NAMES)
def test_a_10_opaque_reasoning_goes_to_no_other_dialect(name: str) -> None:
    """R-9, N-13, AE-24: and to its own only when the provider says so (RU-12)."""
    opaque = {other: ({"type": "x", "secret": other},) for other in NAMES}
    request = request_from_openai({"model": "m", "messages": [HI]})
    history = (*request.messages, AssistantMessage(content="a", opaque=opaque))
    request = type(request)(model="m", messages=(*history, *request.messages))
    for replay in (False, True):
        settings = WireSettings(replay_reasoning=replay)
        wire = DIALECTS[name].codec.encode(
            request, base_url="http://x", stream=True, settings=settings
        )
        told = [other for other in NAMES if f'"{other}"'.encode() in wire.body]
        assert told == [] or (replay and told == [name])


@pytest.mark.parametrize("name", NAMES)
async def test_a_12_a_strict_server_plays_a_call_its_result_and_a_later_turn(name: str) -> None:
    fake = fake_of(name, [say("", calls=[CALL], reasoning="Hm."), say("3 C."), say("Bye.")])
    target = target_of(name)
    first = await ask(fake, target, tools=[WEATHER])
    said = first.to_openai()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first.message.tool_calls[0].id, "content": "3 C"}
    second = await ask(fake, target, messages=[HI, said, result], tools=[WEATHER])
    answer = second.to_openai()["choices"][0]["message"]
    third = await ask(fake, target, messages=[HI, said, result, answer, HI], tools=[WEATHER])
    assert ("3 C.", "Bye.") == (second.message.content, third.message.content)


async def test_a_12_the_strict_cerebras_refuses_reasoning_content_in_history() -> None:
    fake = fake_of("cerebras", [say("ok")])
    said = {"role": "assistant", "content": "b", "reasoning": "a"}
    with pytest.raises(ProviderError, match="reasoning_content") as caught:
        await ask(fake, target_of("compatible"), messages=[HI, said, HI])
    assert 400 == caught.value.peer_status
    assert "ok" == (await ask(fake, target_of("cerebras"), messages=[HI, said, HI])).message.content


@pytest.mark.parametrize("name", NAMES)
def test_a_13_a_model_that_declares_no_effort_is_sent_none(name: str) -> None:
    request = request_from_openai({"model": "m", "messages": [HI]})
    plain = json.loads(target_of(name).encode(request, stream=False).body)
    assert EFFORT_WORDS.isdisjoint(plain)
    declared = ModelSettings(efforts=("low", "high"), effort="high")
    target = target_of(name, model_settings={"m": declared})
    body = json.loads(target.encode(request, stream=False).body)
    assert EFFORTS[name].items() <= body.items()


@pytest.mark.parametrize("name", NAMES)
def test_a_13_a_callers_effort_passes_or_is_checked_against_the_list(name: str) -> None:
    """RU-17."""
    request = request_from_openai({"model": "m", "messages": [HI], "reasoning_effort": "high"})
    body = json.loads(target_of(name).encode(request, stream=False).body)
    assert EFFORTS[name].items() <= body.items()
    target = target_of(name, model_settings={"m": ModelSettings(efforts=("low", "medium"))})
    with pytest.raises(RequestError, match="low, medium"):
        target.encode(request, stream=False)


def test_a_14_the_refusal_of_an_effort_beside_tools_gets_advice_and_no_other_does() -> None:
    """P-22; the whole play is in ``test_responses_exchange``."""
    said = {"message": "Function tools are refused.", "param": "reasoning_effort"}
    hint = error_of(DIALECTS["compatible"], 400, {"error": said}).hint
    assert hint is not None
    assert "responses" in hint
    assert "effort =" not in hint
    for status, other in ((422, said), (400, {**said, "param": "n"}), (400, {"message": "tool"})):
        assert error_of(DIALECTS["compatible"], status, {"error": other}).hint is None


@pytest.mark.parametrize("name", NAMES)
def test_a_15_the_dialect_changes_neither_the_destination_nor_who_gets_the_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AE-14: it leaves in one header."""
    monkeypatch.setenv("UP_KEY", "secret")
    key = Credential(env="UP_KEY", hosts=("peer.test",))
    request = request_from_openai({"model": "m", "messages": [HI]})
    target = target_of(name, key=key)
    wire = target.encode(request, stream=False)
    assert wire.url.startswith("http://peer.test/")
    headers = target.authorize(wire).headers
    assert 1 == len([value for value in headers.values() if "secret" in value])
    moved = target.at("http://elsewhere.test/v1")
    with pytest.raises(ConfigError, match=r"elsewhere\.test"):
        moved.authorize(moved.encode(request, stream=False))


@pytest.mark.parametrize("name", NAMES)
async def test_a_16_nothing_is_released_before_a_good_end(name: str) -> None:
    """P-24."""
    whole = wire_chunks(name, say("It is warm."))
    cut = FakeReply(chunks=whole[:3])
    with pytest.raises(TruncatedReply) as caught:
        await ask(fake_of(name, [cut]), target_of(name))
    assert "warm" not in str(caught.value)
    reply = await ask(fake_of(name, [FakeReply(chunks=whole)]), target_of(name))
    assert "It is warm." == reply.message.content


@pytest.mark.parametrize("name", NAMES)
def test_a_17_options_without_a_schema_go_through_the_extra_body(name: str) -> None:
    options = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 40}
    assert options.items() <= sent(name, extra_body=options).items()


def test_these_are_all_dialects_that_there_are() -> None:
    assert set(NAMES) == set(EFFORTS)
