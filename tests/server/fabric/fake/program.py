"""A fake of fabric's program: ``--serve``, and one run with an attachment.

It checks its arguments as fabric does, and lives in ``$HOME/.config/fabric`` as fabric does: a
missing ``.env`` there is an error, ``patterns/<name>/system.md`` are its patterns. Beside them it
writes down what it was called with, and reads ``fake.json`` for how to behave:

- ``names``, ``hang``: see ``FakeFabric.control``;
- ``start``: ``slow`` waits for a file ``go`` before it listens, ``fail`` ends with an error.
"""

import getopt
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn

from tests.server.fabric.fake.app import FakeFabric
from tests.server.fabric.fake.serving import settings

SHORT = "p:a:m:V:v:g:o:t:T:P:F:e:sr"
LONG = (
    *("pattern=", "attachment=", "model=", "vendor=", "variable=", "language=", "output="),
    *("temperature=", "topp=", "presencepenalty=", "frequencypenalty=", "seed=", "thinking="),
    *("stream", "raw", "dry-run", "serve", "address=", "api-key="),
)
MODELS = ["qwen3", "llava", "echo", "fail", "oldfail", "silent", "noisy", "hang", "hold", "wait"]


def home() -> Path:
    return Path(os.environ["HOME"]) / ".config" / "fabric"


def control() -> dict[str, Any]:
    path = home() / "fake.json"
    return json.loads(path.read_text()) if path.exists() else {}


def note(file: str, entry: Mapping[str, Any]) -> None:
    with (home() / file).open("a") as out:
        out.write(json.dumps(entry) + "\n")


def fail(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 1


def main(argv: list[str]) -> int:
    if not (home() / ".env").exists():
        return fail("no configuration found, please run fabric --setup")
    try:
        pairs, words = getopt.gnu_getopt(argv, SHORT, LONG)
    except getopt.GetoptError as error:
        return fail(f"unknown flag: {error}")
    flags = {name.lstrip("-"): value for name, value in pairs}
    seen = {"argv": argv, "env": sorted(os.environ), "cwd": str(Path.cwd()), "pid": os.getpid()}
    seen["files"] = sorted(path.name for path in Path().iterdir())
    if "serve" in flags:
        note("starts.jsonl", seen)
        return serve(flags)
    return run(flags, words, seen)


def serve(flags: Mapping[str, str]) -> int:
    behaviour = control()
    if behaviour.get("start") == "fail":
        return fail("listen tcp: address already in use")
    if behaviour.get("start") == "slow":
        while not (home() / "go").exists():
            time.sleep(0.01)
    patterns = {path.parent.name: path.read_text() for path in home().glob("patterns/*/system.md")}
    key = flags.get("api-key") or None
    fake = FakeFabric(
        key=key, patterns=patterns, models={"Ollama": MODELS, "OpenAI": []}, control=control
    )
    host, _, port = flags.get("address", ":8080").rpartition(":")
    # With its protocol named, asyncio turns Nagle's delay off.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, int(port)))
        except OSError as error:
            return fail(f"listen tcp {host}:{port}: {error.strerror}")
        sys.stdout.write("[GIN-debug] Listening and serving HTTP\n")
        sys.stdout.flush()
        uvicorn.Server(settings(fake.app)).run([listener])
    return 0


def run(flags: Mapping[str, str], words: list[str], seen: dict[str, Any]) -> int:
    def flag(short: str, long: str) -> str:
        return flags.get(long) or flags.get(short) or ""

    given = "".join(words) + sys.stdin.read()
    attachment, output = flag("a", "attachment"), flag("o", "output")
    seen["stdin"] = given
    if attachment and "://" not in attachment:
        path = Path(attachment)
        if not path.is_file():
            return fail(f"could not load attachment: open {attachment}: no such file or directory")
        seen["attachment"] = path.read_bytes().hex()
        seen["mode"] = oct(path.parent.stat().st_mode & 0o777)
    note("calls.jsonl", seen)
    if flag("p", "pattern") and attachment:
        return fail("with --pattern the text would not be put into it")
    if flag("g", "language") != "en":
        return fail("a configured language would add its paragraph")
    if output and Path(output).exists():
        return fail(f"file {output} already exists")
    return answer(flag("m", "model"), given.strip(), attachment, output)


def answer(model: str, prompt: str, attachment: str, output: str) -> int:
    shown = attachment if "://" in attachment else Path(attachment).suffix
    text = f"{prompt}|{shown}"
    match model:
        case "fail":
            return fail("Error: upstream exploded")
        case "oldfail":
            sys.stdout.write("Error: on stdout\n")
            return 1
        case "silent":
            text = ""
        case "noisy":
            sys.stdout.write('Ollama Get "http://127.0.0.1:1/api": connection refused\n')
        case "hang":
            # A grandchild that would outlive its parent.
            left = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
            sys.stderr.write("still loading the model\n")
            sys.stderr.flush()
            (home() / "hanging.json").write_text(json.dumps([os.getpid(), left.pid]))
            time.sleep(600)
        case "llava" | "echo" | "qwen3":
            pass
        case _:
            return fail(f"could not find vendor for model {model}")
    sys.stdout.write(text + "\n")
    Path(output).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
