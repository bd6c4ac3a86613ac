"""The set of plugins is checked before anything starts: P-61."""

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests.server.plugins.parts import (
    Keys,
    Strict,
    backend_of,
    installed,
    plugin,
    provider_of,
)
from woollama.core.errors import ConfigError
from woollama.server.plugins.contract import Plugin, PluginContext, PluginRoute, Secret
from woollama.server.plugins.installed import Installed, find_installed, gather
from woollama.server.plugins.loader import check_plugins, load_plugins
from woollama.server.plugins.names import RESERVED_NAMES


def problems_of(
    *plugins: Plugin,
    enabled: tuple[str, ...] | None = None,
    sections: Mapping[str, Any] | None = None,
    **more: Any,
) -> list[str]:
    """What is wrong with a set; everything in it is enabled unless said otherwise."""
    names = tuple(each.name for each in plugins) if enabled is None else enabled
    more.setdefault("found", installed(*plugins))
    _, problems = check_plugins(names, sections or {}, **more)
    return [str(problem) for problem in problems]


def giving(*things: object) -> Any:
    """A method that contributes these."""

    def contribute(_self: Plugin, _context: PluginContext) -> tuple[object, ...]:
        return things

    return contribute


def test_plugins_are_loaded_in_the_order_of_the_list_with_their_sections() -> None:
    found = installed(plugin("b", config_type=Keys), plugin("a"))
    loaded = load_plugins(("a", "b"), {"b": {"word": "x"}}, found=found)
    assert [("a", None), ("b", Keys(word="x"))] == [(e.plugin.name, e.config) for e in loaded]


def test_a_plugin_without_a_section_has_the_defaults() -> None:
    (loaded,) = load_plugins(("a",), {}, found=installed(plugin("a", config_type=Keys)))
    assert Keys() == loaded.config


def test_p_61_all_problems_are_in_one_report_by_name_and_with_the_fix() -> None:
    found = installed(
        plugin("old", api_version=7),
        plugin("silent", api_version=None),
        plugin("late", requires=("keyed",)),
        plugin("keyed", config_type=Keys),
        plugin("url", config_type=Strict),
        plugin("needy", requires=("ghost",), secrets={"key": Secret(env="NEEDY_KEY")}),
        plugin("v1"),
    )
    enabled = ("old", "silent", "late", "keyed", "url", "needy", "v1", "gone")
    sections: dict[str, Any] = {"keyed": {"wort": "x"}, "left": {"a": 1}}
    with pytest.raises(ConfigError) as caught:
        load_plugins(enabled, sections, found=found)
    expected = [
        "woollama.toml: plugins.left: is a section of a plugin that is not enabled: add 'left' to "
        "enabled under [plugins], or delete the section",
        "woollama.toml: plugins.enabled: 'old' states the plugin API version 7; this woollama has "
        "1; install a version of the plugin that fits",
        "woollama.toml: plugins.enabled: 'silent' states no plugin API version: set api_version "
        "= 1",
        "woollama.toml: plugins.enabled: 'late' requires 'keyed' before it: write enabled = "
        '["old", "silent", "keyed", "late", "url", "needy", "v1", "gone"]',
        "woollama.toml: plugins.keyed.wort: unknown key; did you mean 'word'?",
        "woollama.toml: plugins.url: needs the key 'url'",
        "woollama.toml: plugins.enabled: 'needy' requires 'ghost': add it to enabled, before "
        "'needy'",
        "woollama.toml: plugins.enabled: 'v1' is a reserved name: rename the plugin, for example "
        "to 'my-v1'",
        "woollama.toml: plugins.enabled: there is no plugin 'gone': install it, or remove it; "
        "installed are keyed, late, needy, old, silent, url, v1",
    ]
    assert expected == caught.value.message.splitlines()


def test_p_61_a_leftover_section_names_both_fixes() -> None:
    (problem,) = problems_of(plugin("a"), enabled=(), sections={"a": {}})
    assert "add 'a' to enabled under [plugins], or delete the section" in problem


def test_p_61_collisions_are_found_before_any_setup() -> None:
    problems = problems_of(
        plugin("one", providers=provider_of("shared"), pattern_backends=backend_of("one-more")),
        plugin("two", providers=provider_of("shared"), pattern_backends=backend_of("other")),
        plugin("one-more", pattern_backends=backend_of("one-more")),
        plugin("tool-box", tool_providers=giving(object())),
        plugin("home", providers=provider_of("openai")),
        taken=("openai",),
        servers=("tool-box",),
    )
    assert [
        "woollama.toml: plugins.two: its provider 'shared' is already there, of the plugin 'one': "
        "rename one",
        "woollama.toml: plugins.home: its provider 'openai' is already there, of inferencers.toml, "
        "or built in: rename one",
        "woollama.toml: plugins.two: its pattern backend 'other' must be called 'two', or begin so "
        "with a '-' behind",
        "woollama.toml: plugins.one-more: its pattern backend 'one-more' is already there, of the "
        "plugin 'one': rename one",
        "woollama.toml: plugins.tool-box: its tools would be named as those of the MCP server of "
        "this name: rename it in mcp.json",
    ] == problems


async def endpoint(_request: object) -> None:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ([PluginRoute(path="x", endpoint=endpoint)], "must begin with one '/'"),
        ([PluginRoute(path="/../v1", endpoint=endpoint)], "no '..'"),
        ([PluginRoute(path="//v1", endpoint=endpoint)], "must begin with one '/'"),
        ([PluginRoute(path="/x", endpoint=endpoint, methods=("get",))], "has the method 'get'"),
        ([PluginRoute(path="/x", endpoint=endpoint)] * 2, "GET /x is there twice"),
    ],
)
def test_a_route_that_would_leave_its_prefix_is_refused(
    routes: list[PluginRoute], words: str
) -> None:
    (problem,) = problems_of(plugin("a", routes=giving(*routes)))
    assert words in problem
    assert "plugins.a" in problem


def test_a_plugin_that_works_before_its_setup_is_found_out() -> None:
    def eager(_self: Plugin, context: PluginContext) -> Any:
        context.tasks.start_soon(endpoint, None)

    (problem,) = problems_of(plugin("a", providers=eager))
    assert "context.tasks.start_soon is used before setup" in problem
    assert "does no work before setup" in problem


def test_a_required_secret_that_is_not_set_is_named_with_its_help() -> None:
    secrets = {"key": Secret(env="ACME_TOKEN", required=True, help="from acme.example/keys")}
    made = plugin("acme", secrets=secrets)
    for environ in ({}, {"ACME_TOKEN": ""}):
        (problem,) = problems_of(made, environ=environ)
        assert (
            "environment: ACME_TOKEN: 'acme' needs the variable ACME_TOKEN "
            "(from acme.example/keys): set it"
        ) == problem
    assert [] == problems_of(made, environ={"ACME_TOKEN": "s3cret"})


@pytest.mark.parametrize("name", ["Acme", "1a", "a_b", "a" * 33, "-a", ""])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    (problem,) = problems_of(plugin(name))
    assert "is no name for a plugin" in problem


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_ru_50_reserved_names_are_for_our_own_plugins(name: str) -> None:
    made = plugin(name, config_type=Keys)
    fabric: object = {} if name == "fabric" else None
    (problem,) = problems_of(made, fabric=fabric)
    assert "reserved name" in problem
    found = installed(made, bundled=True)
    assert [] == problems_of(enabled=(name,), found=found, fabric=fabric)


def test_entry_point_and_name_must_be_one_word() -> None:
    entry = Installed(name="acme", load=lambda: plugin("other"))
    (problem,) = problems_of(enabled=("acme",), found={"acme": entry})
    assert "'acme' calls itself 'other'" in problem


def test_a_plugin_that_cannot_be_imported_is_named_with_the_reason() -> None:
    def broken() -> Any:
        raise SyntaxError("half a module")

    entry = Installed(name="acme", load=broken, place="acme:x", distribution="acme 1.0")
    (problem,) = problems_of(enabled=("acme",), found={"acme": entry})
    assert "'acme' (acme:x, acme 1.0) cannot be imported: SyntaxError: half a module" in problem
    assert "remove it from enabled" in problem


def test_something_else_than_a_plugin_is_refused() -> None:
    entry = Installed(name="acme", load=lambda: dict, place="acme:x")
    (problem,) = problems_of(enabled=("acme",), found={"acme": entry})
    assert "is no woollama plugin" in problem


def test_a_section_of_a_plugin_without_settings_is_refused() -> None:
    (problem,) = problems_of(plugin("a"), sections={"a": {"b": 1}})
    assert "this plugin has no settings: delete the section" in problem


def test_a_config_type_of_another_library_is_refused() -> None:
    (problem,) = problems_of(plugin("a", config_type=dict))
    assert "config_type that is no msgspec.Struct" in problem


def test_installed_is_not_enabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding an entry point imports nothing; enabling it does."""
    (tmp_path / "trap_plugin.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = gather([EntryPoint("trap", "trap_plugin:plugin", "woollama.plugins")])
    assert () == load_plugins((), {}, found=found)
    assert "trap_plugin" not in sys.modules
    (problem,) = problems_of(enabled=("trap",), found=found)
    assert "RuntimeError: imported" in problem


def test_ours_are_installed_by_their_entry_points() -> None:
    found = find_installed()
    assert found["local"].bundled
    assert found["local"].distribution.startswith("woollama-server ")


def test_two_distributions_with_one_name_are_told_apart() -> None:
    twice = installed(plugin("acme"))["acme"]
    twice = Installed(name="acme", load=twice.load, distribution="a 1", rivals=("b 2",))
    (problem,) = problems_of(enabled=("acme",), found={"acme": twice})
    assert "'acme' is in several distributions, a 1 and b 2: uninstall all but one" in problem


def test_two_installed_distributions_with_one_entry_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[woollama.plugins]\nacme = acme:plugin\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = find_installed()["acme"]
    assert {"first 1.0", "second 1.0"} == {found.distribution, *found.rivals}
    assert not found.bundled
    (problem,) = problems_of(enabled=("acme",), found={"acme": found})
    assert "is in several distributions" in problem


def test_a_near_miss_of_a_method_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    made = plugin("acme", pattern_backend=giving(), describe=giving())
    load_plugins(("acme",), {}, found=installed(made))
    expected = (
        "plugin acme: 'pattern_backend' is not called by anything; did you mean 'pattern_backends'?"
    )
    assert [expected] == caplog.messages


def test_the_old_attributes_of_a_plugin_are_all_that_version_1_asks_for() -> None:
    """The contract as the first release had it keeps loading."""

    class First(Plugin):
        name = "first"
        api_version = 1
        requires = ()
        summary = "The first."
        config_type = Keys

    (loaded,) = load_plugins(("first",), {}, found=installed(First()))
    assert isinstance(loaded.plugin, First)
