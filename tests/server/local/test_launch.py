"""How a model's child process is started, and what is said when that fails."""

import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from woollama.core.errors import ConfigError, NotBuilt, TransportError
from woollama.core.scopes import open_tasks
from woollama.server.local.launch import (
    Endpoint,
    check_engine,
    check_model,
    explain_failure,
    launch_model,
)
from woollama.server.local.models import LocalModel
from woollama.server.process import Launch
from woollama.server.supervision import Failure, Limits, Supervisor

MODEL = LocalModel(name="tiny", path=Path("/models/tiny.gguf"), template="{{ messages }}")


def test_no_secret_is_on_the_command_line_or_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-children")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    launch = launch_model(MODEL, threads=None, parallel=1)
    settings = msgspec.json.decode(launch.first_input)
    assert 40 <= len(settings["key"])
    assert not any(settings["key"] in argument for argument in launch.argv)
    assert settings["key"] not in launch.env.values()
    assert settings["key"] not in repr(launch)
    assert "OPENAI_API_KEY" not in launch.env
    assert "0" == launch.env["CUDA_VISIBLE_DEVICES"]
    assert launch.watches_stdin


def test_every_start_has_a_key_of_its_own() -> None:
    first, second = (launch_model(MODEL, threads=1, parallel=1).first_input for _ in range(2))
    assert first != second
    assert msgspec.json.decode(first)["key"] != msgspec.json.decode(second)["key"]


def test_the_key_of_an_endpoint_is_not_shown() -> None:
    endpoint = Endpoint(address="http://127.0.0.1:1", key="secret")
    assert "Endpoint(address='http://127.0.0.1:1')" == repr(endpoint)


def test_one_processor_is_left_to_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    given = {
        threads: msgspec.json.decode(launch_model(MODEL, threads=threads, parallel=1).first_input)[
            "threads"
        ]
        for threads in (None, 3)
    }
    assert {None: 7, 3: 3} == given


async def test_without_the_engine_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(NotBuilt, match=r"pip install 'woollama-server\[local\]'") as caught:
        await check_model(MODEL)
    assert 501 == caught.value.status
    with pytest.raises(NotBuilt, match="'local/tiny'"):
        check_engine("tiny")


async def test_a_missing_file_is_an_error_that_names_it_and_says_what_to_do() -> None:
    with pytest.raises(ConfigError) as caught:
        await check_model(MODEL)
    assert (
        "'local/tiny': the model file '/models/tiny.gguf' cannot be read: No such file or "
        "directory. Put a whole GGUF file there, or correct `path` in [plugins.local.models] of "
        "woollama.toml."
    ) == str(caught.value)
    assert 500 == caught.value.status


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 some archive"])
async def test_a_file_of_another_kind_is_refused_before_a_child_is_started(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is no GGUF file"):
        await check_model(LocalModel(name="x", path=path))


async def test_a_directory_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        await check_model(LocalModel(name="x", path=tmp_path))


async def test_a_template_file_is_read(tmp_path: Path) -> None:
    model = LocalModel(name="x", path=tmp_path / "x.gguf", template_path=tmp_path / "x.jinja")
    model.path.write_bytes(b"GGUF...")
    with pytest.raises(ConfigError, match=r"the chat template '.*x\.jinja' cannot be read"):
        await check_model(model)
    (tmp_path / "x.jinja").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read"):
        await check_model(model)
    (tmp_path / "x.jinja").write_text("{{ bos_token }}")
    assert "{{ bos_token }}" == (await check_model(model)).template


def test_a_fault_that_the_engine_found_in_the_file_names_the_file() -> None:
    log = "0.01 E llama_model_load: error loading model: tensor 'x' is not there\nmore\n"
    error = explain_failure(MODEL, Failure(name="n", reason="it ended", log=log))
    assert isinstance(error, ConfigError)
    assert str(error).startswith(
        "'local/tiny': the model file '/models/tiny.gguf' cannot be loaded: "
        "tensor 'x' is not there."
    )
    assert log == error.payload


@pytest.mark.parametrize(
    ("path", "named"),
    [(None, "the chat template does"), (Path("/x"), "the chat template '/x' does")],
)
def test_a_fault_that_the_engine_found_in_a_template_says_so(path: Path | None, named: str) -> None:
    model = LocalModel(name="tiny", path=Path("/models/tiny.gguf"), template_path=path)
    log = "0.01 E common_chat_templates_init: error: Unexpected token\n"
    error = explain_failure(model, Failure(name="n", reason="it ended", log=log))
    assert isinstance(error, ConfigError)
    assert f"'local/tiny': {named} not parse: Unexpected token." == error.message


def test_any_other_fault_says_how_the_child_ended_and_its_last_words() -> None:
    failure = Failure(name="n", reason="it was killed by SIGKILL", log="one\nno memory\n")
    error = explain_failure(MODEL, failure)
    assert isinstance(error, TransportError)
    assert 503 == error.status
    assert (
        "'local/tiny' could not be started: it was killed by SIGKILL. Its last words: no memory"
        == str(error)
    )


def test_a_start_that_took_too_long_names_the_setting() -> None:
    error = explain_failure(MODEL, Failure(name="n", reason="it was not ready within 2 s"))
    assert "start_timeout_s" in str(error)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print('hello')", "it wrote 'hello' where its address belongs"),
        ("print('{}')", "it gave no reason"),
        ('print(\'{"error": "too big"}\')', "too big"),
        ("pass", "it ended with exit code 0"),
    ],
)
async def test_a_child_that_gives_no_address_is_not_ready(program: str, reason: str) -> None:
    def launch() -> Launch[Endpoint]:
        made = launch_model(MODEL, threads=1, parallel=1)
        return msgspec.structs.replace(made, argv=(sys.executable, "-c", program))

    with anyio.fail_after(10):
        async with open_tasks() as tasks:
            supervisor = Supervisor("it", tasks, launch=launch, limits=Limits())
            with pytest.raises(TransportError, match=f"it did not start: {reason}"):
                await supervisor.start()
