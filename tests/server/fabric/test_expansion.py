"""What fabric would expand once more never reaches it (RU-44, RU-61)."""

import os
import re
from collections.abc import Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.server.fabric.fake.template import Endless, TemplateError
from tests.server.fabric.fake.template import fill as fabrics_fill
from woollama.core.errors import RequestError
from woollama.core.patterns import fill
from woollama.server.fabric.expansion import (
    LIMIT_VALUE_CHARACTERS,
    check_expansion,
    check_values,
    tokens_without_value,
)


def check(text: str, variables: Mapping[str, str]) -> None:
    check_values(variables)
    check_expansion("p", text, variables)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("Hi {{name}}", {"name": "{{other}}", "other": "deep"}),
        ("Hi {{name}}", {"name": "{{name}}x"}),
        ("Hi {{name}}", {"name": "{{plugin:file:read:/etc/passwd}}"}),
        ("Hi {{name}}", {"name": "a {{", "{{": ""}),
        ("Hi {{{name}}}", {"name": "{plugin:sys:env:HOME}"}),
        ("Hi {{{{name}}}}", {"name": "plugin:sys:env:HOME"}),
        ("{{a}}{{b}}", {"a": "{", "b": "{plugin:sys:env:HOME}}"}),
        ("{{{e}}{plugin:sys:env:HOME}}", {"e": ""}),
        ("{{plugin:{{what}}}}", {"what": "sys:env:HOME"}),
        ("{{plugin:sys:{{what}}}}", {"what": "env:HOME"}),
        ("{{ {{x}} }}", {"x": "N", " N ": "q"}),
        ("{{name}}", {"name": "__FABRIC_INPUT_SENTINEL_TOKEN__"}),
    ],
)
def test_a_value_that_would_be_read_again_is_refused(
    text: str, variables: Mapping[str, str]
) -> None:
    with pytest.raises(RequestError) as caught:
        check(text, variables)
    assert 400 == caught.value.status
    assert (caught.value.param or "").startswith("variables.")


@pytest.mark.parametrize(
    ("text", "variables", "filled"),
    [
        ("Hi {{name}}", {"name": '{"a": 1}'}, 'Hi {"a": 1}'),
        ("Hi {{name}}", {"name": "{x}"}, "Hi {x}"),
        ("Hi {{{name}}}", {"name": "N"}, "Hi {N}"),
        ("{{a}}{{b}}", {"a": "", "b": "x"}, "x"),
        ("{{a}}{{plugin:datetime:now}}", {"a": ""}, "2026-08-04T00:00:00Z"),
        ("{{plugin:text:upper:{{name}}}}", {"name": "bob"}, "BOB"),
        ("{ {{a}} }", {"a": "{b}"}, "{ {b} }"),
        ("{{input}}{{a}}", {"a": "x"}, "INx"),
    ],
)
def test_a_value_that_is_put_in_once_passes(
    text: str, variables: Mapping[str, str], filled: str
) -> None:
    check(text, variables)
    assert filled == fabrics_fill(text, variables, "IN").removesuffix("\nIN")


def test_the_message_says_what_and_why() -> None:
    with pytest.raises(RequestError) as caught:
        check_values({"x": "{{y}}"})
    assert (
        'variables.x: variable names and values must not contain "{{": fabric would expand it.'
        == caught.value.message
    )


def test_an_endless_value_is_refused() -> None:
    with pytest.raises(RequestError, match="longer than"):
        check_values({"x": "y" * (LIMIT_VALUE_CHARACTERS + 1)})
    check_values({"x": "y" * LIMIT_VALUE_CHARACTERS})


PIECES = ("{", "}", "{{", "}}", "a", "b", " ", "plugin:sys:env:HOME", "{{a}}", "{{b}}", "{{input}}")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
VALUES = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)


@settings(max_examples=2000, deadline=None)
@given(TEXTS, VALUES, VALUES)
def test_ru_44_what_passes_is_what_one_pass_makes(text: str, a: str, b: str) -> None:
    """Whatever is let through, fabric makes of it what a single replacement makes."""
    # A value as the argument of a call is what the pattern's author wants.
    assume(not re.search(r"\{\{plugin:sys:env:[^}]*\{\{", text))
    variables = {"a": a, "b": b}
    try:
        check(text, variables)
        made = fabrics_fill(text, variables, "\0")
    except (RequestError, TemplateError):
        return
    except Endless as error:
        raise AssertionError("fabric would not come back") from error
    if "{{input}}" not in text:
        text += ("" if text.endswith("\n") else "\n") + "{{input}}"
    # The pattern's own calls are its author's, too.
    authors = re.sub(
        r"\{\{plugin:sys:env:([^{}]+)\}\}", lambda call: os.environ.get(call[1], ""), text
    )
    assert made == fill(authors.replace("{{input}}", "\0"), variables)


def test_tokens_without_a_value_are_told_in_their_order() -> None:
    text = "{{b}} {{input}} {{a}} {{b}} {{ c }} {{plugin:datetime:now}} {{ext:x:y:z}} {{}}"
    assert ("b", "a", " c ") == tokens_without_value(text, {})
    assert (" c ",) == tokens_without_value(text, {"a": "", "b": ""})
