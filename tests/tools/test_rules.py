"""The list of wire rules without a test."""

from pathlib import Path

import pytest

from tools.rules import PAGE, gather, main, read_page, rules_in, rules_of_name

PAGE_TEXT = """
| letters | rules of |
| --- | --- |
| A | all |

| rule | what holds |
| --- | --- |
| A-1 | one |
| RE-12 | twelve |

## Not applicable

| rule | part | why not |
| --- | --- | --- |
| A-1 | a part | no such thing |
"""


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("test_a_1_only", ["A-1"]),
        ("test_re_12", ["RE-12"]),
        ("test_a_2_and_a_3_thinking", ["A-2", "A-3"]),
        ("test_a_reply_of_200_words", []),
        ("test_a_200_is_no_rule", []),
        ("test_ae_3_ae_11_null", ["AE-3", "AE-11"]),
        ("test_n_9_c_8_p_21_what", ["N-9", "C-8"]),
        ("test_p_22_a_14_advice_on_c_3", ["A-14"]),
        ("test_p_24_and_more", []),
        ("test_ru_12_not_a_rule_of_the_wire", []),
    ],
)
def test_a_name_says_which_rules_it_proves(name: str, rules: list[str]) -> None:
    assert rules == rules_of_name(name)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("RE-12: and C-7.", ["RE-12", "C-7"]),
        ("R-12 to R-14, A-1 to 2", ["R-12", "R-13", "R-14", "A-1", "A-2"]),
        ("P-23, RU-12, SHA-25, A-123, UTF-8 and X-C-1", []),
    ],
)
def test_a_docstring_cites_rules(text: str, rules: list[str]) -> None:
    assert rules == rules_in(text)


def test_the_page_lists_rules_and_parts_that_do_not_apply() -> None:
    rules, parts = read_page(PAGE_TEXT)
    assert {"A-1": "one", "RE-12": "twelve"} == rules
    assert {"A-1": "a part | no such thing"} == parts


def workshop(root: Path, test: str, covers: str) -> Path:
    (root / PAGE).parent.mkdir(parents=True)
    (root / PAGE).write_text(PAGE_TEXT, "utf-8")
    (root / "tests" / "case").mkdir(parents=True)
    (root / "tests" / "test_x.py").write_text(test, "utf-8")
    (root / "tests" / "case" / "case.json").write_text(f'{{"covers": {covers}}}', "utf-8")
    return root


def test_tests_and_golden_exchanges_cover_rules(tmp_path: Path) -> None:
    test = 'async def test_a_1_x():\n    "RE-12"\n\ndef re_12():\n    "A-1"\n\nclass T: ...\n'
    unit, golden = gather(workshop(tmp_path, test, '["A-1"]') / "tests")
    assert ({"A-1", "RE-12"}, {"A-1"}) == (set(unit), set(golden))
    assert [1, 1] == [len(places) for places in unit.values()]


def test_it_fails_when_a_rule_has_no_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == main(workshop(tmp_path, "def test_a_1(): ...\n", "[]"))
    assert "without a test: RE-12" in capsys.readouterr().out


def test_it_fails_when_something_cites_a_rule_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == main(workshop(tmp_path, "def test_a_1(): ...\n", '["RE-12", "A-9"]'))
    told = capsys.readouterr().out
    assert "cited but not on the page: A-9" in told
    assert "shown by a golden exchange only: RE-12" in told
    assert "A-1: a part: no such thing" in told


def test_ru_19_every_rule_of_our_own_page_has_a_test() -> None:
    assert 0 == main(Path(__file__).parents[2])
