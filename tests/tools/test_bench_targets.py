"""What a launch script says about asking its server."""

from pathlib import Path

import pytest

from tools.bench.places import TARGETS, child_env, our_command
from tools.bench.target import Target, TargetError, find_target, parse_target

NAMES = sorted(script.stem for script in TARGETS.glob("*.sh"))


def test_the_lines_with_a_mark_are_read_and_no_others() -> None:
    text = (
        "#!/bin/sh\n#: model = bench/{}\n#: header = Authorization: Bearer x = y\n"
        "#: header = x-two: 2\n#: wait_s = 120\n#: path = /v1/x\n# model = no\nexec true\n"
    )

    assert Target(
        name="t",
        model="bench/{}",
        headers=("Authorization: Bearer x = y", "x-two: 2"),
        path="/v1/x",
        wait_s=120,
    ) == parse_target("t", text)


def test_a_script_without_marks_has_the_defaults() -> None:
    assert Target(name="t") == parse_target("t", "#!/bin/sh\nexec true\n")


@pytest.mark.parametrize("line", ["#: modle = x", "#: model x"])
def test_a_mark_that_is_not_understood_is_an_error(line: str) -> None:
    with pytest.raises(TargetError, match="target 't'"):
        parse_target("t", line)


def test_a_name_without_a_script_is_an_error_that_lists_the_names(tmp_path: Path) -> None:
    (tmp_path / "known.sh").write_text("#!/bin/sh\n", encoding="utf-8")

    with pytest.raises(TargetError, match="no target 'other'; there are: direct, known"):
        find_target("other", folder=tmp_path)


def test_direct_is_the_mock_and_has_no_script() -> None:
    assert Target(name="direct") == find_target("direct")


@pytest.mark.parametrize("name", NAMES)
def test_every_script_of_ours_can_be_read(name: str) -> None:
    target = find_target(name)

    assert (name, TARGETS / f"{name}.sh") == (target.name, target.script)
    assert ("bench/{}" if name.startswith("woollama") else "{}") == target.model


def test_no_key_and_no_proxy_of_the_caller_reaches_a_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")

    env = child_env(PORT="1")

    assert {"PORT"} == set(env) - {"PATH", "LANG", "TMPDIR"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [("woollama", "woollama"), ("bin/woollama", "{cwd}/bin/woollama"), ("/x/w", "/x/w")],
)
def test_our_command_does_not_depend_on_where_a_target_runs(
    monkeypatch: pytest.MonkeyPatch, given: str, expected: str
) -> None:
    monkeypatch.setenv("WOOLLAMA_BIN", given)

    assert expected.format(cwd=Path.cwd()) == our_command()
