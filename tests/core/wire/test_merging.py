"""The merge of system messages that a setting asks for."""

import pytest

from woollama.core.canonical import Message, SystemMessage, TextPart, UserMessage
from woollama.core.wire.merging import merged

HI = UserMessage(content="hi")
ONE = SystemMessage(content="one", role="developer", extra={"name": "n"})
TWO = SystemMessage(content=(TextPart(text="t"), TextPart(text="wo")))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((), ()),
        ((HI,), (HI,)),
        ((ONE, HI), (ONE, HI)),
        ((HI, ONE), (ONE, HI)),
        ((HI, ONE, HI, TWO), (SystemMessage(content="one\n\ntwo"), HI, HI)),
    ],
)
def test_oc_41_system_messages_become_one_in_front(
    messages: tuple[Message, ...], expected: tuple[Message, ...]
) -> None:
    assert expected == merged(messages)
