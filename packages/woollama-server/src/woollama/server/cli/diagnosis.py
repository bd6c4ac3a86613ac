"""What one answer or refusal says about the configuration, and what to change when it was no."""

import os
from collections.abc import Iterator

import msgspec

from woollama.core.canonical import Reply, Value, text_of
from woollama.core.errors import (
    ConfigError,
    InferenceError,
    ProviderError,
    ReplyError,
    RequestError,
    TransportError,
)
from woollama.core.providers import Provider, Target
from woollama.core.providers.keys import name_of_place
from woollama.core.wire import DIALECTS, Dialect

__all__ = ["Finding", "advice", "rows"]

# Characters of what somebody else wrote: all of it has to fit on one screen.
_SHOWN = 240
_SHOWN_OF_ANSWER = 140
_NO_SUCH_PATH = frozenset({404, 405, 501})
_CAP_FIELDS = frozenset({"max_tokens", "max_completion_tokens"})


class Finding(Value, frozen=True, kw_only=True):
    """What one request showed. ``reply`` or ``error`` is set."""

    target: Target
    seconds: float
    reply: Reply | None = None
    error: InferenceError | None = None


def rows(finding: Finding) -> Iterator[tuple[str, str]]:
    """What was asked, how, and what came back: names and values, the advice last."""
    target, provider = finding.target, finding.target.provider
    yield "model", target.name
    yield "spoken", f"kind {provider.kind}, dialect {target.dialect.name}"
    yield "address", provider.base_url
    yield "key", _key(target)
    yield "effort", target.declared.effort or "none is declared, none is sent"
    yield "sent", "a system prompt, a question, one tool"
    if finding.reply is not None:
        yield from _answer(finding.reply)
    if finding.error is not None:
        yield "refused", _refusal(finding.error)
    yield "took", f"{finding.seconds:.1f} s"
    yield "verdict", advice(finding)


def _key(target: Target) -> str:
    credential = target.provider.credential
    if credential is None:
        return "none is configured, none is sent"
    place = name_of_place(target.dialect.key_place)
    state = "set" if os.environ.get(credential.env, "").strip() else "NOT SET"
    return f"{credential.env} ({state}), sent as {place}"


def _answer(reply: Reply) -> Iterator[tuple[str, str]]:
    match reply.message.tool_calls:
        case (first, *others):
            more = f" and {len(others)} more" if others else ""
            said = _short(f"{first.name}({first.arguments})", _SHOWN_OF_ANSWER)
            yield "called", f"{said}{more}"
        case _:
            pass
    text = text_of(reply.message.content) or reply.message.refusal or ""
    if text.strip():
        yield "said", _short(text, _SHOWN_OF_ANSWER)
    if reply.message.reasoning:
        yield "thought", f"{len(reply.message.reasoning)} characters"
    native = reply.native_finish_reason
    yield (
        "ended",
        f"{reply.finish_reason} ({_short(native, 40)})" if native else reply.finish_reason,
    )
    if reply.usage is not None:
        usage = msgspec.structs.asdict(reply.usage)
        yield "usage", ", ".join(f"{name} {count}" for name, count in usage.items() if count)


def _refusal(error: InferenceError) -> str:
    status = error.peer_status or error.status
    said = _short(error.message)
    if isinstance(error, ReplyError) and isinstance(error.payload, str):
        said = f"{said} It begins: {_short(error.payload)}"
    return f"{said} ({error.kind}, {status})"


def _short(text: str, limit: int = _SHOWN) -> str:
    """One line of it; what would move the cursor of a terminal is not shown as it is."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if len(line) <= limit else f"{line[:limit]} …"


def advice(finding: Finding) -> str:
    """One or two sentences: it works, or what to change."""
    if finding.error is not None:
        return _cure(finding.target, finding.error)
    if finding.reply is None:
        return "Nothing came back."
    if finding.reply.message.tool_calls:
        return "It works: the system prompt and the tool were taken, and the tool was called."
    if finding.reply.finish_reason == "length":
        return "It answers, but was cut by its output cap before it called the tool."
    return "It answers. It did not call the tool, which small models often do not."


def _cure(target: Target, error: InferenceError) -> str:
    match error:
        case ReplyError():
            # Its hint, if any, says how it came and not what to do.
            return f"The answer is not in this dialect: {_ways(target)}"
        case _ if error.hint:
            return error.hint
        case ConfigError():
            return "Mend the configuration as it says."
        case TransportError(kind="timeout"):
            return "The server is there and slow: try again, or raise [timeouts] in woollama.toml."
        case TransportError():
            return (
                f"Is the server running, and is base_url right? It is {target.provider.base_url!r}."
            )
        case ProviderError():
            return _refused(target, error)
        case RequestError() if error.param:
            return f"Take {error.param!r} out of the configuration of this provider or model."
        case _:
            return "Its own words say why."


def _refused(target: Target, error: ProviderError) -> str:
    if error.kind == "redirect":
        return "If the key may go there, set base_url to the place that answers itself."
    if error.kind in {"authentication", "permission"}:
        return _key_refused(target)
    if error.peer_status in _NO_SUCH_PATH and not _names_model(target, error):
        return f"Nothing answers at this path: {_ways(target)}"
    if error.kind == "not_found":
        return "The server does not have this model: `woollama models` lists what it offers."
    if error.param in _CAP_FIELDS:
        return 'The output cap has another name there: set output_field = "max_completion_tokens".'
    if error.retryable:
        return "The configuration may be right: the server is busy or broken. Try again later."
    return "The server's own words say why."


def _key_refused(target: Target) -> str:
    credential = target.provider.credential
    place = name_of_place(target.dialect.key_place)
    if credential is None:
        return f"The server wants a key: name its variable in api_key_env. It is sent as {place!r}."
    return (
        f"The key was refused: is it the right one in {credential.env}? It is sent as {place!r}, "
        f"the place of the dialect {target.dialect.name!r}; a server that reads it elsewhere is "
        f"of another kind, or wants it in `headers`."
    )


def _names_model(target: Target, error: InferenceError) -> bool:
    return target.model in error.message or "model" in (error.code or "")


def _ways(target: Target) -> str:
    """Where else it may be, and how else it may be spoken to: what has another path."""
    own_path = _chat_url(target, target.dialect)
    settings: dict[str, str] = {}
    # The first of those with one path is named: `compatible` before what is like it.
    for dialect in sorted(DIALECTS.values(), key=lambda each: each.name != "compatible"):
        path = _chat_url(target, dialect)
        if path != own_path:
            settings.setdefault(path, _setting(target, dialect))
    *some, last = sorted(set(settings.values()))
    named = f"{', '.join(some)} or {last}" if some else last
    return f"does base_url end where the API begins (often /v1)? If so, try {named}."


def _chat_url(target: Target, dialect: Dialect) -> str:
    name = dialect.name if dialect.family == "openai" else ""
    return Provider("", target.provider.base_url, kind=dialect.family, dialect=name).chat_url()


def _setting(target: Target, dialect: Dialect) -> str:
    if dialect.family == target.provider.kind:
        return f'dialect = "{dialect.name}"'
    return f'provider = "{dialect.family}"'
