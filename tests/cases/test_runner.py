"""The runner itself: what is written in cases is looked at, and what is wrong is found."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import msgspec
import pytest

from tests.cases.__main__ import listing
from tests.cases.checks import CHECKS, every
from tests.cases.client import ask
from tests.cases.comparison import MISSING, compare, dig
from tests.cases.features import EXPECTED_TO_DIFFER, FEATURES, ready, reason_to_wait
from tests.cases.replies import Reply, assemble_calls
from tests.cases.run import run_case
from tests.cases.schema import Check, Entry, Http, Match, UpstreamScript, load_cases
from tests.cases.script_player import ScriptPlayer
from tests.cases.workspace import FAKE_MCP

CASES = load_cases()


def test_every_file_is_a_case_of_its_name() -> None:
    files = sorted(path.stem for path in (Path(__file__).parent / "data").glob("*.json"))
    assert files == list(CASES)


def test_every_check_of_every_case_is_made_by_someone() -> None:
    used = {part.check for case in CASES.values() for one in case.expect for part in every(one)}
    assert used == set(CHECKS)


def test_every_feature_that_a_case_requires_is_in_the_table() -> None:
    required = {name for case in CASES.values() for name in case.requires}
    assert set() == required - set(FEATURES)


def test_a_case_is_run_or_listed_with_a_reason() -> None:
    listed = listing(CASES.values())
    run = {case.id for case in ready(CASES.values())}
    for case in CASES.values():
        assert (case.id in run) is (reason_to_wait(case) is None)
        assert (case.id not in run or case.id in EXPECTED_TO_DIFFER) is (
            f"- {case.id} ({case.level})" in listed
        )


def test_only_wishes_may_differ_by_design() -> None:
    assert {"should"} == {CASES[id].level for id in EXPECTED_TO_DIFFER}


def test_an_unknown_key_in_a_case_is_an_error(tmp_path: Path) -> None:
    case = json.loads((Path(__file__).parent / "data" / "B01.json").read_text("utf-8"))
    case["expect"][0]["eqals"] = 1
    (tmp_path / "B01.json").write_text(json.dumps(case), "utf-8")
    with pytest.raises(msgspec.ValidationError, match=r"B01\.json: .*eqals"):
        load_cases(tmp_path)


@pytest.mark.parametrize(
    ("value", "check", "holds"),
    [
        (1, Check(check="", equals=1), True),
        (1, Check(check="", equals=True), False),
        (None, Check(check="", equals=None), True),
        (MISSING, Check(check="", equals=None), False),
        (MISSING, Check(check="", exists=False), True),
        (None, Check(check="", exists=False), False),
        (MISSING, Check(check="", not_contains="x"), True),
        ({"a": "x"}, Check(check="", contains="x"), True),
        ("text", Check(check="", matches="^ex"), False),
        (True, Check(check="", type="int"), False),
        ([1], Check(check="", len=1, in_=[[1]]), True),
        ("[1]", Check(check="", json_equals=[1]), True),
        ("[", Check(check="", json_equals=[1]), False),
        (None, Check(check="", min=1), False),
        (2, Check(check="", min=1, max=1), False),
    ],
)
def test_operators_compare(value: Any, check: Check, holds: bool) -> None:
    assert holds is (compare(value, check) is None)


def test_a_path_leads_through_objects_and_lists() -> None:
    assert dig({"a": [{"b": 1}]}, "a.0.b") == 1
    assert dig({"a": [{"b": 1}]}, "a.1.b") is MISSING


def test_calls_without_an_index_are_told() -> None:
    chunks = [{"choices": [{"delta": {"tool_calls": [{"id": "c", "function": {"name": "f"}}]}}]}]
    assert ([{"id": "c", "name": "f", "arguments": ""}], 1) == (
        assemble_calls(chunks)[0],
        len(assemble_calls(chunks)[1]),
    )


def test_line_ends_of_events_are_only_those_of_the_standard() -> None:
    reply = Reply(body='data: "a\u2028b"\r\n\r\ndata: 1\ndata: 2\n\nnoise\n'.encode())
    assert ["a\u2028b", MISSING] == [event.value for event in reply.events]
    assert reply.junk == ["noise"]


@pytest.fixture
def player() -> Iterator[ScriptPlayer]:
    reply = "HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nok"
    script = UpstreamScript(
        script=(Entry(expect=Match(method="POST", body_contains="one"), send=reply),)
    )
    with ScriptPlayer(script) as player:
        yield player


def _post(player: ScriptPlayer, body: bytes) -> tuple[int, bytes]:
    address = f"http://127.0.0.1:{player.port}/v1/x"
    try:
        with urllib.request.urlopen(address, body, 5) as reply:
            return reply.status, reply.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


def test_an_entry_answers_one_request_that_matches(player: ScriptPlayer) -> None:
    assert [404, 200, 404] == [_post(player, body)[0] for body in (b"two", b"one", b"one")]
    assert [b"two", b"one", b"one"] == [request.body for request in player.requests]


def test_lists_of_models_are_answered_uncounted(player: ScriptPlayer) -> None:
    question = Http(method="GET", path="/v1/models")
    assert {"object": "list", "data": []} == ask(question, player.port, {}, print).json
    assert [] == player.requests


def test_a_body_that_ends_early_is_trouble_of_the_transport() -> None:
    reply = "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
    with ScriptPlayer(UpstreamScript(script=(Entry(send=reply),))) as player:
        got = ask(Http(method="POST", path="/"), player.port, {}, print)
    assert (200, b"abc", "the chunked body has no end") == (got.status, got.body, got.error)


def test_a_client_that_leaves_is_noticed_by_the_upstream() -> None:
    entry = Entry(send="HTTP/1.1 200 X\r\n\r\nabc", hold_ms=5000)
    with ScriptPlayer(UpstreamScript(script=(entry,))) as player:
        ask(Http(method="POST", path="/", disconnect_after_bytes=1), player.port, {}, print)
        assert player.requests[0].closed.wait(5)


def test_a_case_that_asks_for_the_wrong_answer_fails() -> None:
    case = CASES["B01"]
    wrong = msgspec.structs.replace(case, expect=(Check(check="status", equals=418),))
    problems = run_case(wrong).problems
    assert ["status: is 200, wanted equals 418"] == [
        problem.partition(";")[0] for problem in problems
    ]


def test_the_fake_mcp_server_lists_pages_and_echoes_a_call(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("a", "b")]
    script.write_text(json.dumps({"tools": tools, "page_size": 1}), "utf-8")
    messages = [
        {"id": 1, "method": "tools/list"},
        {"id": 2, "method": "tools/list", "params": {"cursor": "1"}},
        {"id": 3, "method": "tools/call", "params": {"name": "b", "arguments": {"q": "ż"}}},
    ]
    with subprocess.Popen(
        [sys.executable, str(FAKE_MCP), str(script), str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        results: dict[int, Any] = {}
        for message in messages:
            server.stdin.write(f"{json.dumps(message)}\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            results[answer["id"]] = answer["result"]
        server.stdin.close()
        assert 0 == server.wait(5)
    assert {"tools": [tools[0]], "nextCursor": "1"} == results[1]
    assert {"tools": [tools[1]]} == results[2]
    assert 'ok:{"q": "ż"}' == results[3]["content"][0]["text"]
