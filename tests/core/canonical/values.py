"""Canonical values at random, for what must hold of all of them."""

import json
from typing import Any, cast

from hypothesis import strategies as st

from woollama.core.canonical import (
    NOTHING,
    AssistantMessage,
    AudioPart,
    FilePart,
    FunctionCall,
    ImagePart,
    Message,
    OtherPart,
    Part,
    Reply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

TEXT = st.text(max_size=12)
WORD = st.text(min_size=1, max_size=12)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
# Names that belong to nobody.
EXTRA = st.dictionaries(st.from_regex(r"x_[a-z]{1,5}", fullmatch=True), JSON, max_size=2).map(
    lambda extra: extra or NOTHING
)


def _other_part(kind: str, rest: dict[str, Any]) -> OtherPart:
    return OtherPart(type=kind, raw={**rest, "type": kind})


PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, text=TEXT, extra=EXTRA),
    st.builds(ImagePart, url=TEXT, detail=st.none() | WORD, extra=EXTRA),
    st.builds(AudioPart, data=TEXT, format=st.sampled_from(["wav", "mp3"]), extra=EXTRA),
    st.builds(
        FilePart,
        filename=st.none() | TEXT,
        file_data=st.none() | TEXT,
        file_id=st.none() | TEXT,
        extra=EXTRA,
    ),
    st.builds(
        _other_part,
        st.from_regex(r"x_[a-z]{1,5}", fullmatch=True),
        st.dictionaries(WORD, JSON, max_size=2),
    ),
)
CONTENT = TEXT | st.lists(PARTS, max_size=3).map(tuple)

CALLS = st.builds(
    ToolCall,
    id=TEXT,
    function=st.builds(FunctionCall, name=WORD, arguments=TEXT),
    extra_content=st.none() | st.dictionaries(WORD, JSON, max_size=2),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        SystemMessage,
        content=CONTENT,
        role=st.sampled_from(cast("list[Any]", ["system", "developer"])),
        extra=EXTRA,
    ),
    st.builds(UserMessage, content=CONTENT, extra=EXTRA),
    st.builds(
        AssistantMessage,
        content=st.none() | CONTENT,
        tool_calls=st.lists(CALLS, max_size=2).map(tuple),
        reasoning=st.none() | WORD,
        refusal=st.none() | WORD,
        reasoning_details=st.lists(JSON, max_size=2).map(tuple),
        extra=EXTRA,
    ),
    st.builds(ToolMessage, tool_call_id=TEXT, content=CONTENT, extra=EXTRA),
)

COUNTS = st.none() | st.integers(0, 10_000)
REPLIES = st.builds(
    Reply,
    id=WORD,
    created=st.integers(0, 2**31),
    model=st.none() | WORD,
    message=st.builds(
        AssistantMessage,
        content=st.none() | WORD,
        tool_calls=st.lists(
            st.builds(
                ToolCall,
                id=WORD,
                function=st.builds(
                    FunctionCall,
                    name=WORD,
                    arguments=st.dictionaries(WORD, JSON, max_size=2).map(json.dumps),
                ),
                extra_content=st.none() | st.dictionaries(WORD, JSON, min_size=1, max_size=2),
            ),
            max_size=3,
        ).map(tuple),
        reasoning=st.none() | WORD,
        refusal=st.none() | WORD,
        reasoning_details=st.lists(JSON, max_size=2).map(tuple),
        opaque=st.dictionaries(
            st.sampled_from(["responses", "anthropic"]),
            st.lists(JSON, min_size=1, max_size=2).map(tuple),
            max_size=2,
        ),
    ),
    finish_reason=st.sampled_from(["stop", "length", "tool_calls", "content_filter", "error"]),
    native_finish_reason=st.none() | WORD,
    usage=st.none() | st.builds(Usage, prompt_tokens=COUNTS, cached_tokens=COUNTS),
)
