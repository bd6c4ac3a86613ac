"""Python functions as tools: schemas from annotations, checked arguments, results of every kind."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict, cast

import msgspec
import pytest

from woollama.core import FunctionTools, ToolResult, tool
from woollama.core.errors import RequestError, UnknownTool
from woollama.core.tools import BlockingCall


class Point(msgspec.Struct):
    x: float
    y: float


class Tree(msgspec.Struct):
    name: str
    branches: list["Tree"] = []


@dataclasses.dataclass
class City:
    name: str


class Weather(TypedDict):
    sky: str


def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


def parameters_of(function: Callable[..., Any]) -> dict[str, Any]:
    (spec,) = FunctionTools(function).tools_for([FunctionTools(function).names[0]])
    return spec.schema["function"]["parameters"]


async def call(function: Callable[..., Any], **args: Any) -> ToolResult:
    tools = FunctionTools(function)
    return cast("ToolResult", await tools.dispatch(tools.names[0], args))


def test_the_annotations_are_the_schema() -> None:
    (spec,) = FunctionTools(add).tools_for(["add"])
    assert {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds two numbers.",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer"},
                    "b": {"type": "integer", "default": 2},
                },
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    } == spec.schema


def test_words_beside_a_type_describe_the_parameter() -> None:
    def find(
        city: Annotated[str, "Its English name."],
        limit: Annotated[int, msgspec.Meta(ge=1, description="At most.")] = 3,
    ) -> str:
        return f"{city}{limit}"

    properties = parameters_of(find)["properties"]
    assert {"type": "string", "description": "Its English name."} == properties["city"]
    assert "At most." == properties["limit"]["description"]
    assert 1 == properties["limit"]["minimum"]


def test_types_of_ones_own_stand_among_the_definitions() -> None:
    def move(to: Point, how: Literal["walk", "run"] = "walk") -> None: ...

    schema = parameters_of(move)
    assert {"$ref": "#/$defs/Point"} == schema["properties"]["to"]
    assert ["x", "y"] == schema["$defs"]["Point"]["required"]


def test_a_type_that_holds_itself_is_a_schema_too() -> None:
    def plant(tree: Tree) -> None: ...

    schema = parameters_of(plant)
    assert {"$ref": "#/$defs/Tree"} == schema["$defs"]["Tree"]["properties"]["branches"]["items"]


def test_a_parameter_without_a_type_is_refused() -> None:
    def bad(a, b: int) -> int:  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - the fault under test
        return b

    with pytest.raises(
        RequestError, match=r"parameter 'a' of the tool 'bad' has no type"
    ) as caught:
        FunctionTools(cast("Callable[..., Any]", bad))
    assert 400 == caught.value.status


@pytest.mark.parametrize("kind", ["positional", "args", "kwargs"])
def test_a_parameter_that_no_schema_can_say_is_refused(kind: str) -> None:
    def positional(a: int, /) -> None: ...

    def args(*a: int) -> None: ...

    def kwargs(**a: int) -> None: ...

    functions: dict[str, Callable[..., Any]] = {
        "positional": positional,
        "args": args,
        "kwargs": kwargs,
    }
    with pytest.raises(RequestError, match="no schema can say"):
        FunctionTools(functions[kind])


def test_a_type_without_a_json_form_is_refused() -> None:
    def bad(a: Callable[..., Any]) -> None: ...

    with pytest.raises(RequestError, match="no JSON form"):
        FunctionTools(bad)


def test_a_name_in_an_annotation_that_is_not_there_is_refused() -> None:
    def bad(a: "Nowhere") -> None: ...  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType] - the fault under test

    with pytest.raises(RequestError, match="cannot be read"):
        FunctionTools(cast("Callable[..., Any]", bad))


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(RequestError, match="Two tools are named 'add'"):
        FunctionTools(add, add)


def test_only_allowed_tools_are_offered_in_the_order_of_the_list() -> None:
    def sub(a: int) -> int:
        return -a

    tools = FunctionTools(add, sub)
    assert ("add", "sub") == tools.names
    assert ["sub", "add"] == [spec.name for spec in tools.tools_for(["sub", "nobody", "add"])]
    assert [] == tools.tools_for([])


def test_p_4_a_decorated_function_stays_one_and_says_more() -> None:
    @tool(name="math.double", description="Twice.", annotations={"readOnlyHint": True})
    def double(n: int) -> int:
        return 2 * n

    assert 4 == double(2)
    (spec,) = FunctionTools(double).tools_for(["math.double"])
    assert ("math.double", "math.double") == (spec.name, spec.own_name)
    assert "Twice." == spec.schema["function"]["description"]
    assert {"readOnlyHint": True} == spec.annotations
    assert "annotations" not in spec.schema["function"]


def test_the_bare_decorator_checks_at_once() -> None:
    @tool
    def fine(n: int) -> int:
        return n

    assert ("fine",) == FunctionTools(fine).names

    def bad(n) -> int:  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - the fault under test
        return 1

    with pytest.raises(RequestError, match="has no type"):
        tool(cast("Callable[..., Any]", bad))


async def test_a_method_is_a_tool_when_it_is_bound() -> None:
    class Account:
        def __init__(self) -> None:
            self.sum = 0

        @tool(name="deposit")
        def put_in(self, amount: int) -> int:
            self.sum += amount
            return self.sum

    account = Account()
    assert "5" == (await call(account.put_in, amount=5)).blocks[0]["text"]
    assert 5 == account.sum


async def test_a_partial_and_an_object_that_is_called_are_tools() -> None:
    class Greeter:
        """Greets."""

        async def __call__(self, name: str) -> str:
            return f"hi {name}"

    assert "13" == (await call(functools.partial(add, b=10), a=3)).blocks[0]["text"]
    assert "hi Ada" == (await call(Greeter(), name="Ada")).blocks[0]["text"]
    tools = FunctionTools(functools.partial(add, b=10), Greeter())
    functions = [spec.schema["function"] for spec in tools.tools_for(["add", "Greeter"])]
    assert ["Adds two numbers.", "Greets."] == [each["description"] for each in functions]


def test_a_default_that_json_cannot_say_still_makes_a_parameter_optional() -> None:
    def peek(seen: list[int] = [1], size: int = cast("Any", object())) -> None: ...  # noqa: B006

    schema = parameters_of(peek)
    assert "required" not in schema
    assert {"type": "array", "items": {"type": "integer"}} == schema["properties"]["seen"]


async def test_a_default_is_the_functions_own() -> None:
    def count(seen: list[int] = [1, 2]) -> int:  # noqa: B006
        return len(seen)

    assert "2" == (await call(count)).blocks[0]["text"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"a": "1"}, "Expected `int`, got `str`"),
        ({}, "missing required field `a`"),
        ({"a": 1, "c": 2}, "unknown field `c`"),
    ],
)
async def test_wrong_arguments_are_a_failed_result_that_says_what_is_wrong(
    args: dict[str, Any], said: str
) -> None:
    result = await call(add, **args)
    assert result.is_error
    assert said in result.blocks[0]["text"]


async def test_arguments_arrive_as_the_types_they_are_declared_as() -> None:
    def far(point: Point, city: City) -> str:
        return f"{type(point).__name__} {point.x} {city.name}"

    result = await call(far, point={"x": 1.5, "y": 2}, city={"name": "Paris"})
    assert "Point 1.5 Paris" == result.blocks[0]["text"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", ToolResult("text")),
        (None, ToolResult()),
        (3, ToolResult("3")),
        (True, ToolResult("true")),
        ({"a": 1}, ToolResult(structured={"a": 1})),
        ([1, 2], ToolResult(structured=[1, 2])),
        (Point(1, 2), ToolResult(structured={"x": 1, "y": 2})),
        (City("Rome"), ToolResult(structured={"name": "Rome"})),
        (ToolResult("x", is_error=True), ToolResult("x", is_error=True)),
    ],
)
async def test_what_a_function_returns_becomes_a_result(value: Any, expected: ToolResult) -> None:
    def give() -> Any:
        return value

    async def give_later() -> Any:
        return value

    assert expected == await call(give)
    assert expected == await call(give_later)


def test_ru_42_a_plain_function_is_not_run_by_dispatch_itself() -> None:
    ran: list[int] = []

    def note(n: int) -> None:
        ran.append(n)

    returned = FunctionTools(note).dispatch("note", {"n": 1})
    assert isinstance(returned, BlockingCall)
    assert [] == ran
    assert ToolResult() == returned.run()
    assert [1] == ran


async def test_a_plain_function_that_returns_a_coroutine_is_told_so() -> None:
    async def later() -> int:
        return 1

    def wrong() -> Any:
        return later()

    class Awaited:
        def __await__(self) -> Any:
            yield

    def also_wrong() -> Any:
        return Awaited()

    for function in (wrong, also_wrong):
        with pytest.raises(TypeError, match="async def"):
            await call(function)


def test_an_unknown_tool_is_refused() -> None:
    with pytest.raises(UnknownTool, match="no tool 'nobody'"):
        FunctionTools(add).dispatch("nobody", {})


def test_a_return_type_that_is_an_object_is_the_output_schema() -> None:
    def weather(city: str) -> Weather:
        return {"sky": city}

    def where() -> Point:
        return Point(1, 2)

    def tree() -> Tree:
        return Tree("t")

    def other() -> Callable[..., Any]:
        return add

    def bare(n: int):  # pyright: ignore[reportUnknownParameterType] - a tool may say nothing of it
        return n

    def output(function: Callable[..., Any]) -> Any:
        tools = FunctionTools(function)
        return tools.tools_for(list(tools.names))[0].output_schema

    assert {"sky": {"type": "string"}} == output(weather)["properties"]
    assert ["x", "y"] == output(where)["required"]
    assert {"$ref": "#/$defs/Tree"} == output(tree)["properties"]["branches"]["items"]
    assert [None, None, None] == [output(other), output(bare), output(add)]
