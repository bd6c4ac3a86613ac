"""C-10: ``<think>`` text is left alone, unless its provider is configured to part it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.exchange import NOW, deltas_of, stream
from tests.core.wire.peers import NAMES, ask, fake_of, target_of
from woollama.core.canonical import (
    Delta,
    Finish,
    ReasoningDelta,
    Start,
    TextDelta,
    ToolCallDelta,
)
from woollama.core.errors import TruncatedReply
from woollama.core.testing.fake import say
from woollama.core.wire.chat import COMPATIBLE
from woollama.core.wire.think_tags import ThinkTagDecoder, ThinkTags

START, STOP = Start("r", "m", 1), Finish("stop")


def apart(*texts: str) -> tuple[str, str]:
    """The thinking and the text."""
    tags = ThinkTags()
    found = [*tags.feed(map(TextDelta, texts)), *tags.feed([STOP])]
    assert STOP == found.pop()
    thinking = "".join(d.text for d in found if isinstance(d, ReasoningDelta))
    return thinking, "".join(d.text for d in found if isinstance(d, TextDelta))


def test_c_10_without_the_setting_tags_are_text() -> None:
    chunk = {"choices": [{"delta": {"content": "<think>a</think>b"}, "finish_reason": "stop"}]}
    assert TextDelta("<think>a</think>b") in deltas_of(COMPATIBLE, stream(chunk))


@pytest.mark.parametrize(
    ("text", "thinking", "said"),
    [
        ("plain", "", "plain"),
        ("<think>a</think>b", "a", "b"),
        ("<think>\na\n</think>\n\nb\n", "a\n", "b\n"),
        ("x<think>a</think>y<think>b</think>z", "ab", "xyz"),
        ("<think>a", "a", ""),
        ("<think></think>b", "", "b"),
        ("<think><think>a</think>b", "<think>a", "b"),
        ("a</think>b", "", "a</think>b"),
        ("a < b <thin", "", "a < b <thin"),
        ("<think>a</thi", "a</thi", ""),
        ("<think>", "", ""),
        ("", "", ""),
        ("<THINK>a</THINK>", "", "<THINK>a</THINK>"),
    ],
)
def test_c_10_text_between_tags_is_thinking(text: str, thinking: str, said: str) -> None:
    assert (thinking, said) == apart(text)
    assert (thinking, said) == apart(*text)


def test_c_10_other_deltas_pass_and_the_finish_stays_last() -> None:
    call = ToolCallDelta(0, "c", "f")
    tags = ThinkTags()
    found = tags.feed([START, TextDelta("a<"), call, TextDelta("b<"), STOP])
    assert (START, TextDelta("a"), call, TextDelta("<b"), TextDelta("<"), STOP) == found


pieces = st.sampled_from(["<think>", "</think>", "<", "th", "ink>", "</", "a", " ", "\n", "b>"])
texts = st.one_of(st.lists(pieces, max_size=12).map("".join), st.text(max_size=20))


@given(texts, st.lists(st.integers(0, 100), max_size=6))
def test_c_10_any_cut_gives_the_same(text: str, places: list[int]) -> None:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    assert apart(text) == apart(*(text[a:b] for a, b in pairwise(edges)))


@given(texts)
def test_c_10_nothing_is_lost_but_the_tags_and_the_space_behind_them(text: str) -> None:
    thinking, said = apart(text)
    kept = "".join((thinking + said).split())
    assert sorted(kept) == sorted("".join(_without_tags(text).split()))


def _without_tags(text: str) -> str:
    kept, rest, tag = "", text, "<think>"
    while tag in rest:
        before, _, rest = rest.partition(tag)
        kept += before
        tag = "</think>" if tag == "<think>" else "<think>"
    return kept + rest


@given(st.text(alphabet=st.characters(exclude_characters="<"), max_size=20))
def test_c_10_text_without_tags_is_not_held_back(text: str) -> None:
    expected: tuple[Delta, ...] = (TextDelta(text),) if text else ()
    assert expected == ThinkTags().feed([TextDelta(text)])


def test_c_10_a_decoder_is_wrapped_for_a_provider_that_is_configured_so() -> None:
    decoder = ThinkTagDecoder(COMPATIBLE.codec.decoder(new_id=lambda: "1", now=lambda: NOW))
    said = {"content": "<think>a</think>b"}
    chunk = {"id": "r", "model": "m", "created": 1, "choices": [{"delta": said}]}
    assert (START, ReasoningDelta("a"), TextDelta("b")) == decoder.feed(stream(chunk))
    assert not decoder.done
    with pytest.raises(TruncatedReply):
        decoder.finish()
    assert () == decoder.feed(stream("[DONE]"))
    assert decoder.done
    assert (Finish("stop"),) == decoder.finish()


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("think_tags", [False, True])
async def test_c_10_a_turn_parts_thinking_when_its_provider_says_so(
    name: str, think_tags: bool
) -> None:
    text = "<think>a</think>b"
    target = target_of(name, think_tags=think_tags)
    message = (await ask(fake_of(name, [say(text)]), target)).message
    expected = ("a", "b") if think_tags else (None, text)
    assert expected == (message.reasoning, message.content)
