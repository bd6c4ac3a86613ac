"""The shapes that ``POST /v1/responses`` takes; what is not in them is refused.

The server's own tools, and the items that come of them, are not among them.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from woollama.core.testing.fakes.openai_rules import Effort, Name, Strict

__all__ = [
    "AssistantItem",
    "CallItem",
    "NamedChoice",
    "OutputItem",
    "ReasoningItem",
    "ResponsesBody",
    "SchemaFormat",
    "SystemItem",
    "UserItem",
]

Number = float
Status = Literal["in_progress", "completed", "incomplete"]
CallId = Annotated[str, Meta(min_length=1, max_length=64)]


class _Part(Strict, frozen=True, kw_only=True, tag_field="type"):
    prompt_cache_breakpoint: dict[str, Any] | None = None


class InputText(_Part, frozen=True, kw_only=True, tag="input_text"):
    """Text of anyone but the assistant."""

    text: str


class InputImage(_Part, frozen=True, kw_only=True, tag="input_image"):
    """An image, by address or by the id of one the server has."""

    detail: Literal["auto", "low", "high", "original"] = "auto"
    image_url: str | None = None
    file_id: str | None = None


class InputFile(_Part, frozen=True, kw_only=True, tag="input_file"):
    """A document."""

    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    detail: Literal["auto", "low", "high"] = "auto"


class OutputText(Strict, frozen=True, kw_only=True, tag_field="type", tag="output_text"):
    """Text of the assistant."""

    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class Refusal(Strict, frozen=True, kw_only=True, tag_field="type", tag="refusal"):
    """What the assistant would not do."""

    refusal: str


Parts = list[InputText | InputImage | InputFile]


class _Item(Strict, frozen=True, kw_only=True):
    type: str
    id: str | None = None
    status: Status | None = None


class SystemItem(_Item, frozen=True, kw_only=True):
    """Instructions among the input."""

    role: Literal["system", "developer"]
    content: str | Parts


class UserItem(_Item, frozen=True, kw_only=True):
    """What the person said."""

    role: Literal["user"]
    content: str | Parts


class AssistantItem(_Item, frozen=True, kw_only=True):
    """What the model said; a list holds the parts of a reply."""

    role: Literal["assistant"]
    content: str | list[OutputText | Refusal]
    phase: Literal["commentary", "final_answer"] | None = None


class CallItem(_Item, frozen=True, kw_only=True):
    """A call."""

    call_id: CallId
    name: Name
    arguments: str
    namespace: str | None = None


class OutputItem(_Item, frozen=True, kw_only=True):
    """The result of a call."""

    call_id: CallId
    output: str | Parts


class SummaryText(Strict, frozen=True, kw_only=True, tag_field="type", tag="summary_text"):
    """A part of a summary."""

    text: str


class ReasoningText(Strict, frozen=True, kw_only=True, tag_field="type", tag="reasoning_text"):
    """A part of the raw thinking."""

    text: str


class ReasoningItem(_Item, frozen=True, kw_only=True):
    """Thinking of an earlier reply."""

    summary: list[SummaryText]
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None


class FunctionTool(Strict, frozen=True, kw_only=True):
    """A function that may be called; ``strict`` that is absent is true in practice (RE-13)."""

    type: Literal["function"]
    name: Name
    parameters: dict[str, Any] | None
    strict: bool | None = None
    description: str | None = None


class NamedChoice(Strict, frozen=True, kw_only=True):
    """The choice of one function."""

    type: Literal["function"]
    name: str


class Reasoning(Strict, frozen=True, kw_only=True):
    """How the model thinks."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    mode: Literal["standard", "pro"] | None = None


class TextFormat(Strict, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Plain text."""


class ObjectFormat(Strict, frozen=True, kw_only=True, tag_field="type", tag="json_object"):
    """Any JSON object."""


class SchemaFormat(Strict, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    """JSON by a schema."""

    name: Name
    schema: dict[str, Any]
    strict: bool | None = None
    description: str | None = None


class Text(Strict, frozen=True, kw_only=True):
    """What the answer looks like."""

    format: TextFormat | ObjectFormat | SchemaFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class StreamOptions(Strict, frozen=True, kw_only=True):
    """Usage needs no asking here."""

    include_obfuscation: bool = True


class ResponsesBody(Strict, frozen=True, kw_only=True):
    """The body; the items of ``input`` are looked at one by one."""

    model: str
    input: str | list[dict[str, Any]]
    background: bool | None = None
    conversation: str | dict[str, Any] | None = None
    include: list[str] | None = None
    instructions: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_tool_calls: int | None = None
    metadata: Annotated[dict[str, str], Meta(max_length=16)] | None = None
    parallel_tool_calls: bool | None = None
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    reasoning: Reasoning | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[Number, Meta(ge=0, le=2)] | None = None
    text: Text | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedChoice | None = None
    tools: list[FunctionTool] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    top_p: Annotated[Number, Meta(ge=0, le=1)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None
