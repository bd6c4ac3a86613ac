"""How the child process of one model is started, and what is said when that fails."""

import os
import secrets
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import anyio
import msgspec

from woollama.core.canonical.value import Value
from woollama.core.errors import ConfigError, NotBuilt, TransportError, WoollamaError
from woollama.server.local.models import LocalModel
from woollama.server.process import Child, Launch, NotReady
from woollama.server.supervision import Failure

__all__ = ["Endpoint", "check_engine", "check_model", "explain_failure", "launch_model"]

_CHILD = Path(__file__).with_name("child.py")
_MAGIC = b"GGUF"
# The child needs to find its libraries and its graphics card, and no provider's key.
_ENV_NAMES = frozenset(("HOME", "LANG", "LANGUAGE", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR"))
_ENV_PREFIXES = (
    *("COVERAGE_", "DYLD_", "LC_", "LD_", "PYTHON"),
    *("CUDA_", "GGML_", "HIP_", "HSA_", "ROCR_", "VK_"),
)


class Endpoint(Value, frozen=True, kw_only=True):
    """Where a child serves, and its key; a child that is started again has new ones.

    Attributes:
        address: ``http://127.0.0.1:PORT``, no path.
        key: the bearer token; not in the ``repr``.
    """

    address: str
    key: str

    def __repr__(self) -> str:
        """Without the key."""
        return f"Endpoint(address={self.address!r})"


class _Ready(Value, frozen=True, kw_only=True):
    """The child's one line; exactly one of the two is there."""

    address: str | None = None
    error: str | None = None


_ready_decoder = msgspec.json.Decoder(_Ready)


def check_engine(name: str) -> None:
    """Refuse when llama.cpp's package is not installed; ``name`` is the model asked for.

    Raises:
        NotBuilt: with the command that installs it.
    """
    if find_spec("xllamacpp") is None:
        raise NotBuilt(
            f"'local/{name}' needs the embedded engine, which is not installed.",
            hint="Install it: pip install 'woollama-server[local]'",
        )


async def check_model(model: LocalModel) -> LocalModel:
    """The model, its template read, after the faults that are cheap to find.

    Raises:
        NotBuilt: the engine is not installed.
        ConfigError: the file is missing, cannot be read or is no GGUF file.
    """
    check_engine(model.name)
    try:
        async with await anyio.open_file(model.path, "rb") as file:
            magic = await file.read(len(_MAGIC))
    except OSError as error:
        raise _fault(model, f"cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise _fault(model, "is no GGUF file")
    if model.template_path is None:
        return model
    try:
        template = await anyio.Path(model.template_path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _template_fault(model, f"cannot be read: {error}") from error
    return msgspec.structs.replace(model, template=template)


def launch_model(model: LocalModel, *, threads: int | None, parallel: int) -> Launch[Endpoint]:
    """A child for the model, with a key of its own.

    Args:
        model: as ``check_model`` gave it.
        threads: None for one less than there are processors, which leaves one to the daemon.
        parallel: how many requests share the context.
    """
    key = secrets.token_urlsafe(32)
    settings = {
        "path": str(model.path),
        "alias": model.name,
        "context": model.context,
        "temperature": model.temperature,
        "max_tokens": model.max_tokens,
        "template": model.template,
        "threads": threads or max(1, (os.cpu_count() or 1) - 1),
        "parallel": parallel,
        "key": key,
    }

    async def ready(child: Child) -> Endpoint:
        line = await child.first_line()
        try:
            said = _ready_decoder.decode(line)
        except msgspec.DecodeError as error:
            raise NotReady(f"it wrote {line[:80]!r} where its address belongs") from error
        if said.address is None:
            raise NotReady(said.error or "it gave no reason")
        return Endpoint(address=said.address, key=key)

    return Launch(
        # -P: a script's own directory is otherwise searched first, and ours has a models.py.
        argv=(sys.executable, "-P", str(_CHILD)),
        env=_child_env(os.environ),
        ready=ready,
        first_input=msgspec.json.encode(settings) + b"\n",
        watches_stdin=True,
    )


def explain_failure(model: LocalModel, failure: Failure) -> WoollamaError:
    """The error of a start that failed: an operator's when llama.cpp says what is wrong."""
    for line in failure.log.splitlines():
        _, of_file, fault = line.partition("error loading model: ")
        if of_file:
            return _fault(model, f"cannot be loaded: {fault}", log=failure.log)
        _, of_template, fault = line.partition("chat_templates_init: error: ")
        if of_template:
            return _template_fault(model, f"does not parse: {fault}", log=failure.log)
    return TransportError(
        f"'local/{model.name}' could not be started: {failure.reason.rstrip('.')}.",
        kind="overloaded",
        status=503,
        payload=failure.log or None,
        hint=_advice(failure),
    )


def _fault(model: LocalModel, what: str, *, log: str | None = None) -> ConfigError:
    return ConfigError(
        f"'local/{model.name}': the model file {str(model.path)!r} {what}.",
        status=500,
        payload=log,
        hint="Put a whole GGUF file there, or correct `path` in [plugins.local.models] of "
        "woollama.toml.",
    )


def _template_fault(model: LocalModel, what: str, *, log: str | None = None) -> ConfigError:
    place = f" {str(model.template_path)!r}" if model.template_path else ""
    return ConfigError(
        f"'local/{model.name}': the chat template{place} {what}.",
        status=500,
        payload=log,
        hint="Set `template` in [plugins.local.models] of woollama.toml to a Jinja file.",
    )


def _advice(failure: Failure) -> str | None:
    if "not ready within" in failure.reason:
        return "A large model needs a larger `start_timeout_s` in [plugins.local]."
    lines = failure.log.strip().splitlines()
    return f"Its last words: {lines[-1]}" if lines else None


def _child_env(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in env.items()
        if name in _ENV_NAMES or name.startswith(_ENV_PREFIXES)
    }
