"""fabric's patterns through the protocol, over real HTTP to the exact fake."""

import logging
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from tests.server.fabric.fake.app import FakeFabric
from tests.server.fabric.fake.serving import serve
from tests.server.fabric.rig import (
    answer_of,
    backend_of,
    before,
    call,
    events_of,
    serving,
    text_of,
)
from woollama.core.canonical import (
    AssistantMessage,
    Finish,
    RunEvent,
    RunFinished,
    Start,
    SystemMessage,
    TextDelta,
    TurnStarted,
    Usage,
    UserMessage,
)
from woollama.core.errors import (
    CannotEncode,
    ProviderError,
    ReplyError,
    RequestError,
    TransportError,
    UnknownPattern,
)
from woollama.core.patterns import Pattern, PatternCall
from woollama.server.fabric import library
from woollama.server.testing import Served

MODELS = {
    "Ollama": [
        *("llama3.2:latest", "echo", "fail", "empty", "silent", "cut", "big", "odd", "garbage"),
        *("hold", "hang", "wait"),
    ],
    "OpenAI": ["echo"],
}
ECHO = {"default_model": "ollama/echo"}


def fabric(**more: Any) -> FakeFabric:
    return FakeFabric(models=MODELS, **more)


# The list


async def test_its_patterns_are_listed_with_their_source() -> None:
    async with before(fabric()) as server:
        backend = backend_of(server)
        assert "fabric" == backend.id
        names = ["summarize", "translate"]
        assert [Pattern(name=name, source="fabric") for name in names] == list(backend.list())
        assert Pattern(name="translate", source="fabric") == backend.find("translate")
        assert backend.find("nope") is None


def own_models(entries: list[dict[str, Any]]) -> list[str]:
    """The models that fabric's patterns are."""
    return [entry["id"] for entry in entries if entry.get("woollama", {}).get("source") == "fabric"]


async def test_with_a_default_model_each_pattern_is_a_model() -> None:
    async with before(fabric(), ECHO) as server:
        entries = (await server.client.get("/v1/models")).json()["data"]
    assert ["woollama/summarize", "woollama/translate"] == own_models(entries)


async def test_without_a_default_model_none_is() -> None:
    async with before(fabric()) as server:
        entries = (await server.client.get("/v1/models")).json()["data"]
        answer = await server.client.post(
            "/v1/chat/completions",
            {"model": "woollama/summarize", "messages": [{"role": "user", "content": "hi"}]},
        )
    assert [] == own_models(entries)
    assert 400 == answer.status


async def test_an_old_list_is_refreshed_for_those_who_look_later() -> None:
    fake = fabric()
    async with before(fake, {"refresh_s": 0}) as server:
        backend = backend_of(server)
        fake.patterns["new"] = "x"
        assert backend.find("new") is None
        with anyio.fail_after(5):
            while backend.find("new") is None:
                await anyio.lowlevel.checkpoint()


async def test_a_fresh_list_is_not_asked_for_again() -> None:
    fake = fabric()
    async with before(fake) as server:
        backend = backend_of(server)
        asked = len(fake.requests)
        backend.list()
        backend.find("summarize")
        await answer_of(server, call(model="ollama/echo"))
        names = [each for each in fake.requests if each["path"] == "/patterns/names"]
    assert asked == len(names)


@pytest.mark.parametrize("names", ["empty", "null", "html", "fail"])
async def test_an_empty_or_failed_answer_never_wipes_the_list(
    names: str, caplog: pytest.LogCaptureFixture
) -> None:
    control: dict[str, Any] = {}
    fake = fabric(control=lambda: control)
    async with before(fake, {"refresh_s": 0}) as server:
        backend = backend_of(server)
        before_it = list(backend.list())
        await settled(fake, backend)
        control["names"] = names
        for _ in range(3):
            assert before_it == list(backend.list())
            await settled(fake, backend)
        health = await server.services.plugins.health()
        assert (names in {"empty", "null"}) == health["plugin.fabric.server"].ok
        control.clear()
        await settled(fake, backend)
        await settled(fake, backend)
        health = await server.services.plugins.health()
        assert "2 patterns" == health["plugin.fabric.server"].detail
    # One line when it goes wrong, however often it is asked.
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (0 if names in {"empty", "null"} else 1) == len(warnings)


async def settled(fake: FakeFabric, backend: Any) -> None:
    """Until a refresh that a look has begun is over."""
    asked = len(fake.requests)
    backend.list()
    with anyio.fail_after(5):
        while len(fake.requests) == asked or backend._library._asking:
            await anyio.lowlevel.checkpoint()


async def test_a_fabric_that_is_down_at_the_start_is_picked_up_when_it_comes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "FIRST_WAIT_S", 0.01)
    caplog.set_level(logging.INFO)
    fake = fabric()
    async with serve(fake.app) as url:
        port = int(url.rpartition(":")[2])
    async with serving({"url": f"http://127.0.0.1:{port}"}) as server:
        backend = backend_of(server)
        assert () == tuple(backend.list())
        health = await server.services.plugins.health()
        assert not health["plugin.fabric.server"].ok
        with pytest.raises(UnknownPattern):
            await answer_of(server, call(model="ollama/echo"))
        async with serve(fake.app, port):
            with anyio.fail_after(5):
                while backend.find("summarize") is None:
                    await anyio.lowlevel.checkpoint()
    assert "fabric is there again" in caplog.messages


async def test_when_the_plugin_has_ended_its_list_stays_as_it_was() -> None:
    """A plugin that failed shall not take the list of all patterns with it."""
    async with before(fabric(), {"refresh_s": 0}) as server:
        backend = backend_of(server)
    assert ["summarize", "translate"] == [pattern.name for pattern in backend.list()]


async def test_a_section_without_url_and_managed_is_switched_off() -> None:
    async with serving({"default_model": "ollama/m"}) as server:
        assert () == server.services.plugins.pattern_backends
        assert 404 == (await server.client.get("/fabric/patterns/names")).status


# Rendering


async def test_ru_44_render_is_what_fabric_makes_of_it() -> None:
    async with before(fabric()) as server:
        backend = backend_of(server)
        variables = {"lang_code": "es"}
        rendered = await backend.render("translate", variables, "a {{b}} & c")
        assert "Translate to es:\n\na {{b}} & c\n" == rendered
        assert "Translate to 3:\n\n\n" == await backend.render("translate", {"lang_code": 3})
        assert "# PURPOSE\n\nSummarise <the> text.\nhi" == await backend.render(
            "summarize", {}, "hi"
        )


async def test_rendering_an_unknown_pattern_is_404() -> None:
    async with before(fabric()) as server:
        with pytest.raises(UnknownPattern) as caught:
            await backend_of(server).render("nope", {})
    assert (404, "There is no pattern 'nope'.") == (caught.value.status, caught.value.message)


async def test_p_43_a_missing_variable_is_a_400_when_rendering_and_when_running() -> None:
    """In both shapes in which fabric says it: a 500, and an event in a 200."""
    async with before(fabric(), ECHO) as server:
        with pytest.raises(RequestError) as rendering:
            await backend_of(server).render("translate", {}, "x")
        with pytest.raises(RequestError) as running:
            await answer_of(server, call("translate"))
    for caught in (rendering, running):
        assert "The pattern 'translate' needs a value for 'lang_code'." == caught.value.message
        assert (400, "variables.lang_code") == (caught.value.status, caught.value.param)


async def test_p_43_a_missing_variable_is_found_in_any_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.server.fabric.fake import template

    translated = template.TemplateError("fehlende erforderliche Variable: lang_code")

    def refuse(_name: str, _variables: Mapping[str, str]) -> str:
        raise translated

    monkeypatch.setattr(template, "_value", refuse)
    async with before(fabric(), ECHO) as server:
        with pytest.raises(RequestError, match="'lang_code'"):
            await backend_of(server).render("translate", {}, "x")
        with pytest.raises(RequestError, match="'lang_code'"):
            await answer_of(server, call("translate"))


async def test_a_value_that_fabric_would_expand_never_reaches_it() -> None:
    fake = fabric(patterns={"p": "Hi {{name}} and {{{name}}}"})
    async with before(fake, ECHO) as server:
        for value in ("{{plugin:sys:env:HOME}}", "{plugin:sys:env:HOME}", "{{name}}"):
            with pytest.raises(RequestError):
                await backend_of(server).render("p", {"name": value}, "x")
            with pytest.raises(RequestError):
                await answer_of(server, call("p", variables={"name": value}))
        assert "Hi B and {B}\nx" == await answer_of(server, call("p", "x", variables={"name": "B"}))
    assert 1 == sum(path == "POST /chat" for path in fake.paths())
    assert 0 == sum(path.endswith("/apply") for path in fake.paths())


# Running


async def test_a_whole_answer_is_two_events() -> None:
    async with before(fabric()) as server:
        started, finished = await events_of(server, call(model="ollama/llama3.2:latest"))
    assert TurnStarted(1) == started
    assert isinstance(finished, RunFinished)
    usage = Usage(prompt_tokens=12, completion_tokens=3, total_tokens=15)
    assert ("Hello <world>\n", "stop", usage, usage) == (
        finished.reply.message.content,
        finished.reply.finish_reason,
        finished.reply.usage,
        finished.usage_total,
    )
    assert (finished.reply,) == finished.replies


async def test_a_streamed_answer_comes_in_its_pieces_and_ends_the_same() -> None:
    async with before(fabric()) as server:
        asked = call(model="ollama/llama3.2:latest", stream=True)
        events = await events_of(server, asked)
        whole = (await events_of(server, call(model="ollama/llama3.2:latest")))[-1]
    kinds = [type(event).__name__ for event in events]
    assert [
        *("TurnStarted", "Start", "TextDelta", "TextDelta", "UsageDelta", "Finish"),
        "RunFinished",
    ] == kinds
    assert Finish("stop") == events[-2]
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert isinstance(whole, RunFinished)
    assert "Hello <world>\n" == text_of(events) == last.reply.message.content
    assert last.reply.message == whole.reply.message
    assert last.usage_total == whole.usage_total


async def test_the_first_piece_is_there_before_the_answer_is_complete() -> None:
    async with before(fabric()) as server:
        asked = call(model="ollama/hold", stream=True)
        async with backend_of(server).open_run(asked) as events:
            seen = [await anext(events) for _ in range(3)]
        assert isinstance(seen[1], Start)
        assert TextDelta("partial ") == seen[2]


async def test_leaving_a_run_closes_fabrics_stream() -> None:
    fake = fabric()
    async with before(fake) as server:
        async with backend_of(server).open_run(call(model="ollama/hold", stream=True)) as events:
            await anext(events)
        with anyio.fail_after(5):
            await fake.left.wait()


async def test_what_is_sent_is_what_was_asked() -> None:
    fake = fabric()
    options = {"context": "me", "strategy": "cot", "language": "de", "search": True, "top_p": 0.1}
    messages = (UserMessage(content="a"), UserMessage(content="b"))
    async with before(fake, ECHO) as server:
        text = await answer_of(server, call(messages=messages, options=options))
    assert "Think step by step.\nI am a sheep.\n# PURPOSE\n\nSummarise <the> text.\na\n\nb" == text
    assert {
        "prompts": [
            {
                "userInput": "a\n\nb",
                "patternName": "summarize",
                "vendor": "Ollama",
                "model": "echo",
                "variables": {},
                "contextName": "me",
                "strategyName": "cot",
            }
        ],
        "temperature": 0.7,
        "topP": 0.1,
        "language": "de",
        "search": True,
    } == fake.body()


async def test_variables_reach_the_pattern() -> None:
    async with before(fabric(), ECHO) as server:
        asked = call("translate", "Hi", variables={"lang_code": ""})
        assert "Translate to :\n\nHi\n" == await answer_of(server, asked)


async def test_p_43_what_is_not_sent_is_named_first() -> None:
    messages = (
        SystemMessage(content="s"),
        UserMessage(content="a"),
        AssistantMessage(content="b"),
    )
    async with before(fabric(), {**ECHO, "drop_params": ["max_tokens"]}) as server:
        asked = call(messages=messages, options={"max_tokens": 5})
        events = await events_of(server, asked)
    dropped = ("messages.assistant", "messages.system", "max_tokens")
    assert TurnStarted(1, dropped) == events[0]


async def test_the_vendor_is_found_whatever_its_case_and_asked_for_once() -> None:
    fake = fabric()
    async with before(fake) as server:
        for model in ("openai/echo", "OPENAI/echo", "OpenAI|echo"):
            await answer_of(server, call(model=model))
            assert "OpenAI" == fake.body()["prompts"][0]["vendor"]
        await answer_of(server, call(model="llama3.2:latest"))
        assert "" == fake.body()["prompts"][0]["vendor"]
    assert 1 == fake.paths().count("GET /models/names")


async def test_a_vendor_that_nobody_knows_is_asked_for_and_left_to_fabric() -> None:
    fake = fabric()
    async with before(fake) as server:
        for _ in range(2):
            with pytest.raises(ProviderError, match="model echo not available for vendor nobody"):
                await answer_of(server, call(model="nobody/echo"))
    assert 2 == fake.paths().count("GET /models/names")


async def test_a_list_of_models_that_fails_is_no_reason_not_to_run() -> None:
    async with before(fabric(control=lambda: {"models": "fail"})) as server:
        assert "hi" in await answer_of(server, call(model="ollama/echo"))


# Faults


async def follow(server: Served, asked: PatternCall, seen: list[RunEvent]) -> None:
    async with backend_of(server).open_run(asked) as events:
        async for event in events:
            seen.append(event)  # noqa: PERF401 - what was seen before an error counts


@pytest.mark.parametrize(
    ("model", "fault", "words"),
    [
        ("fail", ProviderError, "fabric: upstream exploded"),
        ("empty", ProviderError, "fabric: empty response"),
        ("silent", ReplyError, "fabric ended without an answer"),
        ("garbage", ReplyError, "an event that is not its own"),
        ("cut", TransportError, "fabric: http://127.0.0.1"),
        ("nomodel", ProviderError, "model nomodel not available for vendor Ollama"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_fault_is_an_error_with_fabrics_words(
    model: str, fault: type[Exception], words: str, stream: bool
) -> None:
    async with before(fabric()) as server:
        seen: list[RunEvent] = []
        asked = call(model=f"ollama/{model}", stream=stream)
        with pytest.raises(fault) as caught:
            await follow(server, asked, seen)
    assert words in str(caught.value)
    assert 502 == getattr(caught.value, "status", None)
    # What was good has been told before, and no end.
    texts = text_of(seen)
    assert ("partial " if stream and model in {"fail", "cut"} else "") == texts
    assert not any(isinstance(event, Finish | RunFinished) for event in seen)


async def test_long_lines_and_odd_events_are_survived() -> None:
    async with before(fabric()) as server:
        assert 1024 * 1024 == len(await answer_of(server, call(model="ollama/big")))
        assert "odd" == await answer_of(server, call(model="ollama/odd"))


@pytest.mark.parametrize("mode", ["old", "later"])
async def test_other_versions_answer_too(mode: str) -> None:
    fake = fabric()
    fake.mode = mode
    async with before(fake) as server:
        text = await answer_of(server, call(model="ollama/llama3.2:latest"))
    assert "Hello <world>\n" == text


async def test_a_fabric_that_swallows_its_errors_is_still_found_out() -> None:
    fake = fabric()
    fake.mode = "swallow"
    async with before(fake, ECHO) as server:
        with pytest.raises(ReplyError, match="old versions of fabric do not tell"):
            await answer_of(server, call("translate"))


async def test_a_pattern_that_is_gone_is_fabrics_refusal() -> None:
    fake = fabric()
    async with before(fake, ECHO) as server:
        del fake.patterns["summarize"]
        with pytest.raises(ProviderError, match="pattern 'summarize' not found"):
            await answer_of(server, call())


async def test_missing_context_and_strategy_are_fabrics_refusals() -> None:
    async with before(fabric(), ECHO) as server:
        with pytest.raises(ProviderError, match="could not find context zzz"):
            await answer_of(server, call(options={"context": "zzz"}))
        with pytest.raises(ProviderError, match="strategy zzz not found"):
            await answer_of(server, call(options={"strategy": "zzz"}))


async def test_a_call_that_cannot_be_made_asks_nobody() -> None:
    fake = fabric()
    async with before(fake) as server:
        for asked, fault in (
            (call("nope", model="ollama/echo"), UnknownPattern),
            (call(), RequestError),
            (call(model="ollama/echo", options={"stop": ["x"]}), CannotEncode),
        ):
            with pytest.raises(fault):
                await events_of(server, asked)
    assert [] == fake.paths()


async def test_the_key_goes_to_fabric_and_a_wrong_one_is_told() -> None:
    section = {"api_key_env": "FABRIC_KEY", **ECHO}
    async with before(fabric(key="k1"), section, {"FABRIC_KEY": "k1"}) as server:
        assert "hi" in await answer_of(server, call())
    async with before(fabric(key="k2"), section, {"FABRIC_KEY": "k1"}) as server:
        assert [] == list(backend_of(server).list())
        health = await server.services.plugins.health()
        proxied = await server.client.get("/fabric/models/names")
    assert "fabric answered 401: Wrong API Key" == health["plugin.fabric.server"].detail
    assert (401, {"error": "Wrong API Key"}) == (proxied.status, proxied.json())


async def test_a_silent_fabric_is_a_504() -> None:
    async with before(fabric(), {"timeout_s": 0.2}) as server:
        for model in ("hang", "hold"):
            with pytest.raises(TransportError) as caught:
                await answer_of(server, call(model=f"ollama/{model}"))
            assert (504, "timeout") == (caught.value.status, caught.value.kind)
            assert caught.value.message.startswith("fabric: ")
