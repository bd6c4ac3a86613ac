"""Typed Python functions as tools: their annotations are the schema, and arguments are checked."""

import functools
import inspect
from collections.abc import Callable, Generator, Mapping
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints, overload

import msgspec

from woollama.core.canonical import NOTHING, ToolResult, Value
from woollama.core.errors import RequestError, UnknownTool
from woollama.core.tools.spec import BlockingCall, ToolSpec

__all__ = ["FunctionTools", "tool"]

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__woollama_tool__"
_NO_PLACE = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


class _Said(Value, frozen=True, kw_only=True):
    """What ``@tool`` says of a function beside its signature."""

    name: str | None = None
    description: str | None = None
    annotations: Mapping[str, Any] = NOTHING


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    annotations: Mapping[str, Any] = NOTHING,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    annotations: Mapping[str, Any] = NOTHING,
) -> F | Callable[[F], F]:
    """Marks a function as a tool, and says of it what its signature does not.

    The function stays what it is. ``@tool`` alone checks its signature where it is written, which
    is where one wants to hear about it.

    Args:
        function: whose parameters are all annotated with types that have a JSON form.
        name: instead of the function's; may hold a dot (``files.read``).
        description: instead of its docstring.
        annotations: MCP's hints, ``{"readOnlyHint": True}``; for the embedder only (P-4).

    Raises:
        RequestError: a parameter has no annotation, or one without a JSON form.
    """

    def mark(marked: F) -> F:
        said = _Said(name=name, description=description, annotations=annotations)
        setattr(marked, _MARK, said)
        if "." not in marked.__qualname__.rpartition("<locals>.")[2]:
            # A method is checked when it is bound: before that its first parameter is the object.
            _FunctionTool(marked)
        return marked

    return mark if function is None else mark(function)


class FunctionTools:
    """A ``ToolProvider`` of Python functions, plain ones and ``async`` ones.

    A plain function runs in a worker thread, so it may block; an ``async`` one runs on the loop.
    What a function returns becomes the result: a ``ToolResult`` as it is, a string as text, None as
    nothing, mappings, lists and typed objects as structured JSON, other values as JSON text.
    """

    def __init__(self, *functions: Callable[..., Any]) -> None:
        """Offers the functions, each under its name.

        Raises:
            RequestError: a parameter has no annotation or one without a JSON form, or two functions
                have one name.
        """
        self._tools: dict[str, _FunctionTool] = {}
        for function in functions:
            made = _FunctionTool(function)
            if made.spec.name in self._tools:
                raise RequestError(f"Two tools are named {made.spec.name!r}.", param="tools")
            self._tools[made.spec.name] = made

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, for a recipe's list."""
        return tuple(self._tools)

    def tools_for(self, allow: list[str], /) -> list[ToolSpec]:
        """See ``ToolProvider.tools_for``."""
        return [self._tools[name].spec for name in allow if name in self._tools]

    def dispatch(self, name: str, args: dict[str, Any], /) -> Any:
        """See ``ToolProvider.dispatch``.

        Returns:
            An awaitable of the result; for a plain function a ``BlockingCall``.

        Raises:
            UnknownTool: there is none of this name.
        """
        found = self._tools.get(name)
        if found is None:
            raise UnknownTool(f"There is no tool {name!r}.")
        return found.call(args)


class _FunctionTool:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        said = cast("_Said", getattr(function, _MARK, _Said()))
        name = said.name or _name_of(function)
        self._shape = _shape(function, name)
        described = said.description or inspect.getdoc(_innermost(function))
        about = {"name": name, **({"description": described} if described else {})}
        schema = {"type": "function", "function": {**about, "parameters": _schema(self._shape)}}
        self.spec = ToolSpec(
            name,
            schema,
            source_name=name,
            output_schema=_output_schema(function),
            annotations=said.annotations,
        )
        self._is_async = _is_async(function)

    def call(self, args: Mapping[str, Any]) -> Any:
        try:
            checked = msgspec.convert(args, self._shape)
        except msgspec.ValidationError as error:
            return _Ready(ToolResult(f"wrong arguments: {error}", is_error=True))
        # Only what was given: the function's own defaults stand for the rest.
        given = {key: getattr(checked, key) for key in args}
        if self._is_async:
            return self._awaited(given)
        return BlockingCall(lambda: _result(self._function(**given)))

    async def _awaited(self, given: Mapping[str, Any]) -> ToolResult:
        return _result(await self._function(**given))


class _Ready:
    """A result that is there without waiting, for callers that await every dispatch."""

    def __init__(self, result: ToolResult) -> None:
        self._result = result

    def __await__(self) -> Generator[Any, None, ToolResult]:
        yield from ()
        return self._result


def _innermost(function: Callable[..., Any]) -> Any:
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = cast("functools.partial[Any]", inner).func
    return inner


def _name_of(function: Callable[..., Any]) -> str:
    inner = _innermost(function)
    return getattr(inner, "__name__", type(inner).__name__)


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    inner = _innermost(function)
    if not (inspect.isroutine(inner) or inspect.isclass(inner)):
        inner = type(inner).__call__
    return get_type_hints(inner, include_extras=True)


def _shape(function: Callable[..., Any], name: str) -> type[msgspec.Struct]:
    try:
        hints = _hints(function)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise RequestError(f"The tool {name!r} cannot be read: {error}.", param=name) from error
    fields: list[Any] = []
    for key, parameter in parameters.items():
        if parameter.kind in _NO_PLACE:
            raise RequestError(
                f"The tool {name!r} takes {str(parameter)!r}, which no schema can say: give it "
                "parameters with names.",
                param=name,
            )
        if key not in hints:
            raise RequestError(
                f"The parameter {key!r} of the tool {name!r} has no type: annotate it.", param=name
            )
        fields.append((key, _described(hints[key]), *_default(parameter)))
    return msgspec.defstruct(
        name.rpartition(".")[2], fields, kw_only=True, forbid_unknown_fields=True
    )


def _described(hint: Any) -> Any:
    """``Annotated[int, "how many"]``: the words are the parameter's description."""
    if get_origin(hint) is not Annotated:
        return hint
    inner, *notes = get_args(hint)
    made = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[(inner, *made)]  # pyright: ignore[reportInvalidTypeForm] - made at run time


def _default(parameter: inspect.Parameter) -> tuple[Any, ...]:
    if parameter.default is inspect.Parameter.empty:
        return ()
    try:
        msgspec.json.encode(parameter.default)
        shown = not isinstance(parameter.default, list | dict | set)
    except TypeError:
        shown = False
    # A default that JSON cannot say still makes the parameter optional.
    return (parameter.default if shown else msgspec.field(default_factory=lambda: None),)


def _schema(shape: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        (root,), components = msgspec.json.schema_components(
            (shape,), ref_template="#/$defs/{name}"
        )
    except TypeError as error:
        reason = str(error).partition("\n")[0]
        raise RequestError(
            f"The tool {shape.__name__!r} has a parameter whose type has no JSON form: {reason}",
            param=shape.__name__,
        ) from error
    own = root["$ref"].rpartition("/")[2]
    # An empty list of required names is refused by older readers of JSON Schema.
    parameters = {
        key: value
        for key, value in components[own].items()
        if key != "title" and (key, value) != ("required", [])
    }
    others = {key: value for key, value in components.items() if key != own}
    return {**parameters, "$defs": others} if others else parameters


def _output_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    returned = _hints(function).get("return")
    if returned in (None, type(None), str, ToolResult, Any):
        return None
    try:
        (root,), components = msgspec.json.schema_components(
            (returned,), ref_template="#/$defs/{name}"
        )
    except TypeError:
        return None
    own = root.get("$ref", "").rpartition("/")[2]
    found = components.get(own, root)
    if found.get("type") != "object":
        return None
    others = {key: value for key, value in components.items() if key != own}
    return {**found, "$defs": others} if others else dict(found)


def _result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult()
    if isinstance(value, str):
        return ToolResult(value)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("the function returned an awaitable: write it with 'async def'")
    plain = msgspec.to_builtins(value, str_keys=True)
    if isinstance(plain, dict | list):
        return ToolResult(structured=plain)
    return ToolResult(msgspec.json.encode(plain).decode())
