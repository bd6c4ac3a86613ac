"""What a model is told of a result (core API, section 5): everything, or a mark where it was."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from woollama.core import (
    Capabilities,
    ImageRenderer,
    Renderer,
    TextRenderer,
    ToolResult,
    render_tool_result,
)

SEES = Capabilities(accepts_image_parts=True)
TEXT = {"type": "text", "text": "note"}
IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "UklGRgAA", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file:///a.txt", "name": "a", "mimeType": "text/plain"}
FILE = {
    "type": "resource",
    "resource": {"uri": "file:///n.txt", "mimeType": "text/plain", "text": "inside"},
}
BLOB = {
    "type": "resource",
    "resource": {"uri": "file:///n.bin", "mimeType": "application/pdf", "blob": "AAAA"},
}
PICTURE = {
    "type": "resource",
    "resource": {"uri": "file:///n.png", "mimeType": "image/png", "blob": "BBBB"},
}


class Sdk:
    """A block as the objects of an SDK are."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, **how: Any) -> dict[str, Any]:
        assert {"mode": "json", "by_alias": True, "exclude_none": True} == how
        return self.fields


class Texty:
    text = "from an object"


class Opaque:
    pass


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([], ""),
        ([TEXT], "note"),
        ([TEXT, {"type": "text", "text": "more"}], "note\nmore"),
        (["plain", TEXT], "plain\nnote"),
        ([Sdk(**TEXT)], "note"),
        ([Texty()], "from an object"),
        ([IMAGE], "[image omitted: image/png]"),
        ([AUDIO], "[audio omitted: audio/wav]"),
        ([TEXT, IMAGE], "note\n[image omitted: image/png]"),
        ([LINK], "[resource link: a, file:///a.txt, text/plain]"),
        ([FILE], "inside"),
        ([BLOB], "[resource omitted: file:///n.bin, application/pdf]"),
        ([{"type": "resource"}], "[resource omitted]"),
        ([{"type": "hologram"}], "[hologram omitted]"),
        ([{"type": "text"}], "[text omitted]"),
        ([{"no": "type"}], "[block of no type omitted]"),
        ([Opaque()], "[Opaque omitted]"),
    ],
)
def test_a_text_model_is_told_in_text(blocks: list[Any], expected: str) -> None:
    assert expected == render_tool_result(ToolResult(blocks))


@pytest.mark.parametrize("block", [IMAGE, AUDIO, BLOB, PICTURE])
def test_base64_never_becomes_text(block: Mapping[str, Any]) -> None:
    told = render_tool_result(ToolResult([block]))
    data = block.get("data") or block["resource"]["blob"]
    assert isinstance(told, str)
    assert data not in told


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ToolResult(structured={"answer": 42}), '{"answer":42}'),
        (ToolResult([TEXT], structured={"a": "é"}), 'note\n{"a":"é"}'),
        (ToolResult([TEXT], structured=[1]), "note\n[1]"),
        (ToolResult(structured=0), "0"),
        (ToolResult(structured=object()), "[structured result of type object omitted]"),
    ],
)
def test_structured_results_follow_as_json(result: ToolResult, expected: str) -> None:
    assert expected == render_tool_result(result)


@pytest.mark.parametrize(
    ("text", "structured"),
    [
        ('{"answer": 42}', {"answer": 42}),
        ('{ "answer" : 42.0 }', {"answer": 42}),
        # A plain value as MCP's Python SDK gives it.
        ("noon, Tuesday", {"result": "noon, Tuesday"}),
        ("42", {"result": 42}),
        ('"noon"', {"result": "noon"}),
        ("noon", "noon"),
    ],
)
def test_a_structured_result_that_a_text_says_already_is_not_said_twice(
    text: str, structured: Any
) -> None:
    assert text == render_tool_result(ToolResult(text, structured=structured))


@pytest.mark.parametrize("structured", [{"result": "one"}, {"result": "noon", "zone": "UTC"}])
def test_a_structured_result_that_says_more_is_said(structured: Any) -> None:
    told = render_tool_result(ToolResult("noon", structured=structured))
    assert f"noon\n{msgspec.json.encode(structured).decode()}" == told


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ToolResult(is_error=True), "[tool error]"),
        (ToolResult("disk full", is_error=True), "[tool error] disk full"),
        (ToolResult([IMAGE], is_error=True), "[tool error] [image omitted: image/png]"),
        (ToolResult(structured={"code": 5}, is_error=True), '[tool error] {"code":5}'),
    ],
)
def test_p_44_a_failed_result_says_so_first(result: ToolResult, expected: str) -> None:
    assert expected == render_tool_result(result)


def test_a_model_that_sees_gets_images() -> None:
    told = render_tool_result(ToolResult([TEXT, IMAGE, AUDIO, PICTURE]), caps=SEES)
    assert [
        {"type": "text", "text": "note"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "text", "text": "[audio omitted: audio/wav]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,BBBB"}},
    ] == told


def test_a_failed_result_with_an_image_says_so_in_front_of_it() -> None:
    told = render_tool_result(ToolResult([IMAGE], is_error=True), caps=SEES)
    assert {"type": "text", "text": "[tool error]"} == told[0]
    assert 2 == len(told)


@pytest.mark.parametrize(
    "block",
    [
        BLOB,
        {"type": "image", "mimeType": "image/png"},
        {"type": "image", "data": "AAAA"},
        {"type": "image", "data": "AAAA", "mimeType": "text/html"},
        {"type": "resource", "resource": {"uri": "file:///x"}},
    ],
)
def test_what_is_no_image_is_not_shown_as_one(block: Mapping[str, Any]) -> None:
    told = render_tool_result(ToolResult([block]), caps=SEES)
    assert isinstance(told, str)
    assert told.startswith("[")


def test_the_names_of_python_sdks_are_read_too() -> None:
    block = {"type": "image", "data": "AAAA", "mime_type": "image/gif"}
    assert "[image omitted: image/gif]" == render_tool_result(ToolResult([block]))


def test_ru_22_a_callers_renderers_come_first_and_may_pass() -> None:
    class Shouting:
        def render(
            self, block: Mapping[str, Any], caps: Capabilities, /
        ) -> str | Mapping[str, Any] | None:
            match block["type"]:
                case "text":
                    return str(block["text"]).upper()
                case "structured":
                    return f"= {block['structured']}"
                case "audio" if caps.accepts_audio:
                    sound = {"data": block["data"], "format": "wav"}
                    return {"type": "input_audio", "input_audio": sound}
                case _:
                    return None

    renderer: Renderer = Shouting()
    result = ToolResult([TEXT, AUDIO, IMAGE], structured=7)
    assert (
        "NOTE\n[audio omitted: audio/wav]\n[image omitted: image/png]\n= 7"
        == render_tool_result(result, renderers=[renderer])
    )
    heard = render_tool_result(result, caps=Capabilities(accepts_audio=True), renderers=(renderer,))
    assert {"type": "input_audio", "input_audio": {"data": "UklGRgAA", "format": "wav"}} == heard[1]


def test_ru_22_the_shipped_renderers_can_be_used_alone() -> None:
    assert ImageRenderer().render(IMAGE, Capabilities()) is None
    assert ImageRenderer().render(TEXT, SEES) is None
    assert "note" == TextRenderer().render(TEXT, SEES)


def test_rendering_changes_nothing_in_the_result() -> None:
    result = ToolResult([dict(IMAGE)], structured={"a": [1]}, is_error=True)
    before = repr(result)
    render_tool_result(result, caps=SEES)
    assert before == repr(result)
