"""Tool schemas in a provider's ``schema_mode`` (RU-4): one test for each shape."""

import copy
import itertools
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.canonical import FunctionTool, OtherTool
from woollama.core.tools import object_schema, shape_schema, shape_tools
from woollama.core.tools.schemas import SchemaMode

NODE: dict[str, Any] = {
    "type": "object",
    "description": "A node.",
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
}
RECURSIVE: dict[str, Any] = {
    "type": "object",
    "properties": {"first": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": NODE},
}


def prop(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def shaped(schema: dict[str, Any], mode: SchemaMode) -> Any:
    return shape_schema(prop(schema), mode)["properties"]["a"]


@pytest.mark.parametrize(
    "schema",
    [
        RECURSIVE,
        prop({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        prop({"type": ["string", "null"]}),
        prop({}),
    ],
)
def test_as_is_changes_nothing(schema: dict[str, Any]) -> None:
    tools = (FunctionTool(name="t", parameters=schema),)
    assert tools is shape_tools(tools, "as_is")
    assert schema == shape_schema(schema, "as_is")


def test_a_local_reference_is_put_in_its_place() -> None:
    schema = {
        "type": "object",
        "$defs": {"F": {"type": "string", "enum": ["fit", "raw"]}},
        "properties": {"f": {"$ref": "#/$defs/F"}},
        "required": ["f"],
        "additionalProperties": False,
    }
    assert {
        "type": "object",
        "properties": {"f": {"type": "string", "enum": ["fit", "raw"]}},
        "required": ["f"],
        "additionalProperties": False,
    } == shape_schema(schema, "inline")


@pytest.mark.parametrize(
    "reference",
    ["#/definitions/a~1b", "#/properties/x/items", "#/definitions/outer/$defs/inner"],
)
def test_every_way_to_point_into_the_document_is_followed(reference: str) -> None:
    number = {"type": "number"}
    schema = {
        "type": "object",
        "definitions": {"a/b": number, "outer": {"$defs": {"inner": number}}},
        "properties": {"x": {"type": "array", "items": number}, "y": {"$ref": reference}},
    }
    assert number == shape_schema(schema, "inline")["properties"]["y"]


def test_what_stands_beside_a_reference_wins() -> None:
    schema = {**prop({"$ref": "#/$defs/T", "description": "mine"}), "$defs": {"T": NODE}}
    del schema["$defs"]["T"]["properties"]["next"]
    told = shape_schema(schema, "inline")["properties"]["a"]
    assert ("mine", "object") == (told["description"], told["type"])


def test_a_schema_that_holds_itself_is_cut_where_it_repeats() -> None:
    schema = copy.deepcopy(RECURSIVE)
    schema["$defs"]["Node"]["properties"]["next"] = {"$ref": "#/$defs/Node"}
    once = shape_schema(schema, "inline")["properties"]["first"]
    assert {"type": "string"} == once["properties"]["name"]
    assert {
        "type": "object",
        "description": "A node. (more of the same, left out)",
    } == once["properties"]["next"]
    assert "$ref" not in json.dumps(shape_schema(schema, "normalize"))


def test_a_reference_to_the_whole_document_is_cut_too() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    child = shape_schema(schema, "inline")["properties"]["child"]
    assert {"type": "object", "description": "(more of the same, left out)"} == (
        child["properties"]["child"]
    )


def test_references_that_multiply_are_bounded() -> None:
    names = [f"D{i}" for i in range(40)]
    defs: dict[str, Any] = {
        name: {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/{below}"} for key in ("l", "r")},
        }
        for name, below in itertools.pairwise(names)
    }
    defs[names[-1]] = {"type": "string"}
    schema = {**prop({"$ref": "#/$defs/D0"}), "$defs": defs}
    told = json.dumps(shape_schema(schema, "normalize"))
    assert len(told) < 2_000_000
    assert "$ref" not in told


def test_a_schema_that_is_nested_beyond_all_measure_is_cut() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    told = json.dumps(shape_schema(prop(schema), "normalize"))
    assert "left out" in told


@pytest.mark.parametrize("reference", ["#/$defs/Nowhere", "https://example.org/s.json", "#/x/0"])
def test_a_reference_that_leads_nowhere_leaves_a_mark(reference: str) -> None:
    told = shape_schema({**prop({"$ref": reference}), "x": [1]}, "inline")["properties"]["a"]
    assert {"description": "(described elsewhere, out of reach)"} == told


def test_a_property_may_be_named_like_a_keyword() -> None:
    schema = {
        "type": "object",
        "properties": {
            "$ref": {"type": "string"},
            "$defs": {"type": "integer"},
            "properties": {"type": "array", "items": {"type": "string"}},
        },
        "default": {"$ref": "data, not a reference"},
    }
    assert schema == shape_schema(schema, "inline")
    assert schema == shape_schema(schema, "normalize")


NORMALIZED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "N"},
        {"type": "integer", "title": "N"},
    ),
    (
        {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]},
        {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    ({"anyOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}]}),
    (
        {"anyOf": [{"type": "null"}, {"type": "null"}]},
        {"anyOf": [{"type": "null"}]},
    ),
    ({"allOf": [{"type": "string", "minLength": 1}]}, {"type": "string", "minLength": 1}),
    ({"anyOf": [True]}, {"type": "string"}),
    ({"anyOf": "wrong"}, {"anyOf": "wrong"}),
    ({"type": ["string", "null"], "default": None}, {"type": "string"}),
    (
        {"type": ["string", "integer", "null"], "minLength": 1},
        {"anyOf": [{"type": "string"}, {"type": "integer"}], "minLength": 1},
    ),
    ({"type": ["null"]}, {"type": "null"}),
    ({"type": ["string"], "default": None}, {"type": "string", "default": None}),
    ({"type": "null"}, {"type": "null"}),
    ({"const": "x"}, {"type": "string", "enum": ["x"]}),
    ({"enum": ["a", None], "default": None}, {"type": "string", "enum": ["a"]}),
    ({"enum": [None]}, {"type": "string", "enum": [None]}),
    ({"enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
    ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
    ({"enum": [1.5]}, {"type": "number", "enum": [1.5]}),
    ({"enum": [True]}, {"type": "boolean", "enum": [True]}),
    ({"enum": [[1]]}, {"type": "array", "enum": [[1]]}),
    ({"enum": [{}]}, {"type": "object", "enum": [{}]}),
    ({"enum": ["a", 1]}, {"type": "string", "enum": ["a", 1]}),
    ({}, {"type": "string"}),
    ({"description": "any"}, {"type": "string", "description": "any"}),
    ({"properties": {}}, {"type": "object", "properties": {}}),
    ({"additionalProperties": True}, {"type": "object", "additionalProperties": True}),
    ({"items": {}}, {"type": "array", "items": {"type": "string"}}),
    (
        {"items": [{}, {"type": "null"}]},
        {"type": "array", "items": [{"type": "string"}, {"type": "null"}]},
    ),
    ({"minimum": 1}, {"type": "number", "minimum": 1}),
    (
        {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ),
    (
        {"type": "object", "patternProperties": {"^x": {}}},
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
    ),
]


@pytest.mark.parametrize(("schema", "expected"), NORMALIZED)
def test_normalize_rewrites_what_strict_providers_refuse(
    schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert expected == shaped(schema, "normalize")
    assert schema == shaped(schema, "inline") or schema == {"anyOf": [True]}


def test_a_property_that_may_be_anything_is_text_for_a_strict_provider() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": True, "b": False}}
    told = shape_schema(schema, "normalize")["properties"]
    assert {"a": {"type": "string"}, "b": False} == told


def test_normalize_leaves_the_name_of_the_draft_out() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **prop({})}
    assert "$schema" in shape_schema(schema, "inline")
    assert "$schema" not in shape_schema(schema, "normalize")


def test_a_schema_is_not_changed_by_being_shaped() -> None:
    schema = copy.deepcopy(RECURSIVE)
    shape_schema(schema, "normalize")
    assert RECURSIVE == schema


def test_only_functions_with_parameters_are_shaped() -> None:
    tools = (
        OtherTool(type="web_search", raw={"type": "web_search"}),
        FunctionTool(name="bare"),
        FunctionTool(name="full", parameters=prop({})),
    )
    other, bare, full = shape_tools(tools, "normalize")
    assert tools[:2] == (other, bare)
    assert isinstance(full, FunctionTool)
    assert prop({"type": "string"}) == full.parameters


OBJECTS: list[tuple[dict[str, Any] | None, dict[str, Any]]] = [
    (None, {"type": "object", "properties": {}}),
    ({}, {"type": "object", "properties": {}}),
    ({"type": "object"}, {"type": "object", "properties": {}}),
    ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
    (
        {"required": ["a"], "properties": {"a": {}}},
        {"type": "object", "required": ["a"], "properties": {"a": {}}},
    ),
    ({"anyOf": [{}]}, {"type": "object", "anyOf": [{}], "properties": {}}),
]


@pytest.mark.parametrize(("parameters", "expected"), OBJECTS)
def test_every_tool_takes_an_object(
    parameters: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    assert expected == object_schema(parameters)


LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "null"},
        {"type": ["integer", "null"]},
        {"enum": ["a", None]},
        {"const": 3},
        {"$ref": "#/$defs/A"},
        {"$ref": "#/$defs/B"},
        {},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.text(max_size=3), inner)}
        ),
    ),
    max_leaves=8,
)


def refused(value: Any) -> list[str]:
    """What a strict provider would find in a schema."""
    if not isinstance(value, dict):
        return []
    schema = cast("dict[str, Any]", value)
    found: list[str] = []
    if "$ref" in schema:
        found.append("$ref")
    if isinstance(schema.get("type"), list):
        found.append("types")
    if "type" not in schema and not {"anyOf", "oneOf", "allOf"} & schema.keys():
        found.append("no type")
    arms: list[Any] = schema.get("anyOf", [])
    if len(arms) > 1 and {"type": "null"} in arms:
        found.append("null arm")
    properties: dict[str, Any] = schema.get("properties", {})
    inner: list[Any] = [*properties.values(), *arms, schema.get("items")]
    return found + [fault for each in inner for fault in refused(each)]


@given(SCHEMAS, SCHEMAS, SCHEMAS)
def test_a_normal_schema_holds_nothing_that_is_refused(root: Any, a: Any, b: Any) -> None:
    schema = {**prop(root), "$defs": {"A": a, "B": b}}
    assert [] == refused(shape_schema(schema, "normalize"))
