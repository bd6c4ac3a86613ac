"""Tool schemas for providers that refuse some shapes: ``$ref``, null arms, types left out (RU-4).

``as_is`` sends a schema as the tool gave it. ``inline`` puts the target of each local ``$ref`` in
its place. ``normalize`` inlines, then rewrites what strict providers refuse:

- a null arm of ``anyOf`` or ``oneOf``, ``"null"`` in a list of types, null among the values of an
  ``enum``: left out, with a default of null beside it;
- ``anyOf``, ``oneOf`` or ``allOf`` of one arm: the arm itself;
- a list of types: ``anyOf``; ``const``: ``enum``; ``$schema``: left out;
- no type: the one that the other keywords imply, else ``string``.

A schema that holds itself is cut where it repeats, and so is one that grows or nests beyond all
measure: its type stands there alone, and the description says so.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import msgspec

from woollama.core.canonical import FunctionTool, Tool

__all__ = ["SchemaMode", "object_schema", "shape_schema", "shape_tools"]

SchemaMode = Literal["as_is", "inline", "normalize"]

Schema = dict[str, Any]

_LIMIT_NODES = 5_000
_LIMIT_DEPTH = 64
_CUT = "(more of the same, left out)"
_LOST = "(described elsewhere, out of reach)"

_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SEVERAL = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"dependentSchemas", "patternProperties", "properties"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_CHOICES = ("anyOf", "oneOf", "allOf")

_IMPLIED_BY = (
    ("object", ("properties", "required", "additionalProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems")),
    ("number", ("minimum", "maximum", "multipleOf")),
)


def object_schema(parameters: Mapping[str, Any] | None) -> Schema:
    """Parameters as every provider demands them: an object, with ``properties``.

    A tool without arguments may say neither; both are true of every tool.
    """
    schema: Schema = {"type": "object", **(parameters or {})}
    schema["type"] = "object"
    schema.setdefault("properties", {})
    return schema


def shape_tools(tools: tuple[Tool, ...], mode: SchemaMode) -> tuple[Tool, ...]:
    """The tools with their parameters in a provider's ``schema_mode``."""
    if mode == "as_is":
        return tools
    return tuple(
        msgspec.structs.replace(tool, parameters=shape_schema(tool.parameters, mode))
        if isinstance(tool, FunctionTool) and tool.parameters is not None
        else tool
        for tool in tools
    )


def shape_schema(schema: Mapping[str, Any], mode: SchemaMode) -> Schema:
    """A schema in a provider's ``schema_mode``; the given one is not changed."""
    if mode == "as_is":
        return dict(schema)
    inlined = _Inlining(schema).schema(schema, ())
    if mode == "inline":
        return inlined
    inlined.pop("$schema", None)
    return _normal(inlined)


def _each_inner(schema: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Any]) -> Schema:
    """The schema with ``change`` made to every schema directly inside it; data stays as it is."""
    changed: Schema = {}
    for key, value in schema.items():
        if isinstance(value, Mapping) and key in _NAMED:
            named = cast("Mapping[str, Any]", value)
            changed[key] = {name: _inner(inner, change) for name, inner in named.items()}
        elif isinstance(value, list) and key in _SEVERAL:
            changed[key] = [_inner(inner, change) for inner in cast("list[Any]", value)]
        elif isinstance(value, Mapping) and key in _ONE:
            changed[key] = change(cast("Mapping[str, Any]", value))
        else:
            changed[key] = value
    return changed


def _inner(value: Any, change: Callable[[Mapping[str, Any]], Any]) -> Any:
    # A schema may also be written true, which is the empty one.
    value = {} if value is True else value
    return change(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value


class _Inlining:
    """Puts the targets of the local references of one document in their places."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._nodes = 0
        self._depth = 0

    def schema(self, schema: Mapping[str, Any], under: tuple[str, ...]) -> Schema:
        """``schema`` without references; ``under`` are those it stands in."""
        if self._depth > _LIMIT_DEPTH:
            return _cut(schema)
        self._nodes += 1
        self._depth += 1
        try:
            return self._resolved(schema, under)
        finally:
            self._depth -= 1

    def _resolved(self, schema: Mapping[str, Any], under: tuple[str, ...]) -> Schema:
        reference = schema.get("$ref")
        kept = {
            key: value for key, value in schema.items() if key != "$ref" and key not in _DEFINITIONS
        }
        beside = _each_inner(kept, lambda inner: self.schema(inner, under))
        if not isinstance(reference, str):
            return beside
        target = self._target(reference)
        if target is None:
            return {**_noted({}, _LOST), **beside}
        if reference in under or self._nodes > _LIMIT_NODES:
            # References can also multiply without one of them ever coming back to itself.
            return {**_cut(target), **beside}
        return {**self.schema(target, (*under, reference)), **beside}

    def _target(self, reference: str) -> Mapping[str, Any] | None:
        if not reference.startswith("#"):
            return None
        found: Any = self._document
        for step in reference[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                return None
            found = cast("Mapping[str, Any]", found)[key]
        return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def _cut(schema: Mapping[str, Any]) -> Schema:
    kept = {key: schema[key] for key in ("type", "title", "description") if key in schema}
    return _noted(kept, _CUT)


def _noted(schema: Schema, note: str) -> Schema:
    said = schema.get("description")
    return {**schema, "description": f"{said} {note}" if isinstance(said, str) else note}


def _normal(schema: Mapping[str, Any]) -> Schema:
    if schema.get("type") == "null":
        # An arm that is null is taken out by the schema it stands in.
        return dict(schema)
    normal = _each_inner(schema, _normal)
    for key in _CHOICES:
        arms = normal.get(key)
        if isinstance(arms, list):
            normal = _fewer_arms(normal, key, cast("list[Any]", arms))
    return _typed(normal)


def _fewer_arms(schema: Schema, key: str, arms: list[Any]) -> Schema:
    kept = [arm for arm in arms if not _is_null(arm)]
    if not kept:
        return {**schema, key: arms[:1]}
    if len(kept) < len(arms):
        schema = _not_null(schema)
    rest = {name: value for name, value in schema.items() if name != key}
    if len(kept) == 1 and isinstance(kept[0], dict):
        return {**cast("Schema", kept[0]), **rest}
    return {**rest, key: kept}


def _is_null(arm: Any) -> bool:
    return isinstance(arm, dict) and cast("Schema", arm).get("type") == "null"


def _not_null(schema: Schema) -> Schema:
    if "default" in schema and schema["default"] is None:
        return {key: value for key, value in schema.items() if key != "default"}
    return schema


def _typed(schema: Schema) -> Schema:
    if "const" in schema:
        rest = {key: value for key, value in schema.items() if key != "const"}
        schema = {**rest, "enum": [schema["const"]]}
    values = schema.get("enum")
    if isinstance(values, list):
        known = [value for value in cast("list[Any]", values) if value is not None]
        if known and len(known) < len(cast("list[Any]", values)):
            schema = _not_null({**schema, "enum": known})
    kind = schema.get("type")
    if isinstance(kind, list):
        return _one_type(schema, cast("list[Any]", kind))
    if isinstance(kind, str) or any(key in schema for key in _CHOICES):
        return schema
    return {"type": _implied(schema), **schema}


def _one_type(schema: Schema, kinds: list[Any]) -> Schema:
    others = [kind for kind in kinds if kind != "null"]
    if others and len(others) < len(kinds):
        schema = _not_null(schema)
    if len(others) < 2:
        return {**schema, "type": others[0] if others else "null"}
    rest = {key: value for key, value in schema.items() if key != "type"}
    # Keywords of one type say nothing about values of another, so they may stand beside the arms.
    return {"anyOf": [{"type": kind} for kind in others], **rest}


def _implied(schema: Mapping[str, Any]) -> str:
    for kind, keys in _IMPLIED_BY:
        if any(key in schema for key in keys):
            return kind
    values = schema.get("enum")
    kinds = {_kind(value) for value in cast("list[Any]", values)} if values else set[str]()
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "string"


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "string"
