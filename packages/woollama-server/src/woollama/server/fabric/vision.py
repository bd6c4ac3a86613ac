"""Images: fabric's server takes none, its program does, once for each call.

The prompt is filled in before, and goes in whole on stdin, without ``--pattern``: beside an image
fabric does not put the text into the pattern, and for some models loses it. The answer is read from
a file, because vendors that cannot be reached are complained of on stdout.
"""

import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream, Process

from woollama.core.canonical import Value
from woollama.core.errors import CannotEncode, ProviderError, TransportError
from woollama.core.scopes import open_tasks
from woollama.server.fabric.environment import find_program
from woollama.server.fabric.images import InlineImage, RemoteImage
from woollama.server.fabric.wire import ChatSettings
from woollama.server.process import end_process, hand_over, how_it_ended, kill_process

__all__ = ["Program", "check_settings", "run_program"]

_STOP_TIMEOUT_S = 1.0
_PIPES_GRACE_S = 0.5
_LOG_LIMIT_BYTES = 8192
_TOLD_CHARACTERS = 500


class Program(Value, frozen=True, kw_only=True):
    """How fabric's program is run.

    Attributes:
        command: its name or path; ``~`` is the home directory.
        env: its whole environment.
        timeout_s: how long one run may take.
    """

    command: str
    env: Mapping[str, str]
    timeout_s: float

    def __repr__(self) -> str:
        """Without the environment."""
        return f"Program({self.command!r})"


def check_settings(settings: ChatSettings) -> None:
    """Refuses what cannot go with an image.

    Raises:
        CannotEncode: a setting that fabric would put round the text, and lose the text by it.
    """
    language = settings.language if settings.language not in {None, "", "en"} else None
    given = {
        "context": settings.context,
        "strategy": settings.strategy,
        "language": language,
        "search": settings.search or None,
        "num_ctx": settings.context_length,
    }
    for name, value in given.items():
        if value is not None:
            raise CannotEncode(
                f"fabric cannot take {name!r} together with an image.",
                param=name,
                hint="Leave one of the two out.",
            )


async def run_program(
    program: Program,
    prompt: str,
    image: InlineImage | RemoteImage,
    *,
    vendor: str,
    model: str,
    settings: ChatSettings,
) -> str:
    """The answer to a prompt and an image. However it ends, no process and no file is left.

    Args:
        program: what to run.
        prompt: the whole text.
        image: one.
        vendor: fabric's name of it, ``""`` for the first that has the model.
        model: the vendor's name of it.
        settings: that passed ``check_settings``.

    Raises:
        ProviderError: it failed (502); its stderr is in the message and the payload.
        TransportError: it took too long (504), or does not run (502).
    """
    async with _open_folder() as folder:
        attachment = await _attach(image, folder)
        answer = folder / "answer.txt"
        work = folder / "work"
        await anyio.Path(work).mkdir()
        # --flag=value: what begins with a dash is a value all the same.
        argv = [
            await _find(program),
            f"--attachment={attachment}",
            f"--model={model}",
            *([f"--vendor={vendor}"] if vendor else []),
            "--language=en",
            f"--output={answer}",
            *_flags(settings),
        ]
        await _run(program, argv, prompt, work)
        return await _read(answer)


@asynccontextmanager
async def _open_folder() -> AsyncGenerator[Path]:
    """A folder of ours alone; gone afterwards, also when we are cancelled."""
    folder = await anyio.to_thread.run_sync(
        lambda: Path(tempfile.mkdtemp(prefix="woollama-fabric-"))
    )
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, folder, True)


async def _attach(image: InlineImage | RemoteImage, folder: Path) -> str:
    if isinstance(image, RemoteImage):
        return image.url
    path = folder / f"image{image.suffix}"
    await anyio.Path(path).write_bytes(image.data)
    return str(path)


async def _find(program: Program) -> str:
    found = await anyio.to_thread.run_sync(find_program, program.command, program.env)
    if found is None:
        raise TransportError(
            f"Images go through fabric's program, and {program.command!r} is not there.",
            kind="connect",
            retryable=False,
            hint='Install fabric on this machine, or set "command" of fabric in mcp.json.',
        )
    return found


def _flags(settings: ChatSettings) -> list[str]:
    given = {
        "temperature": settings.temperature,
        "topp": settings.top_p,
        "frequencypenalty": settings.frequency_penalty,
        "presencepenalty": settings.presence_penalty,
        "thinking": settings.thinking,
    }
    return [
        f"--{flag}={value:g}" if isinstance(value, float) else f"--{flag}={value}"
        for flag, value in given.items()
        if value is not None
    ]


async def _run(program: Program, argv: list[str], prompt: str, work: Path) -> None:
    try:
        process = await anyio.open_process(argv, cwd=work, env=program.env, start_new_session=True)
    except OSError as error:
        raise TransportError(f"fabric's program does not run: {error}.", kind="connect") from error
    stderr, stdout = bytearray(), bytearray()
    try:
        with anyio.fail_after(program.timeout_s):
            await _follow(process, prompt, stderr, stdout)
    except TimeoutError as error:
        raise TransportError(
            f"fabric's program gave no answer within {program.timeout_s:g} s and was ended"
            f"{_told(stderr)}",
            kind="timeout",
            status=504,
            payload=_text(stderr) or None,
        ) from error
    finally:
        # It has nothing to put in order.
        kill_process(process)
        await end_process(process, stop_timeout_s=_STOP_TIMEOUT_S)
    if process.returncode != 0:
        # Before v1.4.341 errors were on stdout.
        said = stderr or stdout
        raise ProviderError(
            f"fabric's program failed: {how_it_ended(process.returncode)}{_told(said)}",
            payload=_text(said) or None,
        )


async def _follow(process: Process, prompt: str, stderr: bytearray, stdout: bytearray) -> None:
    assert process.stderr is not None
    assert process.stdout is not None
    async with open_tasks() as tasks:
        tasks.start_soon(_keep, process.stderr, stderr)
        tasks.start_soon(_keep, process.stdout, stdout)
        await hand_over(prompt.encode(), process)
        if process.stdin is not None:
            # It reads to the end before it begins.
            await process.stdin.aclose()
        await process.wait()
        tasks.cancel_scope.deadline = anyio.current_time() + _PIPES_GRACE_S


async def _keep(stream: ByteReceiveStream, tail: bytearray) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            tail += await stream.receive()
            del tail[:-_LOG_LIMIT_BYTES]


async def _read(answer: Path) -> str:
    try:
        text = await anyio.Path(answer).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderError("fabric's program ended well and wrote no answer.") from error
    text = text.removesuffix("\n")
    if not text.strip():
        raise ProviderError("fabric's program ended well with an empty answer.")
    return text


def _text(said: bytes | bytearray) -> str:
    return said.decode("utf-8", "replace").strip()


def _told(said: bytes | bytearray) -> str:
    text = _text(said)
    return f": {text[-_TOLD_CHARACTERS:]}" if text else "."
