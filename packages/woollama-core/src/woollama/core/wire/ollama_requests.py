"""What a client of ``/api/chat`` sent, to canonical: Ollama's shapes first become OpenAI's."""

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Any, cast

from woollama.core.canonical import ChatRequest, request_from_openai
from woollama.core.errors import RequestError
from woollama.core.wire.data_urls import data_url

__all__ = ["OPTIONS_BY_PARAM", "request_from_ollama"]

OPTIONS_BY_PARAM: Mapping[str, str] = MappingProxyType(
    {
        "temperature": "temperature",
        "top_p": "top_p",
        "seed": "seed",
        "stop": "stop",
        "max_tokens": "num_predict",
        "presence_penalty": "presence_penalty",
        "frequency_penalty": "frequency_penalty",
    }
)
"""The parameters that stand under ``options`` on this wire, and their names there (OL-2)."""

_OWN = frozenset({"model", "messages", "stream", "format", "options", "think"})

_MEDIA_TYPES = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


def request_from_ollama(body: Mapping[str, Any]) -> ChatRequest:
    """A body of ``POST /api/chat``, decoded from JSON, to canonical.

    Options that OpenAI has too become parameters, the others stay ``options``. Calls without an id
    get one, and results are tied to them by the name of their tool (OL-5, OL-9). ``truncate``,
    ``shift``, and ``think: true``, which names no effort, are kept in ``extra``.

    Raises:
        RequestError: a field has the wrong type; ``param`` names it.
    """
    others = {key: value for key, value in body.items() if key not in _OWN}
    stream = body.get("stream")
    return request_from_openai(
        {
            **others,
            "model": body.get("model"),
            "messages": _messages(body.get("messages")),
            # Absent means true (OL-1).
            "stream": True if stream is None else stream,
            **_options(body.get("options")),
            **_format(body.get("format")),
            **_think(body.get("think")),
        }
    )


def _options(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    given = {key: item for key, item in _object(value, "options").items() if item is not None}
    params: dict[str, Any] = {}
    for param, name in OPTIONS_BY_PARAM.items():
        item = given.get(name)
        # A cap below 1 is none, in two ways that only this server tells apart.
        endless = param == "max_tokens" and isinstance(item, int) and item < 1
        if item is not None and not endless:
            params[param] = given.pop(name)
    return {**params, "options": given} if given else params


def _format(value: object) -> dict[str, Any]:
    if value is None or value == "":
        return {}
    if value == "json":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": "format", "schema": _object(value, "format")}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _think(value: object) -> dict[str, Any]:
    match value:
        case None:
            return {}
        case True:
            return {"think": True}
        case False:
            return {"reasoning_effort": "none"}
        case str():
            return {"reasoning_effort": value}
        case _:
            raise _wrong("think", "true, false or an effort")


def _messages(value: object) -> list[dict[str, Any]]:
    messages = [_message(item, f"messages[{i}]") for i, item in enumerate(_list(value, "messages"))]
    _tie(messages)
    return messages


def _message(value: object, where: str) -> dict[str, Any]:
    message = dict(_object(value, where))
    # The server lower-cases it too.
    role = (_pop_text(message, "role", where) or "").lower()
    content = _content(message, where)
    match role:
        case "assistant":
            calls = _list(message.pop("tool_calls", None), f"{where}.tool_calls")
            said = {
                "content": content or None,
                "reasoning": _pop_text(message, "thinking", where),
                "tool_calls": [
                    _call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(calls)
                ],
            }
        case "tool":
            said = {
                "content": content,
                "name": _pop_text(message, "tool_name", where) or message.get("name"),
                "tool_call_id": _pop_text(message, "tool_call_id", where),
            }
        case _:
            said = {"content": content}
    return {**message, "role": role, **said}


def _content(message: dict[str, Any], where: str) -> str | list[dict[str, Any]]:
    text = _pop_text(message, "content", where) or ""
    images = _list(message.pop("images", None), f"{where}.images")
    parts = [_part(image, f"{where}.images[{i}]") for i, image in enumerate(images)]
    if parts and text:
        parts.insert(0, {"type": "text", "text": text})
    return parts or text


def _call(value: object, where: str) -> dict[str, Any]:
    call = dict(_object(value, where))
    function = dict(_object(call.get("function"), f"{where}.function"))
    arguments = function.get("arguments")
    if arguments is not None:
        arguments = _object(arguments, f"{where}.function.arguments")
    name = _pop_text(function, "name", f"{where}.function")
    return {
        "id": _pop_text(call, "id", where),
        "function": {"name": name, "arguments": arguments},
    }


def _part(image: object, where: str) -> dict[str, Any]:
    if not isinstance(image, str):
        raise _wrong(where, "base64 text")
    try:
        head = b64decode(image[:16], validate=True)
    except ValueError as error:
        raise _wrong(where, "base64 text") from error
    sound = _sound(head)
    if sound is not None:
        return {"type": "input_audio", "input_audio": {"data": image, "format": sound}}
    known = (media_type for sign, media_type in _MEDIA_TYPES if head.startswith(sign))
    url = data_url(next(known, "application/octet-stream"), image)
    return {"type": "image_url", "image_url": {"url": url}}


def _sound(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "wav"
    return "mp3" if head[:3] == b"ID3" or head[:2] in {b"\xff\xfb", b"\xff\xf3"} else None


def _tie(messages: Sequence[dict[str, Any]]) -> None:
    """Gives an id to calls without one, and to results the id of the call they belong to."""
    results = [message for message in messages if message["role"] == "tool"]
    calls = [call for message in messages for call in _calls_of(message)]
    taken = {said["id"] for said in calls} | {said["tool_call_id"] for said in results}
    fresh = (name for name in map("call_{}".format, count(1)) if name not in taken)
    unanswered: list[dict[str, Any]] = []
    for message in messages:
        for call in _calls_of(message):
            call["id"] = call["id"] or next(fresh)
            unanswered.append(call)
        if message["role"] == "tool":
            _answer(message, unanswered, fresh)


def _calls_of(message: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    return message["tool_calls"] if message["role"] == "assistant" else ()


def _answer(
    message: dict[str, Any], unanswered: list[dict[str, Any]], fresh: Iterator[str]
) -> None:
    identity, name = message["tool_call_id"], message.pop("name")
    for call in unanswered:
        called = call["function"]["name"]
        if call["id"] == identity if identity else name in (None, called):
            unanswered.remove(call)
            message["tool_call_id"] = call["id"]
            # What the call says need not be said again.
            name = None if name == called else name
            break
    else:
        message["tool_call_id"] = identity or next(fresh)
    if name is not None:
        message["name"] = name


def _pop_text(raw: dict[str, Any], key: str, where: str) -> str | None:
    value = raw.pop(key, None)
    if value is None or isinstance(value, str):
        return value
    raise _wrong(f"{where}.{key}", "a string")


def _list(value: object, where: str) -> Sequence[object]:
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return cast("Sequence[object]", value)
    raise _wrong(where, "a list")


def _object(value: object, where: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise _wrong(where, "an object")


def _wrong(param: str, expected: str) -> RequestError:
    return RequestError(f"{param} must be {expected}.", param=param)
