"""All system messages as one, in front, for servers that refuse another order (wire rule OC-41)."""

from woollama.core.canonical import Message, SystemMessage, text_of

__all__ = ["merged"]


def merged(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """``messages`` with at most one system message, the first.

    Their texts are joined with a blank line; of several messages only the text is kept.
    """
    system = tuple(message for message in messages if isinstance(message, SystemMessage))
    if len(system) > 1:
        text = "\n\n".join(text_of(message.content) for message in system)
        system = (SystemMessage(content=text),)
    others = (message for message in messages if not isinstance(message, SystemMessage))
    return (*system, *others)
