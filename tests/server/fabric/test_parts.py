"""The small parts: section, environment, images, routes, bodies."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from woollama.core.config.files import read_table
from woollama.core.errors import ConfigError, RequestError
from woollama.server.fabric.allowed import check_route
from woollama.server.fabric.config import FabricConfig, with_environment
from woollama.server.fabric.environment import child_environment, find_program
from woollama.server.fabric.handover import LeftAddress
from woollama.server.fabric.images import InlineImage, RemoteImage, read_image
from woollama.server.fabric.inspection import Prompt, read_apply, read_chat
from woollama.server.fabric.keys import key_of, with_key
from woollama.server.fabric.wire import names_request

# The section


def problems(**section: Any) -> list[str]:
    _, found = read_table(section, FabricConfig, file="mcp.json", place="fabric")
    return [str(problem) for problem in found]


def test_the_sections_that_users_have_are_taken() -> None:
    assert [] == problems(url="http://127.0.0.1:8080/")
    assert [] == problems(
        managed=True, command="fabric", address="127.0.0.1:8999", default_model="ollama/m"
    )
    assert [] == problems(managed=True, address="[::1]:8999", env={"A": "b"}, expose=["writes"])
    assert [] == problems()


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"urll": "x"}, "fabric.urll: unknown key; did you mean 'url'?"),
        ({"url": "127.0.0.1:8080"}, "is no address; write http://127.0.0.1:8080"),
        ({"url": "http://u:p@h"}, "neither credentials"),
        ({"url": "http://h?x=1"}, "nor a query"),
        ({"address": ":8080"}, "is not on this machine"),
        ({"address": "0.0.0.0:8080"}, "is not on this machine"),
        ({"address": "127.0.0.1"}, "has no port"),
        ({"address": "127.0.0.1:0"}, "has no port"),
        ({"managed": "yes"}, "fabric.managed"),
        ({"expose": ["everything"]}, "fabric.expose"),
        ({"refresh_s": -1}, "fabric.refresh_s"),
        ({"timeout_s": 0}, "fabric.timeout_s"),
    ],
)
def test_a_wrong_section_is_told_by_its_key(section: dict[str, Any], words: str) -> None:
    (problem,) = problems(**section)
    assert words in problem


def test_the_variables_of_other_daemons_stand_over_the_section() -> None:
    environ = {
        "WOOLLAMA_FABRIC_REFRESH_SECS": "0",
        "WOOLLAMA_FABRIC_VISION_TIMEOUT_SECS": "2.5",
    }
    config = with_environment(FabricConfig(refresh_s=7), environ)
    assert (0.0, 2.5) == (config.refresh_s, config.vision_timeout_s)
    assert FabricConfig(refresh_s=7) == with_environment(FabricConfig(refresh_s=7), {})


@pytest.mark.parametrize("text", ["soon", "-1", "inf", "nan"])
def test_a_variable_that_is_no_number_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="WOOLLAMA_FABRIC_REFRESH_SECS"):
        with_environment(FabricConfig(), {"WOOLLAMA_FABRIC_REFRESH_SECS": text})


def test_the_key_comes_from_the_variable_and_into_its_header() -> None:
    config = FabricConfig(api_key_env="FABRIC_KEY")
    assert "k1" == key_of(config, {"FABRIC_KEY": "k1\n"})
    assert key_of(FabricConfig(), {}) is None
    for environ in ({}, {"FABRIC_KEY": " "}, {"FABRIC_KEY": "kä"}):
        with pytest.raises(ConfigError, match="'FABRIC_KEY' holds no key"):
            key_of(config, environ)
    request = names_request("http://h")
    assert {"x-api-key": "k1"} == with_key(request, "k1").headers
    assert request is with_key(request, None)


def test_the_repr_of_the_section_shows_no_value_of_its_environment() -> None:
    assert "s3cret" not in repr(FabricConfig(env={"OPENAI_API_KEY": "s3cret"}))


# The environment of a child


def test_a_child_gets_what_fabric_reads_and_nothing_of_ours() -> None:
    environ = {
        "HOME": "/home/you",
        "PATH": "/usr/bin",
        "LANG": "de_DE.UTF-8",
        "LC_ALL": "de_DE.UTF-8",
        "OPENAI_API_KEY": "k",
        "OLLAMA_API_URL": "u",
        "WOOLLAMA_TOKEN": "t",
        "WOOLLAMA_API_KEY": "t",
        "DATABASE_PASSWORD": "p",
        "AWS_SECRET_ACCESS_KEY": "a",
    }
    assert {
        "HOME": "/home/you",
        "PATH": "/home/you/.local/bin:/usr/bin",
        "LANG": "en_US.UTF-8",
        "OPENAI_API_KEY": "k",
        "OLLAMA_API_URL": "u",
        "EXTRA": "x",
    } == child_environment(environ, {"EXTRA": "x"})


def test_what_the_section_sets_wins() -> None:
    made = child_environment({"HOME": "/a", "OPENAI_API_KEY": "k"}, {"OPENAI_API_KEY": ""})
    assert "" == made["OPENAI_API_KEY"]


def test_the_program_is_found_by_name_path_and_home(tmp_path: Path) -> None:
    program = tmp_path / ".local" / "bin" / "fabric"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    env = child_environment({"HOME": str(tmp_path), "PATH": "/nowhere"}, {})
    for command in ("fabric", str(program), "~/.local/bin/fabric"):
        assert str(program) == find_program(command, env)
    assert find_program("fabricc", env) is None


# The address that is left for others


def test_an_address_is_left_for_its_owner_alone(tmp_path: Path) -> None:
    left = LeftAddress(str(tmp_path))
    assert left.read() is None
    left.write("127.0.0.1:4711")
    file = tmp_path / "woollama.fabric-addr"
    assert ("127.0.0.1:4711", 0o600) == (left.read(), file.stat().st_mode & 0o777)
    left.remove("127.0.0.1:1")
    assert file.exists()
    left.remove("127.0.0.1:4711")
    assert not file.exists()


@pytest.mark.parametrize("text", ["evil.example:80", "127.0.0.1:", "127.0.0.1", "", "\udcff"])
def test_an_address_elsewhere_is_not_followed(tmp_path: Path, text: str) -> None:
    (tmp_path / "woollama.fabric-addr").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert LeftAddress(str(tmp_path)).read() is None


def test_without_a_folder_of_ones_own_nothing_is_left(tmp_path: Path) -> None:
    left = LeftAddress(None)
    left.write("127.0.0.1:4711")
    left.remove("127.0.0.1:4711")
    assert left.read() is None
    LeftAddress(str(tmp_path / "missing")).write("127.0.0.1:4711")


# Images

PNG = b"\x89PNG\r\n\x1a\n"


def data_url(data: bytes = PNG, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def test_p_42_an_inline_image_is_decoded_with_and_without_padding() -> None:
    expected = InlineImage(data=PNG + b"x", suffix=".png")
    url = data_url(PNG + b"x")
    assert url.endswith("=") or len(PNG + b"x") % 3 == 0
    assert expected == read_image(url)
    padded = data_url(PNG)
    assert padded.endswith("=")
    assert InlineImage(data=PNG, suffix=".png") == read_image(padded)
    assert InlineImage(data=PNG, suffix=".png") == read_image(padded.rstrip("="))


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        ("image/jpeg", ".jpg"),
        ("image/webp", ".webp"),
        ("IMAGE/GIF", ".gif"),
        ("image/x-new", ".img"),
    ],
)
def test_the_file_has_the_ending_of_its_type(kind: str, suffix: str) -> None:
    image = read_image(data_url(kind=kind))
    assert isinstance(image, InlineImage)
    assert suffix == image.suffix


@pytest.mark.parametrize("url", ["https://example.org/a.png?x=1", "http://127.0.0.1:1/a"])
def test_an_address_is_passed_on(url: str) -> None:
    assert RemoteImage(url=url) == read_image(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc/passwd",
        "/etc/passwd",
        "ftp://example.org/a.png",
        "https:/example.org",
        "https://example.org/a b",
        "https://example.org/a\n--model=x",
        "data:image/png,raw",
        "data:text/plain;base64,QUJD",
        "data:image/png;base64,",
        "data:image/png;base64,====",
        "data:image/png;base64,no-base64!",
        "data:image/png;base64,A",
        "data:;base64,QUJD",
    ],
)
def test_p_42_a_bad_image_is_a_400(url: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_image(url)
    assert (400, "input.image_url") == (caught.value.status, caught.value.param)


def test_p_42_an_image_may_have_20_mib_decoded() -> None:
    limit = 20 * 1024 * 1024
    image = read_image(data_url(bytes(limit)))
    assert isinstance(image, InlineImage)
    assert limit == len(image.data)
    with pytest.raises(RequestError, match="20971520 bytes at most"):
        read_image(data_url(bytes(limit + 1)))
    with pytest.raises(RequestError, match="20971520 bytes at most"):
        read_image(data_url(bytes(limit + 100)))


def test_the_repr_of_an_image_is_short() -> None:
    assert "InlineImage(8 bytes, '.png')" == repr(InlineImage(data=PNG, suffix=".png"))


# Routes

OPEN = [
    ("GET", "/patterns/names"),
    ("GET", "/patterns/summarize"),
    ("GET", "/patterns/exists/summarize"),
    ("POST", "/patterns/summarize/apply"),
    ("GET", "/models/names"),
    ("GET", "/strategies"),
    ("GET", "/contexts/names"),
    ("POST", "/chat"),
    ("GET", "/patterns/a%20b"),
]
CLOSED = [
    ("POST", "/patterns/x", "writes"),
    ("DELETE", "/patterns/x", "writes"),
    ("PUT", "/patterns/rename/a/b", "writes"),
    ("POST", "/contexts/x", "writes"),
    ("DELETE", "/sessions/x", "writes"),
    ("GET", "/contexts/me", "contents"),
    ("GET", "/sessions/names", "contents"),
    ("GET", "/sessions/x", "contents"),
    ("GET", "/config", "config"),
    ("POST", "/config/update", "config"),
    ("POST", "/youtube/transcript", "youtube"),
    ("GET", "/swagger/index.html", "other"),
    ("HEAD", "/patterns/names", "other"),
    ("GET", "/patterns/names/", "other"),
    ("GET", "/chat", "other"),
    ("OPTIONS", "/chat", "other"),
    ("GET", "/", "other"),
    ("GET", "//patterns/names", "other"),
    ("GET", "/%63onfig", "config"),
    ("GET", "/CONFIG", "other"),
    ("POST", "/chat/", "other"),
]


@pytest.mark.parametrize(("method", "path"), OPEN)
def test_ru_61_the_listed_routes_are_open(method: str, path: str) -> None:
    check_route(method, path, frozenset())


@pytest.mark.parametrize(("method", "path", "group"), CLOSED)
def test_ru_61_any_other_route_is_403_and_names_the_key_that_opens_it(
    method: str, path: str, group: str
) -> None:
    with pytest.raises(RequestError) as caught:
        check_route(method, path, frozenset())
    assert (403, "permission") == (caught.value.status, caught.value.kind)
    assert f'write "expose": ["{group}"] into the section fabric of mcp.json' in str(caught.value)
    check_route(method, path, frozenset({group}))


@pytest.mark.parametrize(
    "path",
    [
        "/patterns/..%2f..%2f.env",
        "/patterns/%2e%2e",
        "/patterns/..",
        "/patterns/../config",
        "/patterns/a%5cb",
        "/patterns/~%2f.config",
        "/patterns/~root",
        "/patterns/.env",
        "/patterns/a%00b",
        "/patterns/%2Fetc%2Fpasswd",
        "/./config",
    ],
)
def test_ru_61_a_name_that_is_a_path_is_refused_whatever_is_open(path: str) -> None:
    everything = frozenset({"contents", "writes", "config", "youtube", "other"})
    with pytest.raises(RequestError) as caught:
        check_route("GET", path, everything)
    assert 400 == caught.value.status


# Bodies


def test_the_prompts_of_a_chat_are_read_as_fabric_reads_them() -> None:
    body = b'{"Prompts": [{"PATTERNNAME": "p", "Variable\xc5\xbf": {"a": "b"}}, {}]} trailing'
    assert [Prompt(pattern="p", variables={"a": "b"}), Prompt()] == read_chat(body)


@pytest.mark.parametrize(
    "body",
    [b'{"prompts":"x"}', b"[]", b"null", b'{"prompts":[1]}', b'{"prompts":[{"variables":1}]}'],
)
def test_a_body_of_another_shape_is_left_to_fabric(body: bytes) -> None:
    assert all(prompt == Prompt() for prompt in read_chat(body))


@pytest.mark.parametrize(
    "field", ["patternName", "contextName", "sessionName", "SE\u017f\u017fionName", "strategyName"]
)
@pytest.mark.parametrize(
    "path", ["/etc/hostname", "~/.config/fabric/.env", ".env", "a/../b", "a\\b"]
)
def test_ru_61_a_path_in_the_place_of_a_name_is_refused(field: str, path: str) -> None:
    body = json.dumps({"prompts": [{"patternName": "p"}, {field: path}]}).encode()
    with pytest.raises(RequestError, match="must be a name, not a path"):
        read_chat(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"prompts": [], "PROMPTS": []}',
        b'{"prompts": [{"patternName": "/etc/passwd", "PatternName": "p"}]}',
        b'{"prompts": [{"variables": {"a": "b"}, "variables": {"c": "d"}}]}',
        b'{"prompts": [{"variables": {"a": "{{x}}", "a": "b"}}]}',
    ],
)
def test_a_field_that_stands_twice_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError, match="stands twice"):
        read_chat(body)


@pytest.mark.parametrize("body", [b"", b"{", b"\xef\xbb\xbf{}", b"x", b"[" * 200_000])
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError, match="is not JSON"):
        read_chat(body)


def test_the_query_of_apply_holds_variables_under_those_of_the_body() -> None:
    body = b'{"input": "x", "variables": {"a": "body"}}'
    query = [("a", "query"), ("b", "{{c}}")]
    assert {"a": "body", "b": "{{c}}"} == read_apply(body, "p", query).variables
    assert {} == read_apply(b"", "p", []).variables
    with pytest.raises(RequestError, match="stands twice"):
        read_apply(body, "p", [("b", "1"), ("b", "2")])
