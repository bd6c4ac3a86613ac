"""What clients of Ollama send, to canonical: OL-1 to OL-9 seen from the other side."""

from base64 import b64encode
from typing import Any

import pytest

from woollama.core.canonical import (
    AssistantMessage,
    AudioPart,
    ChatRequest,
    FunctionCall,
    FunctionTool,
    ImagePart,
    Params,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from woollama.core.errors import RequestError
from woollama.core.wire.ollama import OLLAMA

PNG = "iVBORw0KGgoAAAANSUhEUg=="


def decode(**fields: Any) -> ChatRequest:
    return OLLAMA.codec.decode_request({"model": "m", **fields})


def message(**fields: Any) -> Any:
    return decode(messages=[fields]).messages[0]


def base64_of(data: bytes) -> str:
    return b64encode(data).decode()


def call(identity: str, name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=identity, function=FunctionCall(name=name, arguments=arguments))


def calls(*names: str, ids: tuple[str | None, ...] = ()) -> dict[str, Any]:
    given = ids or (None,) * len(names)
    made: list[dict[str, Any]] = [
        {"function": {"name": name, "arguments": {}}} | ({"id": identity} if identity else {})
        for name, identity in zip(names, given, strict=True)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


def result(name: str | None, content: str, identity: str | None = None) -> dict[str, Any]:
    named = {"tool_name": name, "tool_call_id": identity}
    return {"role": "tool", "content": content} | {k: v for k, v in named.items() if v is not None}


@pytest.mark.parametrize(("sent", "stream"), [({}, True), ({"stream": None}, True)])
def test_ol_1_stream_is_true_when_absent(sent: dict[str, Any], stream: bool) -> None:
    assert stream is decode(**sent).stream
    assert decode(stream=False).stream is False


def test_ol_2_options_with_an_openai_name_become_parameters() -> None:
    options = {
        "temperature": 0,
        "top_p": 0.5,
        "seed": 3,
        "stop": ["X"],
        "num_predict": 9,
        "presence_penalty": 1,
        "frequency_penalty": 2,
        "num_ctx": 8192,
        "top_k": None,
    }
    assert (
        Params(
            temperature=0,
            top_p=0.5,
            seed=3,
            stop=("X",),
            max_tokens=9,
            presence_penalty=1,
            frequency_penalty=2,
            options={"num_ctx": 8192},
        )
        == decode(options=options).params
    )


@pytest.mark.parametrize("cap", [-1, -2, 0])
def test_ol_10_a_cap_that_is_none_stays_an_option(cap: int) -> None:
    assert Params(options={"num_predict": cap}) == decode(options={"num_predict": cap}).params


@pytest.mark.parametrize(
    "empty",
    [{}, {"options": {}}, {"options": None}, {"format": ""}, {"format": None}, {"think": None}],
)
def test_empty_containers_ask_for_nothing(empty: dict[str, Any]) -> None:
    assert ChatRequest(model="m", messages=(), stream=True) == decode(
        messages=[], tools=[], **empty
    )


def test_ol_16_no_messages_are_none() -> None:
    request = decode(keep_alive=0)
    assert ((), 0) == (request.messages, request.params.keep_alive)


@pytest.mark.parametrize(
    ("think", "params", "extra"),
    [
        (True, Params(), {"think": True}),
        (False, Params(reasoning_effort="none"), {}),
        ("high", Params(reasoning_effort="high"), {}),
    ],
)
def test_ol_6_think_is_an_effort_where_it_names_one(
    think: Any, params: Params, extra: dict[str, Any]
) -> None:
    request = decode(think=think)
    assert (params, extra) == (request.params, dict(request.extra))


def test_c_2_a_format_is_a_response_format() -> None:
    assert {"type": "json_object"} == decode(format="json").params.response_format
    schema = {"type": "object"}
    assert {
        "type": "json_schema",
        "json_schema": {"name": "format", "schema": schema},
    } == decode(format=schema).params.response_format


def test_fields_of_its_own_are_kept() -> None:
    request = decode(truncate=False, shift=True, logprobs=True, top_logprobs=2)
    assert {"truncate": False, "shift": True} == dict(request.extra)
    assert Params(logprobs=True, top_logprobs=2) == request.params


def test_tools_are_read_as_they_are() -> None:
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}}
    assert (FunctionTool(name="f", description="d", parameters={"type": "object"}),) == decode(
        tools=[{"type": "function", "function": function}]
    ).tools


def test_roles_are_lower_cased_and_content_may_be_absent() -> None:
    assert UserMessage(content="hi") == message(role="USER", content="hi")
    assert SystemMessage(content="") == message(role="System", content=None)
    assert UserMessage(content="") == message(role="user")


def test_unknown_keys_of_a_message_are_kept() -> None:
    assert UserMessage(content="hi", extra={"tool_calls": 5}) == message(
        role="user", content="hi", tool_calls=5
    )


def test_o_3_thinking_is_reasoning_and_arguments_are_text() -> None:
    said = calls("f", ids=("c",))
    said["thinking"] = "why"
    said["tool_calls"][0]["function"] |= {"arguments": {"b": 1, "a": "é"}, "index": 3}
    assert AssistantMessage(
        reasoning="why", tool_calls=(call("c", "f", '{"b":1,"a":"é"}'),)
    ) == message(**said)


def test_no_arguments_are_an_empty_object() -> None:
    said = calls("f", ids=("c",))
    del said["tool_calls"][0]["function"]["arguments"]
    assert (call("c", "f"),) == message(**said).tool_calls


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b"\x89PNG\r\n\x1a\n0000", "data:image/png;base64,{}"),
        (b"\xff\xd8\xff\xe000000000", "data:image/jpeg;base64,{}"),
        (b"GIF89a000000", "data:image/gif;base64,{}"),
        (b"RIFF0000WEBP", "data:image/webp;base64,{}"),
        (b"BM0000000000", "data:application/octet-stream;base64,{}"),
        (b"", "data:application/octet-stream;base64,{}"),
    ],
)
def test_ol_7_bare_images_become_data_urls(head: bytes, part: str) -> None:
    data = base64_of(head)
    assert UserMessage(content=(TextPart(text="a"), ImagePart(url=part.format(data)))) == message(
        role="user", content="a", images=[data]
    )


@pytest.mark.parametrize(
    ("head", "format"),
    [
        (b"RIFF0000WAVE", "wav"),
        (b"ID3000000000", "mp3"),
        (b"\xff\xfb0000000000", "mp3"),
        (b"\xff\xf30000000000", "mp3"),
    ],
)
def test_ol_7_sound_among_the_images_is_sound(head: bytes, format: str) -> None:
    data = base64_of(head)
    assert UserMessage(content=(AudioPart(data=data, format=format),)) == message(
        role="user", images=[data]
    )


def test_images_of_an_assistant_are_kept() -> None:
    assert AssistantMessage(content=(ImagePart(url=f"data:image/png;base64,{PNG}"),)) == message(
        role="assistant", images=[PNG]
    )


def test_ol_9_calls_without_ids_get_ids_that_nobody_has() -> None:
    request = decode(
        messages=[
            calls("f", "g", ids=(None, "call_2")),
            result("f", "1"),
            result("g", "2", "call_2"),
            calls("f"),
            result("f", "3"),
        ]
    )
    assert (
        AssistantMessage(tool_calls=(call("call_1", "f"), call("call_2", "g"))),
        ToolMessage(tool_call_id="call_1", content="1"),
        ToolMessage(tool_call_id="call_2", content="2"),
        AssistantMessage(tool_calls=(call("call_3", "f"),)),
        ToolMessage(tool_call_id="call_3", content="3"),
    ) == request.messages


def test_ol_5_results_are_tied_by_the_name_and_then_by_the_order() -> None:
    request = decode(
        messages=[
            calls("f", "g", "f"),
            result("g", "1"),
            result("f", "2"),
            result(None, "3"),
            result("h", "4"),
            result(None, "5", "gone"),
            result("k", "6", "gone"),
        ]
    )
    assert (
        ToolMessage(tool_call_id="call_2", content="1"),
        ToolMessage(tool_call_id="call_1", content="2"),
        ToolMessage(tool_call_id="call_3", content="3"),
        ToolMessage(tool_call_id="call_4", content="4", extra={"name": "h"}),
        ToolMessage(tool_call_id="gone", content="5"),
        ToolMessage(tool_call_id="gone", content="6", extra={"name": "k"}),
    ) == request.messages[1:]


def test_ol_5_a_name_that_differs_from_the_calls_is_kept() -> None:
    request = decode(messages=[calls("f", ids=("a",)), result("other", "1", "a")])
    assert (
        ToolMessage(tool_call_id="a", content="1", extra={"name": "other"}) == (request.messages[1])
    )


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model"),
    ({"messages": "hi"}, "messages"),
    ({"messages": {"role": "user"}}, "messages"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"messages": [{"content": "hi"}]}, "messages[0].role"),
    ({"messages": [{"role": 7}]}, "messages[0].role"),
    ({"messages": [{"role": "owner"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "images": PNG}]}, "messages[0].images"),
    ({"messages": [{"role": "user", "images": [7]}]}, "messages[0].images[0]"),
    ({"messages": [{"role": "user", "images": ["é"]}]}, "messages[0].images[0]"),
    (
        {"messages": [{"role": "user", "images": [f"data:image/png;base64,{PNG}"]}]},
        "messages[0].images[0]",
    ),
    ({"messages": [{"role": "assistant", "thinking": 7}]}, "messages[0].thinking"),
    ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
    ({"messages": [{"role": "assistant", "tool_calls": [7]}]}, "messages[0].tool_calls[0]"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]},
        "messages[0].tool_calls[0].function",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
        "messages[0].tool_calls[0]",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": 7, "function": {}}]}]},
        "messages[0].tool_calls[0].id",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": []}}]}]},
        "messages[0].tool_calls[0].function.name",
    ),
    (
        {
            "messages": [
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
                }
            ]
        },
        "messages[0].tool_calls[0].function.arguments",
    ),
    ({"messages": [{"role": "tool", "tool_name": 7}]}, "messages[0].tool_name"),
    ({"messages": [{"role": "tool", "tool_call_id": 7}]}, "messages[0].tool_call_id"),
    ({"options": [1]}, "options"),
    ({"options": {"temperature": "hot"}}, "temperature"),
    ({"format": "xml"}, "format"),
    ({"think": 7}, "think"),
    ({"stream": "yes"}, "stream"),
    ({"tools": {}}, "tools"),
]


@pytest.mark.parametrize(("fields", "param"), REFUSED)
def test_what_the_server_would_refuse_is_refused_by_name(
    fields: dict[str, Any], param: str
) -> None:
    with pytest.raises(RequestError) as caught:
        decode(**fields)
    assert (param, 400) == (caught.value.param, caught.value.status)
