"""lackpy 0.15.1, unmodified, on our wheel: its provider and its command line get their answers.

It runs in an environment of its own, on the newest Python at hand.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.fresh_interpreter import run_fresh
from tests.architecture.workshop import build_distributions, run_uv
from tests.core.chat_upstream import completion, says
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.upstream import serve_in_thread

pytestmark = pytest.mark.clients

NEWEST = """
import json, noxfile
print(json.dumps(noxfile.INTERPRETERS[max(noxfile.INTERPRETERS)]))
"""

PROVIDER = """
import asyncio, json, logging, sys

logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
said = []
logging.getLogger("lackpy").addHandler(type("Kept", (logging.Handler,), {
    "emit": lambda self, record: said.append(record.getMessage())})())

from lackpy.infer.providers.woollama import WoollamaProvider

def make(model, **how):
    return WoollamaProvider(model=model, **how)

async def ask(provider, **how):
    return await provider.generate("add one and two", "read_file(path) -> str", **how)
"""


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with our wheel of the core and lackpy."""
    repository = Path(__file__).parents[2]
    folder = tmp_path_factory.mktemp("lackpy")
    wheel = next(
        path
        for path in build_distributions(repository, folder / "dist")
        if path.name.startswith("woollama_core-") and path.suffix == ".whl"
    )
    newest = run_fresh(NEWEST, cwd=repository)
    run_uv("venv", "--quiet", "--no-project", "--python", newest, folder / "venv", cwd=folder)
    made = folder / "venv" / "bin" / "python"
    run_uv("pip", "install", "--quiet", "--python", made, wheel, "lackpy==0.15.1", cwd=folder)
    return made


def run(python: Path, code: str, *arguments: str) -> Any:
    """What a program prints that drives lackpy's provider."""
    return run_fresh(PROVIDER + code, *arguments, python=python)


def test_it_installs_with_our_wheel_and_finds_its_provider(python: Path) -> None:
    code = """
import woollama.core
from importlib.metadata import version
provider = make("openai/m")
print(json.dumps([provider.available(), version("lackpy"), version("woollama-core"),
    woollama.core.__woollama__]))
"""
    available, lackpy, core, marker = run(python, code)
    assert (True, "0.15.1", "router") == (available, lackpy, marker)
    assert core.startswith("0.7.")


def test_an_answer_is_produced(python: Path) -> None:
    code = """
provider = make("openai/m", api_key="k", base_url=sys.argv[1], params={"max_tokens": 9})
print(json.dumps(asyncio.run(ask(provider))))
"""
    with serve_in_thread(says(completion(" 1 + 2 \n"))) as upstream:
        assert "1 + 2" == run(python, code, upstream.url)
        (got,) = [request.json() for request in upstream.requests]
    assert ["system", "user"] == [message["role"] for message in got.pop("messages")]
    # The built-in `openai` has the newer name of the output cap (RU-4).
    assert {"model": "m", "temperature": 0.2, "max_completion_tokens": 9} == got


def test_a_correction_is_asked_with_what_was_wrong(python: Path) -> None:
    code = """
provider = make("openai/m", api_key="k", base_url=sys.argv[1])
first = asyncio.run(ask(provider))
print(json.dumps([first, asyncio.run(ask(provider, error_feedback=["no imports"]))]))
"""
    with serve_in_thread(says(completion("1 + 2"))) as upstream:
        assert ["1 + 2", "1 + 2"] == run(python, code, upstream.url)
        got = upstream.requests[1].json()
    assert 0.6 == got["temperature"]
    roles = ["system", "user", "assistant", "user"]
    assert roles == [message["role"] for message in got["messages"]]


def test_the_context_size_of_ollama_goes_native(python: Path) -> None:
    code = """
provider = make("ollama/q:1", base_url=sys.argv[1], options={"num_ctx": 4096})
print(json.dumps(asyncio.run(ask(provider))))
"""
    fake = OllamaFake([say("1 + 2")])
    with serve_in_thread(fake) as upstream:
        assert "1 + 2" == run(python, code, upstream.url)
    (got,) = fake.requests
    assert ("/api/chat", {"num_ctx": 4096, "temperature": 0.2}) == (
        got.path,
        got.json()["options"],
    )


@pytest.mark.parametrize("content", [None, "", "  \n"])
def test_an_empty_answer_is_none_and_no_failure(python: Path, content: str | None) -> None:
    code = """
provider = make("openai/m", api_key="k", base_url=sys.argv[1])
print(json.dumps([asyncio.run(ask(provider)), said]))
"""
    with serve_in_thread(says(completion(content))) as upstream:
        answer, said = run(python, code, upstream.url)
    assert answer in (None, "")
    assert [] == said


@pytest.mark.parametrize(
    ("model", "how", "words"),
    [
        ("nope/m", "", "RequestError: No provider for the model 'nope/m': known providers are"),
        ("groq/m", "", "set the environment variable GROQ_API_KEY"),
        (
            "openai/m",
            "api_key='k', base_url='http://127.0.0.1:1/v1'",
            "TransportError: Provider 'openai': http://127.0.0.1:1 cannot be reached",
        ),
    ],
)
def test_what_is_wrong_stands_in_its_log(python: Path, model: str, how: str, words: str) -> None:
    code = f"""
import os
os.environ.pop("GROQ_API_KEY", None)
from woollama.core import InferenceError
from woollama.core import complete
try:
    asyncio.run(complete({model!r}, [], {how}))
except InferenceError:
    pass
print(json.dumps([asyncio.run(ask(make({model!r}, {how}))), said]))
"""
    answer, (said,) = run(python, code)
    assert None is answer
    assert words in said


def test_an_error_of_the_server_stands_in_its_log(python: Path) -> None:
    code = """
provider = make("openai/m", api_key="k", base_url=sys.argv[1])
print(json.dumps([asyncio.run(ask(provider)), said]))
"""
    with serve_in_thread(says({"error": {"message": "out of memory"}}, status=500)) as upstream:
        answer, (said,) = run(python, code, upstream.url)
    assert None is answer
    assert "ProviderError: out of memory" in said


def test_p_5_many_loops_many_threads_and_many_calls_in_one_loop(python: Path) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor

def one(_=None):
    return asyncio.run(ask(make("openai/m", api_key="k", base_url=sys.argv[1])))

async def sixteen():
    provider = make("openai/m", api_key="k", base_url=sys.argv[1])
    return await asyncio.gather(*(ask(provider) for _ in range(16)))

with ThreadPoolExecutor(8) as pool:
    print(json.dumps([one(), one(), *pool.map(one, range(8)), *asyncio.run(sixteen())]))
"""
    with serve_in_thread(says(completion("1 + 2"))) as upstream:
        assert ["1 + 2"] * 26 == run(python, code, upstream.url)


def test_its_command_line_writes_and_runs_a_program(python: Path, tmp_path: Path) -> None:
    bin_folder = python.parent
    subprocess.run([bin_folder / "lackpyctl", "init"], cwd=tmp_path, check=True, timeout=60)
    config = tmp_path / ".lackpy" / "config.toml"
    fake = OllamaFake([say("1 + 2")])
    with serve_in_thread(fake) as upstream:
        text = config.read_text().replace("http://localhost:11434/v1", upstream.url)
        config.write_text(text)
        ran = subprocess.run(
            [bin_folder / "lackpy", "-c", "add 1 and 2", "--profile", "read_file,find_files"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert 0 == ran.returncode, ran.stderr
    shown = json.loads(ran.stdout)
    assert (3, None) == (shown["output"], shown["error"])
    assert "/api/chat" == fake.requests[0].path
    assert "" == ran.stderr, sys.version
