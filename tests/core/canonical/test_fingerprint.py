"""P-25, A-11: a request has one hash, whoever is asked."""

import hashlib
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    FunctionTool,
    Params,
    SystemMessage,
    UserMessage,
    canonical_hash,
    request_from_openai,
)
from woollama.core.wire import DIALECTS, WireSettings

BODY: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    ],
    "temperature": 0.5,
    "metadata": {"b": "1", "a": "2"},
}


def test_p_25_it_is_the_sha_256_of_sorted_json() -> None:
    request = ChatRequest(model="m", messages=(UserMessage(content="hi"),))
    user = b'{"content":"hi","is":"UserMessage"}'
    data = b'{"is":"ChatRequest","messages":[' + user + b'],"model":"m"}'
    assert hashlib.sha256(data).hexdigest() == canonical_hash(request)


def test_p_25_the_order_of_keys_does_not_count_and_that_of_messages_does() -> None:
    request = request_from_openai(BODY)
    turned = {key: BODY[key] for key in reversed(BODY)} | {"metadata": {"a": "2", "b": "1"}}
    assert canonical_hash(request) == canonical_hash(request_from_openai(turned))
    other = {**BODY, "messages": BODY["messages"][::-1]}
    assert canonical_hash(request) != canonical_hash(request_from_openai(other))


def test_p_25_what_is_not_set_does_not_count() -> None:
    nulls: dict[str, Any] = {**BODY, "seed": None, "tools": [], "stop": None}
    assert canonical_hash(request_from_openai(BODY)) == canonical_hash(request_from_openai(nulls))


def test_p_25_read_only_mappings_count_like_others() -> None:
    def tool(parameters: Any) -> ChatRequest:
        tools = (FunctionTool(name="f", parameters=parameters),)
        return ChatRequest(model="m", messages=(), tools=tools, params=Params(seed=1))

    plain = {"type": "object"}
    assert canonical_hash(tool(plain)) == canonical_hash(tool(MappingProxyType(plain)))


def test_p_25_who_said_a_thing_counts() -> None:
    hashes = {
        canonical_hash(ChatRequest(model="m", messages=(message,)))
        for message in (
            UserMessage(content="hi"),
            AssistantMessage(content="hi"),
            SystemMessage(content="hi"),
            SystemMessage(content="hi", role="developer"),
        )
    }
    assert 4 == len(hashes)


def test_what_is_no_json_has_no_hash() -> None:
    with pytest.raises(TypeError, match="object"):
        canonical_hash(ChatRequest(model="m", messages=(), extra={"x": object()}))


@pytest.mark.parametrize("name", DIALECTS)
def test_a_11_encoding_for_any_dialect_leaves_the_request_and_its_hash_alone(name: str) -> None:
    request = request_from_openai({**BODY, "metadata": None})
    before = canonical_hash(request), msgspec.to_builtins(request)
    DIALECTS[name].codec.encode(
        request, base_url="http://peer.test/v1", stream=True, settings=WireSettings()
    )
    assert before == (canonical_hash(request), msgspec.to_builtins(request))
