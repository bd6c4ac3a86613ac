"""The shapes that ``POST /v1/messages`` takes; what is not in them is refused.

The server's own tools, and the blocks that come of them, are not among them.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

__all__ = [
    "Adaptive",
    "AnyChoice",
    "AssistantTurn",
    "Document",
    "Manual",
    "MessagesBody",
    "NamedChoice",
    "OutputConfig",
    "Text",
    "Thinking",
    "ToolResult",
    "ToolUse",
    "UserTurn",
]

Said = Annotated[str, Meta(pattern=r"\S")]
Ratio = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(pattern=r"\A[a-zA-Z0-9_-]{1,128}\Z")]
CallId = Annotated[str, Meta(pattern=r"\A[a-zA-Z0-9_-]+\Z")]
Base64 = Annotated[
    str,
    Meta(
        min_length=1,
        pattern=r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z",
    ),
]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Saying(_Strict, frozen=True):
    """Has content that is blocks, or text that says something (AE-17).

    A pattern would say the second, but msgspec 0.22 writes past the end of its own memory for a
    text with a pattern beside a list.
    """

    def __post_init__(self) -> None:
        """Refuses text of white space alone."""
        for name in ("content", "system"):
            text = getattr(self, name, None)
            if isinstance(text, str) and not text.strip():
                raise ValueError("text must say something")


class CacheControl(_Strict, frozen=True):
    """The mark of a block up to which the prompt is cached."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | UnsetType = UNSET


class _Cached(_Strict, frozen=True):
    cache_control: CacheControl | None = None


class Text(_Cached, frozen=True, kw_only=True, tag="text"):
    """Text that says something (AE-17)."""

    text: Said
    citations: list[dict[str, Any]] | None = None


class InlineImage(_Strict, frozen=True, tag="base64"):
    """An image's bytes (N-10)."""

    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: Base64


class InlineDocument(_Strict, frozen=True, tag="base64"):
    """A document's bytes."""

    media_type: Literal["application/pdf"]
    data: Base64


class PlainText(_Strict, frozen=True, tag="text"):
    """A document that is plain text."""

    media_type: Literal["text/plain"]
    data: str


class Link(_Strict, frozen=True, tag="url"):
    """An image or document that the server fetches."""

    url: Annotated[str, Meta(pattern=r"\Ahttps?://")]


class Upload(_Strict, frozen=True, tag="file"):
    """An image or document that the server has."""

    file_id: Said


class Image(_Cached, frozen=True, kw_only=True, tag="image"):
    """An image."""

    source: InlineImage | Link | Upload
    transformations: dict[str, Any] | None = None


class Composed(_Saying, frozen=True, tag="content"):
    """A document made of blocks."""

    content: str | list[Text | Image]


class Document(_Cached, frozen=True, kw_only=True, tag="document"):
    """A document."""

    source: InlineDocument | PlainText | Link | Upload | Composed
    title: str | None = None
    context: str | None = None
    citations: dict[str, Any] | None = None


class SearchResult(_Cached, frozen=True, kw_only=True, tag="search_result"):
    """Something found that may be cited."""

    content: list[Text]
    source: str
    title: str
    citations: dict[str, Any] | UnsetType = UNSET


class ToolUse(_Cached, frozen=True, kw_only=True, tag="tool_use"):
    """A call of an earlier turn; ``input`` is an object (N-9), the id of few characters (N-7)."""

    id: CallId
    name: Name
    input: dict[str, Any]
    caller: dict[str, Any] | UnsetType = UNSET
    toolset_name: str | None = None


class ToolResult(_Cached, _Saying, frozen=True, kw_only=True, tag="tool_result"):
    """What a call gave; without content when it gave nothing (AE-17)."""

    tool_use_id: CallId
    content: (
        str
        | Annotated[list[Text | Image | Document | SearchResult], Meta(min_length=1)]
        | UnsetType
    ) = UNSET
    is_error: bool = False
    toolset_name: str | None = None


class Thinking(_Strict, frozen=True, tag="thinking"):
    """Thinking of an earlier turn, as it came (AE-24)."""

    thinking: str
    signature: str


class RedactedThinking(_Strict, frozen=True, tag="redacted_thinking"):
    """Thinking that only the server can read."""

    data: str


UserBlock = Text | Image | Document | SearchResult | ToolResult
AssistantBlock = Text | Image | Document | ToolUse | Thinking | RedactedThinking
Block = UserBlock | AssistantBlock


class UserTurn(_Saying, frozen=True, tag_field="role", tag="user"):
    """What the person said, and what calls gave."""

    content: str | Annotated[list[UserBlock], Meta(min_length=1)]


class AssistantTurn(_Saying, frozen=True, tag_field="role", tag="assistant"):
    """What the model said."""

    content: str | Annotated[list[AssistantBlock], Meta(min_length=1)]


class Adaptive(_Strict, frozen=True, tag="adaptive"):
    """The model decides how much it thinks."""

    display: Literal["summarized", "omitted"] | None = None


class Manual(_Strict, frozen=True, tag="enabled"):
    """The caller decides how much the model thinks."""

    budget_tokens: Annotated[int, Meta(ge=1024)]
    display: Literal["summarized", "omitted"] | None = None


class NoThinking(_Strict, frozen=True, tag="disabled"):
    """The model does not think."""


class BetweenTools(_Strict, frozen=True, tag="between_tools"):
    """The model thinks between its calls."""


class JsonFormat(_Strict, frozen=True):
    """The schema that the reply has to fit."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(_Strict, frozen=True):
    """How much effort, and in which form."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class Metadata(_Strict, frozen=True):
    """Who asks."""

    user_id: str | None = None


class _Choice(_Strict, frozen=True):
    disable_parallel_tool_use: bool = False


class AutoChoice(_Choice, frozen=True, kw_only=True, tag="auto"):
    """The model decides whether it calls."""


class AnyChoice(_Choice, frozen=True, kw_only=True, tag="any"):
    """The model has to call something."""


class NamedChoice(_Choice, frozen=True, kw_only=True, tag="tool"):
    """The model has to call this one."""

    name: str


class NoChoice(_Strict, frozen=True, tag="none"):
    """The model must not call."""


class CustomTool(_Cached, frozen=True, kw_only=True):
    """A function of the caller's."""

    name: Name
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    description: str | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    allowed_callers: list[str] | UnsetType = UNSET
    defer_loading: bool | UnsetType = UNSET
    eager_input_streaming: bool | None = None
    input_examples: list[dict[str, Any]] | UnsetType = UNSET


class MessagesBody(_Saying, frozen=True):
    """The whole body. A field that the API does not let be null is unset when it is absent."""

    model: Said
    max_tokens: Annotated[int, Meta(ge=0)]
    messages: Annotated[list[UserTurn | AssistantTurn], Meta(min_length=1, max_length=100_000)]
    system: str | Annotated[list[Text], Meta(min_length=1)] | UnsetType = UNSET
    tools: list[CustomTool] | UnsetType = UNSET
    tool_choice: AutoChoice | AnyChoice | NamedChoice | NoChoice | UnsetType = UNSET
    stop_sequences: list[Said] | UnsetType = UNSET
    stream: bool = False
    thinking: Adaptive | Manual | NoThinking | BetweenTools | UnsetType = UNSET
    output_config: OutputConfig | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    temperature: Ratio | UnsetType = UNSET
    top_p: Ratio | UnsetType = UNSET
    top_k: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    cache_control: CacheControl | None = None
    container: str | dict[str, Any] | None = None
    diagnostics: dict[str, Any] | None = None
    inference_geo: str | None = None
    service_tier: Literal["auto", "standard_only"] | UnsetType = UNSET
    speed: Literal["standard", "fast"] | None = None
    user_profile_id: str | UnsetType = UNSET
