"""Recipes and a folder of prompts as one backend: listed, rendered and run as they are now."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.core.scripted import KEY, Scripted, Tools, calls, tool_messages
from woollama.core import ModelRegistry, Pattern, PatternBackend, PatternCall
from woollama.core.canonical import (
    ImagePart,
    RunEvent,
    RunFinished,
    TextDelta,
    TextPart,
    UserMessage,
)
from woollama.core.directory import Directory, FoundPattern
from woollama.core.errors import (
    CannotEncode,
    ConfigError,
    NotBuilt,
    RequestError,
    UnknownModel,
    UnknownPattern,
)
from woollama.core.patterns import NativePatterns, PatternCatalog, PatternVariable, variables_of
from woollama.core.patterns.native import overlay
from woollama.core.runs import RunLimits
from woollama.core.runs.plan import Link
from woollama.core.testing.fake import say

LIBRARY = Path(__file__).parents[2] / "fixtures" / "patterns"
RECIPES = """
[recipes.greeter]
inferencer = "up/gpt-oss-120b"
system = "Greet {{who}} for {{why}} and {{who}}."
tools = ["clock.now"]
params = { temperature = 0.25, seed = 3 }
description = "Says hello."
[recipes.greeter.variables.who]
default = "the world"
choices = ["the world", 7]
description = "Whom to greet."

[recipes.bare]

[recipes.lost]
inferencer = "nobody/m"
[recipes.agent]
inferencer = "claude-code/opus"
"""


class Place:
    """A configuration folder with recipes and prompts, and the backend that reads it."""

    def __init__(self, folder: Path, script: Any = (), *, text: str = RECIPES, **more: Any) -> None:
        self.prompts = folder / "prompts"
        self.recipes = folder / "recipes.toml"
        self.write(text)
        self.up = Scripted(script)
        self.tools = Tools("clock.now")
        self.backend = NativePatterns(
            [self.recipes],
            self.up.registry,
            tools=self.tools,
            link=lambda target: Link(transport=self.up.transport, api_key=KEY),
            **more,
        )

    def write(self, text: str) -> None:
        self.recipes.write_text(f"{text}\n[patterns]\ndir = 'prompts'\n", "utf-8")

    def put(self, name: str, text: str) -> Path:
        path = self.prompts / name / "system.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def run(
    opened: AbstractAsyncContextManager[Any],
) -> tuple[list[RunEvent], RunFinished]:
    async with opened as events:
        seen = [event async for event in events]
    last = seen[-1]
    assert isinstance(last, RunFinished)
    return seen, last


def user(text: str) -> tuple[UserMessage, ...]:
    return (UserMessage(content=text),)


def test_it_is_a_pattern_backend(place: Place) -> None:
    backend: PatternBackend = place.backend
    assert "native" == backend.id


def test_recipes_and_prompts_are_listed_by_name(place: Place) -> None:
    place.put("analyse", "Analyse {{what}}.")
    place.put("greeter", "hidden by the recipe")
    assert [
        Pattern(
            name="agent",
            source="recipe",
            model="claude-code/opus",
        ),
        Pattern(name="analyse", source="directory", variables=(PatternVariable(name="what"),)),
        Pattern(name="bare", source="recipe"),
        Pattern(
            name="greeter",
            source="recipe",
            model="up/gpt-oss-120b",
            description="Says hello.",
            variables=(
                PatternVariable(
                    name="who",
                    default="the world",
                    choices=("the world", "7"),
                    description="Whom to greet.",
                ),
                PatternVariable(name="why"),
            ),
        ),
        Pattern(name="lost", source="recipe", model="nobody/m"),
    ] == list(place.backend.list())
    assert ["analyse", "greeter"] == [
        found.name for found in map(place.backend.find, ("analyse", "greeter", "nobody")) if found
    ]


def test_a_pattern_is_a_model_exactly_when_its_own_is_known(tmp_path: Path) -> None:
    place = Place(tmp_path, text="[recipes.bare]")
    place.put("a", "x")
    assert [None, None] == [pattern.model for pattern in place.backend.list()]
    place.write("[recipes.bare]\n[recipes.own]\nmodel = 'up/m'\n")
    place.recipes.write_text(f"{place.recipes.read_text()}default_inferencer = 'up/d'\n")
    assert {"a": "up/d", "bare": "up/d", "own": "up/m"} == {
        pattern.name: pattern.model for pattern in place.backend.list()
    }


@pytest.mark.parametrize(
    ("variables", "input", "expected"),
    [
        ({}, None, "Greet the world for {{why}} and the world."),
        ({"who": "Ada"}, "Go.", "Greet Ada for {{why}} and Ada.\n\nGo."),
        ({"who": "", "why": 3}, "", "Greet  for 3 and .\n\n"),
        ({"who": "{{why}}", "why": "{{who}}"}, None, "Greet {{why}} for {{who}} and {{why}}."),
        ({"who": "Mallory", "unknown": "x"}, None, "Greet Mallory for {{why}} and Mallory."),
        (
            {"who": "Ada"},
            "{{who}} ${HOME} {{input}}",
            "Greet Ada for {{why}} and Ada.\n\n{{who}} ${HOME} {{input}}",
        ),
    ],
)
async def test_ru_44_render_is_the_prompt_a_blank_line_and_the_input(
    variables: Mapping[str, Any], input: str | None, expected: str, place: Place
) -> None:
    assert expected == await place.backend.render("greeter", variables, input)


async def test_what_cannot_be_rendered_is_refused(place: Place) -> None:
    with pytest.raises(UnknownPattern, match="no pattern 'nobody'") as caught:
        await place.backend.render("nobody", {})
    assert 404 == caught.value.status
    with pytest.raises(RequestError, match="'variables' must be an object") as wrong:
        await place.backend.render("greeter", ["who"])  # pyright: ignore[reportArgumentType] - as a client may write it
    assert 400 == wrong.value.status
    with pytest.raises(UnknownPattern):
        await place.backend.render("../recipes.toml", {})


async def test_p_40_a_run_sends_what_render_says_and_the_input_as_the_users_message(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, [calls("clock__now"), say("Hello, Ada.")])
    call = PatternCall(
        name="greeter",
        messages=user("hi {{who}}"),
        variables={"who": "Ada"},
        options={"temperature": 0.5},
    )
    seen, last = await run(place.backend.open_run(call))
    assert "Hello, Ada." == last.reply.message.content
    assert not any(isinstance(event, TextDelta) for event in seen)
    first, second = place.up.bodies()
    rendered = await place.backend.render("greeter", {"who": "Ada"})
    assert [
        {"role": "system", "content": rendered},
        {"role": "user", "content": "hi {{who}}"},
    ] == first["messages"]
    assert ("gpt-oss-120b", 0.5, 3) == (first["model"], first["temperature"], first["seed"])
    assert [("clock.now", {})] == place.tools.dispatched
    assert "clock.now done" == tool_messages(second)[0]["content"]


async def test_a_streamed_run_gives_deltas(tmp_path: Path) -> None:
    place = Place(tmp_path, [say("Hello, Ada.")])
    call = PatternCall(name="greeter", messages=user("hi"), stream=True)
    seen, _ = await run(place.backend.open_run(call))
    text = "".join(event.text for event in seen if isinstance(event, TextDelta))
    assert "Hello, Ada." == text
    assert place.up.bodies()[0]["stream"] is True


async def test_a_prompt_of_the_folder_has_no_tools_and_runs_on_the_calls_model(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, [say("x")])
    place.put("analyse", "Analyse.")
    call = PatternCall(name="analyse", messages=user("this"), model="up/gpt-oss-120b")
    await run(place.backend.open_run(call))
    body = place.up.bodies()[0]
    assert "tools" not in body
    assert ["Analyse.", "this"] == [message["content"] for message in body["messages"]]


async def test_an_empty_prompt_is_no_system_message(tmp_path: Path) -> None:
    place = Place(tmp_path, [say("x")])
    place.put("empty", "")
    call = PatternCall(name="empty", messages=user("this"), model="up/gpt-oss-120b")
    await run(place.backend.open_run(call))
    assert [{"role": "user", "content": "this"}] == place.up.bodies()[0]["messages"]
    assert "\n\nthis" == await place.backend.render("empty", {}, "this")


@pytest.mark.parametrize(
    ("call", "error", "status"),
    [
        (PatternCall(name="nobody"), UnknownPattern, 404),
        (PatternCall(name="bare"), RequestError, 400),
        (PatternCall(name="lost"), UnknownModel, 404),
        (PatternCall(name="agent"), NotBuilt, 501),
        (PatternCall(name="greeter", model="nobody/m"), UnknownModel, 404),
        (PatternCall(name="greeter", model="up"), RequestError, 400),
        (PatternCall(name="greeter", model="woollama/bare"), RequestError, 400),
        (PatternCall(name="greeter", options={"stream": True}), RequestError, 400),
        (PatternCall(name="greeter", options={"model": "up/x"}), RequestError, 400),
        (PatternCall(name="greeter", options={"temperature": "hot"}), RequestError, 400),
        (PatternCall(name="greeter", options={"num_ctx": 4096}), CannotEncode, 400),
        (PatternCall(name="greeter", variables={"who": object()}), RequestError, 400),
    ],
)
async def test_a_run_that_cannot_be_is_refused_when_it_is_opened(
    call: PatternCall, error: type[Exception], status: int, place: Place
) -> None:
    with pytest.raises(error) as caught:
        async with place.backend.open_run(call):
            raise AssertionError("not reached")
    assert status == getattr(caught.value, "status", None)
    assert [] == place.up.fake.requests


async def test_p_42_an_image_is_checked_before_anything_is_sent(place: Place) -> None:
    parts = (TextPart(text="what?"), ImagePart(url="data:image/png,plain"))
    call = PatternCall(name="greeter", messages=(UserMessage(content=parts),))
    with pytest.raises(RequestError, match="image_url"):
        async with place.backend.open_run(call):
            raise AssertionError("not reached")


async def test_messages_pass_whole(tmp_path: Path) -> None:
    place = Place(tmp_path, [say("x")])
    parts = (TextPart(text="what?"), ImagePart(url="https://example.org/a.png", detail="low"))
    message = UserMessage(content=parts, extra={"name": "ada"})
    await run(place.backend.open_run(PatternCall(name="greeter", messages=(message,))))
    sent = place.up.bodies()[0]["messages"][1]
    assert ("ada", "low") == (sent["name"], sent["content"][1]["image_url"]["detail"])


async def test_the_limits_are_those_of_the_backend(tmp_path: Path) -> None:
    place = Place(tmp_path, [calls("clock__now")], limits=RunLimits(max_turns=1))
    with pytest.raises(Exception, match="max turns = 1"):
        await run(place.backend.open_run(PatternCall(name="greeter", messages=user("hi"))))


async def test_the_registry_may_change_between_runs(tmp_path: Path) -> None:
    place = Place(tmp_path, [say("x")])
    registries = iter([ModelRegistry(), place.up.registry])
    backend = NativePatterns(
        [place.recipes],
        lambda: next(registries),
        link=lambda target: Link(transport=place.up.transport, api_key=KEY),
    )
    with pytest.raises(UnknownModel):
        async with backend.open_run(PatternCall(name="greeter", messages=user("hi"))):
            raise AssertionError("not reached")
    await run(backend.open_run(PatternCall(name="greeter", messages=user("hi"))))


async def test_edits_are_seen_without_a_restart(place: Place) -> None:
    place.write("[recipes.new]\nmodel = 'up/m'\nsystem = 'one'\n")
    assert "one" == await place.backend.render("new", {})
    assert place.backend.find("greeter") is None
    place.put("fresh", "{{x}}")
    assert ["fresh", "new"] == [pattern.name for pattern in place.backend.list()]
    place.put("fresh", "{{y}}")
    found = place.backend.find("fresh")
    assert found is not None
    assert (PatternVariable(name="y"),) == found.variables


@pytest.mark.parametrize("broken", ["[recipes", "[recipes.greeter]\nsytem = 'x'\n"])
async def test_a_broken_edit_keeps_the_last_good_version_and_says_so(
    broken: str, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    assert () == place.backend.problems()
    place.write(broken)
    assert place.backend.find("greeter") is not None
    assert "agent" == place.backend.list()[0].name
    (problem,) = place.backend.problems()
    assert "recipes.toml" in str(problem)
    assert "stays in force" in caplog.text
    place.write(RECIPES)
    assert () == place.backend.problems()


def test_a_broken_prompt_is_a_problem_of_the_backend(place: Place) -> None:
    path = place.put("a", "good")
    assert place.backend.find("a") is not None
    path.write_bytes(b"\xff")
    assert place.backend.find("a") is not None
    (problem,) = place.backend.problems()
    assert (str(path), True) == (problem.file, "UTF-8" in problem.message)


def test_a_file_that_is_broken_at_the_start_stops_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="sytem"):
        Place(tmp_path, text="[recipes.a]\nsytem = 'x'\n")


def test_without_files_there_are_no_patterns(tmp_path: Path) -> None:
    backend = NativePatterns([tmp_path / "recipes.toml"], Scripted([]).registry)
    assert (0, None, ()) == (len(backend.list()), backend.find("a"), backend.problems())


def test_a_bundled_file_stands_in_for_a_missing_one(place: Place, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    backend = NativePatterns([own, place.recipes], place.up.registry)
    assert backend.find("greeter") is not None
    own.write_text("[recipes.mine]\nmodel = 'up/m'\n")
    assert ["mine"] == [pattern.name for pattern in backend.list()]


def test_the_folder_may_change_with_the_file(place: Place, tmp_path: Path) -> None:
    place.put("a", "x")
    assert place.backend.find("a") is not None
    place.recipes.write_text("[patterns]\ndir = 'elsewhere'\n")
    assert place.backend.find("a") is None
    (tmp_path / "elsewhere" / "b").mkdir(parents=True)
    (tmp_path / "elsewhere" / "b" / "system.md").write_text("y")
    assert ["b"] == [pattern.name for pattern in place.backend.list()]


def test_the_directory_finds_a_pattern_that_is_a_model(place: Place) -> None:
    directory = Directory(place.up.registry, PatternCatalog([place.backend]))
    found = directory.find("woollama/greeter")
    assert isinstance(found, FoundPattern)
    assert "greeter" == found.pattern.name
    with pytest.raises(RequestError, match="names no model"):
        directory.find("woollama/bare")
    with pytest.raises(UnknownModel):
        directory.find("woollama/../recipes")


async def test_the_real_patterns_are_listed_and_rendered_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "recipes.toml"
    path.write_text(f"[patterns]\ndir = {str(LIBRARY)!r}\n")
    backend = NativePatterns([path], Scripted([]).registry)
    listed = {pattern.name: pattern for pattern in backend.list()}
    assert sorted(folder.parent.name for folder in LIBRARY.glob("*/system.md")) == list(listed)
    for name, pattern in listed.items():
        data = (LIBRARY / name / "system.md").read_bytes()
        assert variables_of(data.decode()) == tuple(v.name for v in pattern.variables)
        assert data + b"\n\nINPUT" == (await backend.render(name, {}, "INPUT")).encode()
        values = {v.name: f"<{i}>" for i, v in enumerate(pattern.variables)}
        expected = data.decode()
        for key, value in values.items():
            expected = expected.replace("{{" + key + "}}", value)
        assert expected == await backend.render(name, values)


@pytest.mark.parametrize(
    ("params", "options", "expected"),
    [
        ({"a": 1, "b": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"num_ctx": 1}, {"num_ctx": 2}, {"num_ctx": 2}),
        ({"num_ctx": 1}, {"options": {"num_ctx": 2}}, {"num_ctx": 2, "options": {}}),
        (
            {"options": {"num_ctx": 1, "top_k": 3}},
            {"num_ctx": 2},
            {"num_ctx": 2, "options": {"top_k": 3}},
        ),
        ({"options": {"a": 1}}, {"options": {"b": 2}}, {"options": {"a": 1, "b": 2}}),
        ({"options": {"a": 1}}, {"options": 3}, {"options": 3}),
        ({"num_ctx": 1, "options": {"num_ctx": 2}}, {}, {"num_ctx": 1, "options": {"num_ctx": 2}}),
    ],
)
def test_p_3_a_calls_options_stand_over_the_recipes_params(
    params: dict[str, Any], options: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert expected == overlay(params, options)
