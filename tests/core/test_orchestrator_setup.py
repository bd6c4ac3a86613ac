"""Core API, sections 1 and 4: what is settled and refused by the call itself."""

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, cast

import pytest

from tests.core.scripted import HI, KEY, MODEL, Scripted, Tools, calls, function, recipe
from woollama.core import (
    FunctionTools,
    InferenceError,
    ModelRegistry,
    Provider,
    Recipe,
    ToolProvider,
    ToolResult,
    ToolSpec,
    make_recipe,
    orchestrate,
    orchestrate_events,
)
from woollama.core.errors import CannotEncode, NotBuilt, RequestError
from woollama.core.testing.fake import say

CALLS = pytest.mark.parametrize("call", [orchestrate, orchestrate_events])
Call = Callable[..., Any]


def refused(call: Call, *args: Any, **more: Any) -> InferenceError:
    """The error that the call itself raises, before anything is awaited or sent."""
    up = Scripted([])
    with pytest.raises(InferenceError) as caught:
        call(*args, **{**up.call, **more})
    assert [] == up.fake.requests
    return caught.value


async def text_of(waiting: Any) -> str:
    return (await waiting)["choices"][0]["message"]["content"]


async def test_p_2_the_example_of_the_notes_runs_as_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An own object with ``tools_for`` and ``dispatch``, against a strict fake."""
    monkeypatch.setenv("MY_KEY", KEY)
    up = Scripted([calls("search"), say("Paris.")])

    class MyTools:
        def tools_for(self, allow: list[str]) -> list[ToolSpec]:
            return [ToolSpec(name=name, schema=function(name)) for name in allow]

        async def dispatch(self, name: str, args: dict[str, Any]) -> ToolResult:
            return ToolResult(blocks=[{"type": "text", "text": "it is Paris"}])

    models = ModelRegistry(
        inferencers={"mine": Provider("mine", "http://up.test/v1", "MY_KEY", {}, ("m",))}
    )
    recipe = Recipe(
        model="mine/m",
        system="You answer in one word.",
        tools=["search"],
        params={"temperature": 0},
    )
    messages = [{"role": "user", "content": "The capital of France?"}]
    reply = await orchestrate(
        recipe, messages, registry=models, tools=MyTools(), transport=up.transport
    )
    assert "Paris." == reply["choices"][0]["message"]["content"]
    first = up.bodies()[0]
    assert {"role": "system", "content": "You answer in one word."} == first["messages"][0]
    assert ("m", 0) == (first["model"], first["temperature"])


@pytest.mark.parametrize(
    "given",
    [
        {"inferencer": f"up/{MODEL}"},
        {"model": f"up/{MODEL}"},
        {"inferencer": f"up/{MODEL}", "model": f"up/{MODEL}"},
        MappingProxyType({"inferencer": f"up/{MODEL}", "params": None, "tools": None}),
        {"inferencer": f"up/{MODEL}", "tools": (), "system": None, "unknown": 1},
        make_recipe(f"up/{MODEL}"),
        Recipe(model=f"up/{MODEL}"),
    ],
)
async def test_p_2_any_mapping_with_a_recipes_keys_is_one(given: Any) -> None:
    up = Scripted([say("x")])
    assert "x" == await text_of(orchestrate(given, [HI], **up.call))


def test_p_2_make_recipe_gives_a_plain_recipe() -> None:
    assert {
        "inferencer": "p/m",
        "system": "Be brief.",
        "tools": ["a"],
        "params": {"seed": 1},
    } == make_recipe("p/m", "Be brief.", ("a",), {"seed": 1})
    assert {"inferencer": "p/m", "system": None, "tools": [], "params": {}} == make_recipe("p/m")


@CALLS
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs an 'inferencer'"),
        ({"inferencer": ""}, "needs an 'inferencer'"),
        ({"inferencer": 3}, "needs an 'inferencer'"),
        (["up/m"], "must be a mapping"),
        (None, "must be a mapping"),
        ({"inferencer": "up/m", "model": "up/n"}, "these differ"),
        ({"inferencer": "up/m", "system": 3}, "'system' must be text"),
        ({"inferencer": "up/m", "tools": "a"}, "list of names"),
        ({"inferencer": "up/m", "tools": [3]}, "list of names"),
        ({"inferencer": "up/m", "tools": 3}, "list of names"),
        ({"inferencer": "up/m", "params": [1]}, "'params' must be an object"),
        ({"inferencer": "up/m", "params": {"temperature": "hot"}}, "temperature"),
        ({"inferencer": "up"}, "names a provider and no model"),
    ],
)
def test_p_2_a_recipe_that_is_none_is_refused_by_the_call(
    call: Call, given: Any, said: str
) -> None:
    error = refused(call, given, [HI])
    assert said in error.message
    assert (400, "invalid_request_error") == (error.status, error.type)


@CALLS
@pytest.mark.parametrize("name", ["nobody/m", "claude-code/opus", "claude-agent/x", "m"])
def test_an_unknown_provider_in_a_recipe_is_not_implemented(call: Call, name: str) -> None:
    """RU-32 and RU-48: 501 here, 400 from ``complete``."""
    error = refused(call, {"inferencer": name}, [HI])
    assert isinstance(error, NotBuilt)
    assert (501, "not_implemented") == (error.status, error.type)
    assert "claude-code" in error.message or "claude-agent" in error.message


def test_an_unknown_provider_lists_the_known_ones() -> None:
    error = refused(orchestrate, {"inferencer": "nobody/m"}, [HI], registry=None)
    for name in ("ollama", "anthropic", "openai", "groq", "together", "openrouter", "claude-code"):
        assert name in error.message


async def test_a_provider_of_ones_own_may_be_called_claude_code() -> None:
    up = Scripted([say("x")])
    up.registry.add("claude-code", "http://up.test/v1")
    waiting = orchestrate({"inferencer": "claude-code/m"}, [HI], **up.call)
    assert "x" == await text_of(waiting)


@CALLS
def test_a_missing_key_is_named_by_the_call(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "")
    registry = ModelRegistry([Provider("up", "http://up.test/v1", "UP_KEY")])
    error = refused(call, recipe(), [HI], registry=registry, api_key=None)
    assert (400, "invalid_request_error") == (error.status, error.type)
    assert "UP_KEY" in error.message


@CALLS
@pytest.mark.parametrize("messages", ["hi", {"role": "user"}, 3, None, [3], [{"role": "boss"}]])
def test_messages_that_are_none_are_refused_by_the_call(call: Call, messages: Any) -> None:
    error = refused(call, recipe(), messages)
    assert (400, "invalid_request_error") == (error.status, error.type)
    assert "messages" in error.message


@CALLS
@pytest.mark.parametrize("key", ["model", "messages", "stream", "tools"])
@pytest.mark.parametrize("inside", [False, True], ids=["params", "extra_body"])
def test_a_reserved_key_cannot_be_overridden(call: Call, key: str, inside: bool) -> None:
    params: dict[str, Any] = {key: True}
    error = refused(call, recipe(params={"extra_body": params} if inside else params), [HI])
    assert (400, key) == (error.status, error.param)


@CALLS
def test_max_turns_must_allow_one(call: Call) -> None:
    assert 400 == refused(call, recipe(), [HI], max_turns=0).status


async def test_messages_may_be_any_iterable() -> None:
    def each() -> Iterator[dict[str, Any]]:
        yield HI

    up = Scripted([say("x"), say("y")])
    assert "x" == await text_of(orchestrate(recipe(), each(), **up.call))
    assert "y" == await text_of(orchestrate(recipe(), (HI,), **up.call))


async def test_user_msgs_is_another_name_of_messages() -> None:
    up = Scripted([say("x"), say("y")])
    assert "x" == await text_of(orchestrate(recipe(), user_msgs=[HI], **up.call))
    waiting = orchestrate(recipe(), tools=None, user_msgs=[HI], **up.call)
    assert "y" == await text_of(waiting)
    assert "two names" in refused(orchestrate, recipe(), [HI], user_msgs=[HI]).message
    assert 400 == refused(orchestrate, recipe()).status


async def test_tools_are_given_by_position_or_by_name() -> None:
    for args, named in (((Tools("a"),), {}), ((), {"tools": Tools("a")})):
        up = Scripted([calls("a"), say("x")])
        waiting = orchestrate(recipe("a"), [HI], *args, **cast("Any", named), **up.call)
        assert "x" == await text_of(waiting)
        assert 2 == len(up.fake.requests)


async def test_functions_alone_are_tools_too() -> None:
    def look() -> str:
        return "seen"

    up = Scripted([calls("look"), say("x"), calls("look"), say("y")])
    assert "x" == await text_of(orchestrate(recipe("look"), [HI], [look], **up.call))
    waiting = orchestrate(recipe("look"), [HI], FunctionTools(look), **up.call)
    assert "y" == await text_of(waiting)
    assert "seen" == up.bodies()[3]["messages"][-1]["content"]


@pytest.mark.parametrize("tools", [3, [3], object()])
def test_what_has_no_tools_is_refused(tools: Any) -> None:
    assert "tools_for" in refused(orchestrate, recipe("a"), [HI], tools).message


async def test_the_address_may_be_the_callers() -> None:
    up = Scripted([say("x")])
    waiting = orchestrate(recipe(), [HI], base_url="http://elsewhere.test/v1", **up.call)
    assert "x" == await text_of(waiting)


async def test_a_registry_is_the_built_in_one_when_none_is_given() -> None:
    up = Scripted([say("x")], dialect="ollama")
    waiting = orchestrate({"inferencer": "ollama/m"}, [HI], transport=up.transport)
    assert "x" == await text_of(waiting)


class _Broken:
    def __init__(self, offer: Callable[[], Any]) -> None:
        self._offer = offer

    def tools_for(self, allow: list[str]) -> Any:
        return self._offer()

    async def dispatch(self, name: str, args: dict[str, Any]) -> Any:
        return None


def _raise() -> Any:
    raise LookupError("no tools today")


async def _later() -> list[ToolSpec]:
    return []


class _Offer:
    """As an embedder's own class: only ``schema`` is there."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema


@CALLS
@pytest.mark.parametrize(
    ("offer", "said"),
    [
        (_raise, "LookupError: no tools today"),
        (_later, "TypeError: tools_for must not be async"),
        (lambda: None, "TypeError:"),
        (lambda: [{"type": "function"}], "AttributeError:"),
        (lambda: [_Offer({})], "KeyError:"),
        (lambda: [_Offer({"function": {"name": ""}})], "TypeError:"),
        (lambda: [_Offer(function("a")), _Offer(function("a"))], "two tools are named 'a'"),
    ],
    ids=["raises", "async", "none", "dicts", "no function", "no name", "twice"],
)
def test_tools_that_cannot_be_had_fail_the_call(
    call: Call, offer: Callable[[], Any], said: str
) -> None:
    error = refused(call, recipe("a"), [HI], cast("ToolProvider", _Broken(offer)))
    assert said in error.message
    assert (500, "server_error") == (error.status, error.type)


async def test_tools_for_is_called_once_at_setup_with_a_list() -> None:
    up = Scripted([calls("a"), say("x")])
    tools = Tools("a")
    waiting = orchestrate(recipe("a", "b", "a"), [HI], tools, **up.call)
    assert [["a", "b"]] == tools.asked
    await waiting
    assert [["a", "b"]] == tools.asked
    assert list is type(tools.asked[0])


async def test_only_the_schema_of_an_offer_has_to_be_there_and_a_generator_is_fine() -> None:
    class Generating:
        def tools_for(self, allow: list[str]) -> Iterator[_Offer]:
            for name in allow:
                yield _Offer(function(name))

        async def dispatch(self, name: str, args: dict[str, Any]) -> str:
            return f"{name}!"

    up = Scripted([calls("a__b"), say("x")])
    await orchestrate(recipe("a.b"), [HI], Generating(), **up.call)
    assert "a.b!" == up.bodies()[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("params", "options"),
    [
        ({"num_ctx": 4096}, {"num_ctx": 4096}),
        ({"num_ctx": 4096, "options": {"top_k": 3}}, {"top_k": 3, "num_ctx": 4096}),
        ({"options": {"num_ctx": 4096}}, {"num_ctx": 4096}),
        ({"num_ctx": 4096, "options": {"num_ctx": 4096}}, {"num_ctx": 4096}),
    ],
)
async def test_p_3_num_ctx_is_ollamas_option(
    params: dict[str, Any], options: dict[str, Any]
) -> None:
    up = Scripted([say("x")], dialect="ollama")
    await orchestrate(recipe(params=params), [HI], **up.call)
    assert options == up.bodies()[0]["options"]


@pytest.mark.parametrize("dialect", ["anthropic", "cerebras", "compatible", "responses"])
def test_p_3_another_dialect_refuses_num_ctx_by_name(dialect: str) -> None:
    up = Scripted([], dialect=dialect)
    with pytest.raises(CannotEncode, match=f"'{dialect}'.*'num_ctx'") as caught:
        orchestrate(recipe(params={"num_ctx": 4096}), [HI], **up.call)
    assert (400, "num_ctx") == (caught.value.status, caught.value.param)


@pytest.mark.parametrize(
    "params", [{"num_ctx": 1, "options": {"num_ctx": 2}}, {"num_ctx": 1, "options": [1]}]
)
def test_p_3_two_sizes_that_differ_are_refused(params: dict[str, Any]) -> None:
    up = Scripted([], dialect="ollama")
    with pytest.raises(RequestError):
        orchestrate(recipe(params=params), [HI], **up.call)


async def test_a_schema_mode_shapes_what_the_model_is_offered() -> None:
    """RU-4: the provider's setting acts on the tools of a recipe."""
    from woollama.core.wire import WireSettings

    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}

    class Shaped(Tools):
        def tools_for(self, allow: list[str]) -> list[ToolSpec]:
            return [ToolSpec("a", function("a", schema))]

    offered: list[Any] = []
    for settings in (WireSettings(), WireSettings(schema_mode="normalize")):
        up = Scripted([say("x")], settings=settings)
        await orchestrate(recipe("a"), [HI], Shaped("a"), **up.call)
        offered.append(up.bodies()[0]["tools"][0]["function"]["parameters"]["properties"]["a"])
    assert [{"type": ["string", "null"]}, {"type": "string"}] == offered
