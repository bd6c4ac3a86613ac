"""A model name to what answers for it, and the names that are near when nothing does."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from woollama.core import ModelRegistry, Pattern, PatternCall, Provider
from woollama.core.directory import OWN_NAMESPACE, Directory, FoundPattern, near_names
from woollama.core.errors import InferenceError, RequestError, TransportError, UnknownModel
from woollama.core.patterns import PatternCatalog
from woollama.core.providers import Target


class Backend:
    """Patterns by name, and nothing that runs."""

    def __init__(self, id: str, *patterns: Pattern) -> None:
        self.id = id
        self._patterns = {pattern.name: pattern for pattern in patterns}

    def list(self) -> Sequence[Pattern]:
        return tuple(self._patterns.values())

    def find(self, name: str) -> Pattern | None:
        return self._patterns.get(name)

    async def render(
        self, name: str, variables: Mapping[str, Any], input: str | None = None
    ) -> str:
        raise NotImplementedError

    def open_run(self, call: PatternCall) -> AbstractAsyncContextManager[Any]:
        raise NotImplementedError


WITH_MODEL = Pattern(name="sum", source="recipe", model="x/m")
WITHOUT_MODEL = Pattern(name="plain", source="directory")
OTHER_SUM = Pattern(name="sum", source="other", model="x/n")
FIRST = Backend("first", WITH_MODEL, WITHOUT_MODEL)
SECOND = Backend("second", OTHER_SUM, Pattern(name="late", source="other"))
CATALOG = PatternCatalog([FIRST, SECOND])
REGISTRY = ModelRegistry([Provider("x", "http://h/v1"), Provider("openai", "http://h/v1")])
DIRECTORY = Directory(REGISTRY, CATALOG)


def unknown(model: str, *known: str, directory: Directory = DIRECTORY) -> UnknownModel:
    with pytest.raises(UnknownModel) as caught:
        directory.find(model, known=known)
    error = caught.value
    assert (404, "model", "model_not_found") == (error.status, error.param, error.code)
    return error


def test_a_provider_and_a_model_are_a_target() -> None:
    found = DIRECTORY.find("x/a/b")
    assert isinstance(found, Target)
    assert ("x", "a/b") == (found.provider.name, found.model)


def test_ru_54_a_name_of_ours_is_a_pattern_of_the_first_backend_that_has_it() -> None:
    assert FoundPattern(WITH_MODEL, FIRST) == DIRECTORY.find(f"{OWN_NAMESPACE}/sum")


def test_a_pattern_without_a_model_is_no_model() -> None:
    with pytest.raises(RequestError, match="names no model to run on") as caught:
        DIRECTORY.find("woollama/plain")
    assert 400 == caught.value.status


def test_an_unknown_pattern_is_refused_with_the_near_ones_that_are_models() -> None:
    assert "There is no recipe or pattern 'sun'. Near names: woollama/sum." == str(
        unknown("woollama/sun")
    )
    assert "woollama/plain" not in str(unknown("woollama/plan"))


@pytest.mark.parametrize("model", ["woollama", "woollama/"])
def test_our_name_alone_is_no_model(model: str) -> None:
    assert "There is no recipe or pattern ''." in str(unknown(model))


def test_without_a_catalog_there_are_no_patterns() -> None:
    error = unknown("woollama/sum", directory=Directory(REGISTRY))
    assert "There is no recipe or pattern 'sum'." == str(error)


def test_an_unknown_provider_is_refused_with_near_names() -> None:
    error = unknown("opnai/gpt-5", "openai/gpt-5", "x/other")
    assert "known providers are x, openai" in error.message
    assert "Near names: openai/gpt-5." == error.hint


def test_without_near_names_there_is_no_hint() -> None:
    assert None is unknown("zzz/qqq").hint


def test_a_provider_without_a_model_is_refused() -> None:
    with pytest.raises(RequestError, match="write x/<model>"):
        DIRECTORY.find("x")


@pytest.mark.parametrize(
    ("model", "known", "expected"),
    [
        ("a/gpt-5", ["b/gpt-5", "zzzzzzzzzzzz"], " Near names: b/gpt-5."),
        ("some-provider/m", ["o/m", "q/n"], " Near names: o/m."),
        ("x/m", [], ""),
        ("x/m", ["completely different"], ""),
        ("n/m1", ["n/m2", "n/m3", "n/m4", "n/m5"], " Near names: n/m5, n/m4, n/m3."),
    ],
)
def test_names_are_near_by_their_letters_or_by_the_same_model(
    model: str, known: list[str], expected: str
) -> None:
    assert expected == near_names(model, known)


def test_a_catalog_lists_every_pattern_once() -> None:
    assert ["sum", "plain", "late"] == [pattern.name for pattern in CATALOG.list()]
    assert WITH_MODEL is CATALOG.list()[0]


def test_a_catalog_finds_the_backend_too() -> None:
    assert (SECOND, SECOND.find("late")) == CATALOG.find("late")
    assert None is CATALOG.find("nope")
    assert () == PatternCatalog().list()


class Failing(Backend):
    """Raises whatever it is asked, until it is mended."""

    def __init__(self, error: Exception, *patterns: Pattern) -> None:
        super().__init__("failing", *patterns)
        self.error: Exception | None = error

    def list(self) -> Sequence[Pattern]:
        self._fail()
        return super().list()

    def find(self, name: str) -> Pattern | None:
        self._fail()
        return super().find(name)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


def test_a_backend_that_fails_takes_only_its_own_patterns_away() -> None:
    fault = KeyError("what a person wrote")
    failing = Failing(fault, Pattern(name="theirs", source="failing"))
    told: list[tuple[str, Exception | None]] = []
    catalog = PatternCatalog(
        [FIRST, failing, SECOND], report=lambda backend, error: told.append((backend.id, error))
    )
    assert ["sum", "plain", "late"] == [pattern.name for pattern in catalog.list()]
    assert [("first", None), ("failing", fault), ("second", None)] == told
    told.clear()
    assert (FIRST, WITH_MODEL) == catalog.find("sum")
    assert [] == told
    assert (SECOND, SECOND.find("late")) == catalog.find("late")
    assert [("failing", fault)] == told
    failing.error = None
    assert ["sum", "plain", "theirs", "late"] == [pattern.name for pattern in catalog.list()]


def test_a_list_that_is_none_is_a_failure_of_its_backend() -> None:
    odd = Backend("odd")
    odd.list = lambda: None  # pyright: ignore[reportAttributeAccessIssue]
    assert ["sum", "plain"] == [pattern.name for pattern in PatternCatalog([odd, FIRST]).list()]


def test_a_name_that_nobody_else_has_is_answered_with_the_backend_that_failed() -> None:
    fault = KeyError("what a person wrote")
    catalog = PatternCatalog([Failing(fault), Failing(ValueError()), SECOND])
    with pytest.raises(InferenceError) as caught:
        Directory(REGISTRY, catalog).find("woollama/theirs")
    assert (500, "server_error") == (caught.value.status, caught.value.kind)
    assert fault is caught.value.__cause__
    assert (
        "The pattern backend 'failing' failed and cannot say whether it has 'theirs': KeyError"
        == str(caught.value)
    )


def test_what_a_backend_says_on_purpose_of_its_failure_is_passed_on() -> None:
    catalog = PatternCatalog([Failing(TransportError("It is away.", status=504))])
    with pytest.raises(InferenceError, match="whether it has 'x': It is away") as caught:
        catalog.find("x")
    assert 504 == caught.value.status
