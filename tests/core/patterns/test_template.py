"""P-40 and RU-44: tokens, names to the letter, one pass, and no value read a second time."""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.errors import RequestError
from woollama.core.patterns import fill, variables_of

LIBRARY = Path(__file__).parents[2] / "fixtures" / "patterns"
PROMPTS = sorted(LIBRARY.glob("*/system.md"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Hi {{name}}", ("name",)),
        ("{{b}}{{a}}{{b}}", ("b", "a")),
        ("{{ name }}", (" name ",)),
        ("{{{name}}}", ("name",)),
        ("{{}} {{a {b} {{c}", ()),
        ("{{ {{x}} }}", ("x",)),
        ("{{input}} {{plugin:text:upper:abc}}", ("input", "plugin:text:upper:abc")),
        ("{{two\nlines}}", ("two\nlines",)),
        ("{{język}} {{名前}} {{a.b-c_1}}", ("język", "名前", "a.b-c_1")),
        ("", ()),
    ],
)
def test_p_40_a_name_is_the_exact_text_between_the_braces(
    text: str, names: tuple[str, ...]
) -> None:
    assert names == variables_of(text)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("Hi {{name}}", {"name": "B"}, "Hi B"),
        ("Hi {{name}}", {}, "Hi {{name}}"),
        ("{{ name }}", {"name": "B"}, "{{ name }}"),
        ("{{ name }}", {" name ": "B"}, "B"),
        ("{{{name}}}", {"name": "N"}, "{N}"),
        ("{{}} {{a", {"": "x", "a": "y"}, "{{}} {{a"),
        ("{{ {{x}} }}", {"x": "N", " N ": "q"}, "{{ N }}"),
        ("{{a}}", {"a": "{{b}}", "b": "deep"}, "{{b}}"),
        ("{{a}}", {"a": "{{a}}x"}, "{{a}}x"),
        ("{{a}}{{b}}", {"a": "{", "b": "{c}}", "c": "!"}, "{{c}}"),
        ("{{input}}--{{input}}", {"input": "IN"}, "IN--IN"),
        ("{{plugin:text:upper:{{name}}}}", {"name": "bob"}, "{{plugin:text:upper:bob}}"),
        ("A {{x}} B {{ x }} C {{x }} D {{{x}}}", {"x": "V"}, "A V B {{ x }} C {{x }} D {V}"),
        ("{{x}}", {"x": ""}, ""),
        (r"{{x}}", {"x": r"\1\g<0>"}, r"\1\g<0>"),
        ("{{a}}", {"b": "unused"}, "{{a}}"),
        ("{{b{{a}}}}", {"a": "", "b": "x"}, "{{b}}"),
    ],
)
def test_ru_44_replacement_is_by_exact_text_and_once(
    text: str, values: dict[str, str], expected: str
) -> None:
    assert expected == fill(text, values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "3"),
        (0.5, "0.5"),
        (True, "true"),
        (None, "null"),
        (["a", {"b": 1}], '["a",{"b":1}]'),
        ({"é": "ü"}, '{"é":"ü"}'),
    ],
)
def test_p_40_a_value_that_is_no_text_is_put_in_as_json(value: Any, expected: str) -> None:
    assert f"={expected}" == fill("={{v}}", {"v": value})


def test_a_value_without_a_json_form_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match="variable 'v'") as caught:
        fill("{{v}}", {"v": object()})
    assert "variables.v" == caught.value.param


def naive(text: str, values: Mapping[str, str]) -> str:
    """What one would write without thinking; right as long as no value makes a token anew."""
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text


# Nothing of which a token could be made: no braces, no letters of the names, and not nothing.
PLAIN = st.text(st.characters(exclude_characters="{}ab ", exclude_categories=["Cs"]), min_size=1)
PIECES = st.sampled_from(["{", "}", "{{", "}}", "a", "b", " ", "\r\n", "{{a}}", "{{b}}", "{{ab}}"])
TEXTS = st.lists(PIECES, max_size=20).map("".join)
VALUES = st.dictionaries(st.sampled_from(["a", "b", "ab", " "]), TEXTS, max_size=4)


@given(TEXTS, st.dictionaries(st.sampled_from(["a", "b", "ab", " "]), PLAIN, max_size=4))
def test_plain_values_give_what_a_naive_replacement_gives(
    text: str, values: dict[str, str]
) -> None:
    assert naive(text, values) == fill(text, values)


@given(TEXTS, VALUES)
def test_a_value_is_never_substituted_again(text: str, values: dict[str, str]) -> None:
    """With marks that no text holds in the places of the values, the same places are filled."""
    marks = {name: f"\0{i}\0" for i, name in enumerate(values)}
    marked = fill(text, marks)
    assert fill(text, values) == re.sub(
        "\0(\\d)\0", lambda mark: list(values.values())[int(mark[1])], marked
    )


@given(TEXTS, VALUES)
def test_what_has_no_value_stays_to_the_letter(text: str, values: dict[str, str]) -> None:
    assert text == fill(text, {})
    unknown = {f"no-{name}": value for name, value in values.items()}
    assert text == fill(text, unknown)


@given(TEXTS, VALUES)
def test_only_listed_names_are_filled(text: str, values: dict[str, str]) -> None:
    listed = {name: value for name, value in values.items() if name in variables_of(text)}
    assert fill(text, values) == fill(text, listed)


@pytest.mark.parametrize("unit", ["{{a {{ }", "{", "{{", "{{a", "}}", "{{{a}}} "])
def test_unbalanced_braces_take_no_time(unit: str) -> None:
    text = unit * 40_000
    start = time.process_time()
    fill(text, {"a": "v"})
    variables_of(text)
    assert time.process_time() - start < 2


def test_the_test_input_is_as_it_was_taken() -> None:
    found = {path.parent.name: path.read_bytes() for path in PROMPTS}
    assert 17 == len(found)
    assert b"" == found["empty"]
    assert found["bom"].startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in found["analyze_malware"]
    assert "\ufeff" in found["write_nuclei_template_rule"].decode()


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.parent.name)
def test_real_patterns_are_filled_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    text = data.decode()
    assert data == fill(text, {}).encode()
    values = {name: f"<{i} é\r\n>" for i, name in enumerate(variables_of(text))}
    assert naive(text, values).encode() == fill(text, values).encode()
