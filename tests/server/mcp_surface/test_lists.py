"""What clients are shown: tools, prompts, who we are (server/mcp/surface*.py)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, GetPromptResult, PromptReference, TextContent

from tests.server.mcp_surface.rig import (
    ERAS,
    LEGACY,
    MODERN,
    Era,
    connected,
    daemon,
    fixtures,
    raw,
    scripted,
    servers,
)
from woollama.core import __version__
from woollama.core.errors import RequestError
from woollama.core.patterns import Pattern, PatternCall, PatternCatalog
from woollama.server.mcp.surface_prompts import Prompts

RECIPES = """
[recipes.translator]
inferencer = "up/m"
system = "Into {{language}} for {{who}}. {{language}}"
description = "Translates."
[recipes.translator.variables.language]
default = "English"
choices = ["English", "Spanish", "Esperanto"]
description = "The language."

[recipes.plain]
inferencer = "up/m"
system = "Be brief."
"""
FOLDER = '[patterns]\ndir = "prompts"\n'
VERSIONS = (MODERN, LEGACY, "2024-11-05")


def tools_file(folder: Path, *tools: dict[str, Any]) -> str:
    path = folder / "tools.json"
    path.write_text(json.dumps(tools))
    return str(path)


async def named(url: str, version: str) -> dict[str, dict[str, Any]]:
    async with raw(url, version) as client:
        answer = await client.request("tools/list")
    assert "result" in answer, answer
    return {tool["name"]: tool for tool in answer["result"]["tools"]}


@pytest.mark.parametrize("era", ERAS)
async def test_we_say_who_we_are(tmp_path: Path, era: Era) -> None:
    async with daemon(tmp_path) as running, connected(running.url, era) as client:
        assert client.server_info is not None
        assert ("woollama", __version__) == (client.server_info.name, client.server_info.version)
        assert "'chat' asks any model" in (client.instructions or "")
        offered = client.server_capabilities
        assert offered.tools is not None
        assert offered.prompts is not None
        assert offered.resources is not None
        assert (True, True, True) == (
            offered.tools.list_changed,
            offered.prompts.list_changed,
            offered.resources.list_changed,
        )
        assert not offered.resources.subscribe


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_keeps_all_that_its_server_says_of_it(tmp_path: Path, version: str) -> None:
    tool = {
        "name": "look",
        "title": "Look",
        "description": "Looks.",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"x-mcp-header": {"type": "string", "default": None}},
            "x-unknown": [1, None],
        },
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True, "x-novel": "kept"},
        "_meta": {"vendor/x": {"deep": None}},
        "x-future": {"kept": True},
    }
    files = {"mcp.json": servers(t=scripted("--tools", tools_file(tmp_path, tool)))}
    async with daemon(tmp_path, files, instance_id="me-1") as running:
        found = await named(running.url, version)
    expected = {
        **tool,
        "name": "t__look",
        "_meta": {"vendor/x": {"deep": None}, "woollama/instance": ["me-1"]},
    }
    assert ["chat", "t__look"] == list(found)
    assert expected == found["t__look"]
    assert ["me-1"] == found["chat"]["_meta"]["woollama/instance"]


ODD: list[dict[str, Any]] = [
    {"name": "bare", "inputSchema": {}},
    {"name": "either", "inputSchema": {"type": ["object", "null"], "anyOf": [{}]}},
    {"name": "hints", "inputSchema": {}, "annotations": {"readOnlyHint": "very"}},
    {"name": "hopeless", "inputSchema": {"$schema": 7}},
    {"name": "tasks", "inputSchema": {}, "execution": {"taskSupport": "required"}},
]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_odd_tool_costs_that_tool_and_not_the_list(tmp_path: Path, version: str) -> None:
    files = {"mcp.json": servers(t=scripted("--tools", tools_file(tmp_path, *ODD)))}
    async with daemon(tmp_path, files) as running:
        found = await named(running.url, version)
    assert ["chat", "t__bare", "t__either", "t__hints", "t__tasks"] == list(found)
    assert {"type": "object"} == found["t__bare"]["inputSchema"]
    assert {"type": "object", "anyOf": [{}]} == found["t__either"]["inputSchema"]
    assert "annotations" not in found["t__hints"]
    assert "execution" not in found["t__tasks"]
    assert all(tool["description"] for tool in found.values())


async def test_an_output_of_no_object_is_shown_to_those_that_know_it(tmp_path: Path) -> None:
    tool = {"name": "list", "inputSchema": {}, "outputSchema": {"type": "array"}}
    files = {"mcp.json": servers(t=scripted("--tools", tools_file(tmp_path, tool)))}
    async with daemon(tmp_path, files) as running:
        newer, older = await named(running.url, MODERN), await named(running.url, LEGACY)
    assert {"type": "array"} == newer["t__list"]["outputSchema"]
    assert "outputSchema" not in older["t__list"]


async def test_marks_for_headers_are_not_passed_on(tmp_path: Path) -> None:
    marked = {"type": "string", "x-mcp-header": "Region"}
    properties = {"region": marked, "x-mcp-header": {"type": "string"}}
    tool = {"name": "run", "inputSchema": {"type": "object", "properties": properties}}
    files = {"mcp.json": servers(t=scripted("--tools", tools_file(tmp_path, tool)))}
    async with daemon(tmp_path, files) as running:
        found = await named(running.url, MODERN)
    shown = {"region": {"type": "string"}, "x-mcp-header": {"type": "string"}}
    assert shown == found["t__run"]["inputSchema"]["properties"]


async def test_ru_45_names_have_40_characters_at_most_and_lead_back(tmp_path: Path) -> None:
    long = "a_tool_with_a_name_that_goes_on_and_on_and_on"
    tools: list[dict[str, Any]] = [
        {"name": name, "inputSchema": {}} for name in (long, "dot.ted", "dot__ted", "grün")
    ]
    path = tools_file(tmp_path, *tools)
    files = {"mcp.json": servers(**{"my server": scripted("--tools", path)})}
    async with daemon(tmp_path, files) as running, raw(running.url, LEGACY) as client:
        answer = await client.request("tools/list")
        names = [tool["name"] for tool in answer["result"]["tools"]]
        pinned = [
            "chat",
            "my_server__a_tool_with_a_name_t_f4254347",
            "my_server__dot__ted_dd19d2a2",
            "my_server__dot__ted_4bf2bc6c",
            "my_server__gr_n_3a647f25",
        ]
        assert pinned == names
        assert all(len(name) <= 40 for name in names)
        called = [(await client.call(name))["content"][0]["text"] for name in names[1:]]
    assert [f"called {tool['name']}" for tool in tools] == called


async def test_the_order_is_that_of_the_file_and_of_each_server(tmp_path: Path) -> None:
    files = {"mcp.json": servers(b=fixtures("--tools-only"), a=scripted())}
    async with daemon(tmp_path, files) as running:
        await running.connected("a", "b")
        first, second = await named(running.url, MODERN), await named(running.url, LEGACY)
    assert list(first) == list(second)
    assert "chat" == next(iter(first))
    owners = [name.partition("__")[0] for name in list(first)[1:]]
    assert ["b", "a"] == list(dict.fromkeys(owners))


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list"])
async def test_a_page_that_is_not_there_is_refused(tmp_path: Path, method: str) -> None:
    async with daemon(tmp_path) as running, raw(running.url, LEGACY) as client:
        answer = await client.request(method, {"cursor": "2"})
    assert INVALID_PARAMS == answer["error"]["code"]


@pytest.mark.parametrize("era", ERAS)
async def test_only_the_listed_servers_are_passed_on(tmp_path: Path, era: Era) -> None:
    given = {**servers(a=scripted(), b=scripted()), "export": {"servers": ["b"]}}
    async with (
        daemon(tmp_path, {"mcp.json": given}) as running,
        connected(running.url, era) as client,
    ):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"chat", "b"} == {name.partition("__")[0] for name in names}
        with pytest.raises(MCPError, match="Unknown tool: a__pid"):
            await client.call_tool("a__pid", {})


async def test_recipes_only_leaves_recipes(tmp_path: Path) -> None:
    given = {**servers(a=scripted()), "export": {"recipesOnly": True}}
    files = {"mcp.json": given, "recipes.toml": RECIPES}
    async with daemon(tmp_path, files) as running, connected(running.url) as client:
        await running.connected("a")
        (chat,) = (await client.list_tools()).tools
        assert "model" not in chat.input_schema["properties"]
        assert 2 == len((await client.list_prompts()).prompts)


def said_in(got: GetPromptResult) -> str:
    (message,) = got.messages
    assert "user" == message.role
    assert isinstance(message.content, TextContent)
    return message.content.text


@pytest.mark.parametrize("era", ERAS)
async def test_p_41_prompts_are_the_patterns_with_their_variables(tmp_path: Path, era: Era) -> None:
    (tmp_path / "prompts" / "tidy up").mkdir(parents=True)
    (tmp_path / "prompts" / "tidy up" / "system.md").write_text("Tidy {{what}}.")
    async with (
        daemon(tmp_path, {"recipes.toml": RECIPES + FOLDER}) as running,
        connected(running.url, era) as client,
    ):
        plain, folder, translator = (await client.list_prompts()).prompts
        assert ("plain", [], "The recipe 'plain'.") == (
            plain.name,
            plain.arguments,
            plain.description,
        )
        assert ("tidy_up_ac589c1e", "tidy up") == (folder.name, folder.title)
        assert ("translator", "Translates.") == (translator.name, translator.description)
        language, who = translator.arguments or []
        assert (False, True) == (language.required, who.required)
        said = "The language. One of: English, Spanish, Esperanto. Default: 'English'."
        assert said == language.description
        for name in (folder.name, "tidy up"):
            got = await client.get_prompt(name, {"what": "this"})
            assert "Tidy this." == said_in(got)


@pytest.mark.parametrize("era", ERAS)
async def test_p_41_a_prompt_is_rendered_as_on_w1(tmp_path: Path, era: Era) -> None:
    async with (
        daemon(tmp_path, {"recipes.toml": RECIPES}) as running,
        connected(running.url, era) as client,
    ):
        given: list[tuple[dict[str, str] | None, str]] = [
            (None, "Into English for {{who}}. English"),
            ({"who": "me"}, "Into English for me. English"),
            ({"language": "", "who": "{{language}}"}, "Into  for {{language}}. "),
            ({"language": "French", "other": "x"}, "Into French for {{who}}. French"),
        ]
        for arguments, expected in given:
            got = await client.get_prompt("translator", arguments)
            assert expected == said_in(got)
            (backend, _) = running.services.directory.catalog.find("translator") or (None, None)
            assert backend is not None
            assert expected == await backend.render("translator", arguments or {})
            assert "Translates." == got.description
        with pytest.raises(MCPError, match="Unknown prompt: translater"):
            await client.get_prompt("translater")


@pytest.mark.parametrize("era", ERAS)
async def test_choices_complete_an_argument(tmp_path: Path, era: Era) -> None:
    async with (
        daemon(tmp_path, {"recipes.toml": RECIPES}) as running,
        connected(running.url, era) as client,
    ):
        reference = PromptReference(type="ref/prompt", name="translator")
        for argument, begun, expected in [
            ("language", "E", ["English", "Esperanto"]),
            ("language", "", ["English", "Spanish", "Esperanto"]),
            ("who", "", []),
            ("nothing", "", []),
        ]:
            given = {"name": argument, "value": begun}
            assert expected == (await client.complete(reference, given)).completion.values


@pytest.mark.parametrize("era", ERAS)
async def test_nothing_to_read_is_an_empty_list(tmp_path: Path, era: Era) -> None:
    files = {"mcp.json": servers(t=scripted())}
    async with daemon(tmp_path, files) as running, connected(running.url, era) as client:
        await running.connected("t")
        assert [] == (await client.list_resources()).resources
        assert [] == (await client.list_resource_templates()).resource_templates


async def test_the_first_list_waits_for_servers_that_are_just_coming(tmp_path: Path) -> None:
    files = {"mcp.json": servers(t=scripted(), gone={"command": "no-such-program-here"})}
    async with daemon(tmp_path, files) as running:
        assert "t__pid" in await named(running.url, LEGACY)


async def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    files = {"mcp.json": servers(mute=scripted("--mute"), t=scripted())}
    async with daemon(tmp_path, files, patience_s=0.01) as running:
        await running.connected("t")
        with anyio.fail_after(5):
            assert "t__pid" in await named(running.url, LEGACY)


class Refusing:
    """A backend whose one pattern cannot be rendered."""

    id = "refusing"

    def list(self) -> Sequence[Pattern]:
        return (Pattern(name="p", source="refusing"),)

    def find(self, name: str) -> Pattern | None:
        return self.list()[0] if name == "p" else None

    async def render(
        self, name: str, variables: Mapping[str, Any], input: str | None = None
    ) -> str:
        raise RequestError(f"{name} needs more than {dict(variables)}.")

    def open_run(self, call: PatternCall) -> Any:
        raise AssertionError


async def test_a_backends_refusal_to_render_is_told(tmp_path: Path) -> None:
    prompts = Prompts(PatternCatalog([Refusing()]))
    assert "The pattern 'p'." == prompts.listed()[0]["description"]
    with pytest.raises(MCPError, match="p needs more than") as refused:
        await prompts.get("p", {"a": "b"})
    assert INVALID_PARAMS == refused.value.code
