"""Arguments of tool calls: text inside, an object on the wires that want one (wire rule C-8)."""

import msgspec

__all__ = ["arguments_object", "arguments_text"]

_NONE = msgspec.Raw(b"{}")


def arguments_object(text: str) -> msgspec.Raw:
    """The JSON object that a model wrote, byte for byte; ``{}`` for anything else (OL-4, N-9).

    Numbers keep every digit, since nothing is parsed and written again.
    """
    try:
        data = text.encode()
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _NONE
    return msgspec.Raw(data) if isinstance(value, dict) else _NONE


def arguments_text(value: object) -> str:
    """Arguments as a server wrote them, to text: text as it is, null as none, others as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
