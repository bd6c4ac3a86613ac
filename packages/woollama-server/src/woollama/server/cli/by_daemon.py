"""The same question put to a running daemon: models on ``/v1``, patterns on ``/w1``."""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import click
import msgspec

from woollama.core.canonical import RunEvent
from woollama.core.errors import ProviderError, TransportError
from woollama.core.exchange import open_reply
from woollama.core.providers import Provider, Target
from woollama.core.transport import Timeouts
from woollama.core.transport.default import make_transport
from woollama.core.turn import decoded
from woollama.core.wire import WireRequest
from woollama.server.cli.asking import Question, events_of

__all__ = ["address_of", "open_daemon_answer"]

_NAME = "daemon"
_TOKEN = "WOOLLAMA_TOKEN"


def address_of(url: str) -> str:
    """The address without a path, whatever a person writes: with ``/v1`` or without ``http://``.

    Raises:
        click.UsageError: it is none.
    """
    whole = url.strip()
    if "://" not in whole:
        whole = f"http://{whole}"
    try:
        parts = urlsplit(whole)
        _ = parts.port  # read here, where it may be none
    except ValueError as error:
        raise _no_address(url) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise _no_address(url)
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _no_address(url: str) -> click.UsageError:
    return click.UsageError(f"--url wants an address, http://127.0.0.1:9665, not {url!r}.")


@asynccontextmanager
async def open_daemon_answer(
    base: str, question: Question, *, timeouts: Timeouts
) -> AsyncGenerator[AsyncIterator[RunEvent]]:
    """The events of a daemon's answer; its token comes from ``WOOLLAMA_TOKEN``.

    Args:
        base: from ``address_of``.
        question: what is asked.
        timeouts: how long to wait.

    Raises:
        InferenceError: whatever went wrong, on this side or on the daemon's.
    """
    provider = Provider(_NAME, f"{base}/v1", _TOKEN if os.environ.get(_TOKEN) else None)
    target = Target(provider, question.name)
    wire = target.authorize(_request(base, question))
    transport = make_transport()
    try:
        async with open_reply(target, wire, transport=transport, timeouts=timeouts) as response:
            yield events_of(decoded(target, response))
    except TransportError as error:
        error.message = error.message.removeprefix(f"Provider {_NAME!r}: ")
        if error.kind == "connect":
            error.hint = "Is a woollama running there? `woollama serve` starts one."
        raise
    except ProviderError as error:
        if error.peer_status == 401:
            error.hint = f"Its token is read from {_TOKEN}, which is {_state()}."
        raise
    finally:
        await transport.aclose()


def _state() -> str:
    return "set to another one" if os.environ.get(_TOKEN) else "not set"


def _request(base: str, question: Question) -> WireRequest:
    # Both sides speak one language, so nothing is translated: what the daemon knows, it takes.
    body: dict[str, Any]
    if question.pattern is None:
        url = f"{base}/v1/chat/completions"
        body = {**question.options, "model": question.model, "messages": question.messages}
    else:
        url = f"{base}/w1/patterns/{quote(question.pattern, safe='')}/run"
        body = {
            "input": question.messages,
            "variables": question.variables,
            "options": question.options,
        }
        if question.model is not None:
            body["model"] = question.model
    body["stream"] = question.stream
    return WireRequest(
        method="POST",
        url=url,
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(body),
    )
