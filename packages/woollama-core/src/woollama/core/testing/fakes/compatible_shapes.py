"""The shapes that ``POST /v1/chat/completions`` takes; what is not in them is refused (OC-42)."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from woollama.core.testing.fakes.openai_rules import Effort, Name, Strict

__all__ = ["AssistantTurn", "Call", "ChatBody", "Function", "NamedChoice", "Tool", "ToolTurn"]

Number = float
CallId = Annotated[str, Meta(min_length=1, max_length=40)]
Stop = Annotated[list[str], Meta(max_length=4)]


class _Part(Strict, frozen=True, kw_only=True, tag_field="type"):
    prompt_cache_breakpoint: dict[str, Any] | None = None


class TextPart(_Part, frozen=True, kw_only=True, tag="text"):
    """Text."""

    text: str


class ImageUrl(Strict, frozen=True, kw_only=True):
    """An image's address."""

    url: str
    detail: Literal["auto", "low", "high", "original"] = "auto"


class ImagePart(_Part, frozen=True, kw_only=True, tag="image_url"):
    """An image."""

    image_url: ImageUrl


class Audio(Strict, frozen=True, kw_only=True):
    """Sound."""

    data: str
    format: Literal["wav", "mp3"]


class AudioPart(_Part, frozen=True, kw_only=True, tag="input_audio"):
    """Sound."""

    input_audio: Audio


class File(Strict, frozen=True, kw_only=True):
    """A document."""

    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class FilePart(_Part, frozen=True, kw_only=True, tag="file"):
    """A document."""

    file: File


class RefusalPart(_Part, frozen=True, kw_only=True, tag="refusal"):
    """What an assistant would not do."""

    refusal: str


class _Turn(Strict, frozen=True, kw_only=True, tag_field="role"):
    name: str | None = None


class SystemTurn(_Turn, frozen=True, kw_only=True, tag="system"):
    """Instructions; many servers know no ``developer`` (OC-1)."""

    content: str | list[TextPart]


class UserTurn(_Turn, frozen=True, kw_only=True, tag="user"):
    """What the person said."""

    content: str | list[TextPart | ImagePart | AudioPart | FilePart]


class CalledFunction(Strict, frozen=True, kw_only=True):
    """What was called; ``arguments`` is text."""

    name: Name
    arguments: str


class Call(Strict, frozen=True, kw_only=True):
    """A call; OpenAI refuses ids of more than 40 characters."""

    id: CallId
    type: Literal["function"]
    function: CalledFunction
    extra_content: dict[str, Any] | None = None


class AssistantTurn(_Turn, frozen=True, kw_only=True, tag="assistant"):
    """What the model said; thinking is ``reasoning_content`` (A-3)."""

    content: str | list[TextPart | RefusalPart] | None = None
    reasoning_content: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[Call], Meta(min_length=1)] | None = None


class ToolTurn(_Turn, frozen=True, kw_only=True, tag="tool"):
    """The result of a call."""

    tool_call_id: str
    content: str | list[TextPart]


class Function(Strict, frozen=True, kw_only=True):
    """A function that may be called."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict, frozen=True, kw_only=True):
    """A tool; compatible servers know functions only."""

    type: Literal["function"]
    function: Function


class ChosenFunction(Strict, frozen=True, kw_only=True):
    """A function by name."""

    name: str


class NamedChoice(Strict, frozen=True, kw_only=True):
    """The choice of one function."""

    type: Literal["function"]
    function: ChosenFunction


class JsonSchema(Strict, frozen=True, kw_only=True):
    """What the answer must look like."""

    name: Name
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class TextFormat(Strict, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Plain text."""


class ObjectFormat(Strict, frozen=True, kw_only=True, tag_field="type", tag="json_object"):
    """Any JSON object."""


class SchemaFormat(Strict, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    """JSON by a schema."""

    json_schema: JsonSchema


class StreamOptions(Strict, frozen=True, kw_only=True):
    """Only beside ``stream: true``."""

    include_usage: bool = False
    include_obfuscation: bool = True


class ChatBody(Strict, frozen=True, kw_only=True):
    """The body."""

    model: str
    messages: Annotated[list[SystemTurn | UserTurn | AssistantTurn | ToolTurn], Meta(min_length=1)]
    frequency_penalty: Annotated[Number, Meta(ge=-2, le=2)] | None = None
    logit_bias: dict[str, Number] | None = None
    logprobs: bool | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    metadata: Annotated[dict[str, str], Meta(max_length=16)] | None = None
    modalities: list[str] | None = None
    n: Annotated[int, Meta(ge=1)] | None = None
    parallel_tool_calls: bool | None = None
    presence_penalty: Annotated[Number, Meta(ge=-2, le=2)] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    reasoning_effort: Effort | None = None
    response_format: TextFormat | ObjectFormat | SchemaFormat | None = None
    safety_identifier: str | None = None
    seed: int | None = None
    service_tier: str | None = None
    stop: str | Stop | None = None
    store: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[Number, Meta(ge=0, le=2)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedChoice | None = None
    tools: Annotated[list[Tool], Meta(min_length=1)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    top_p: Annotated[Number, Meta(ge=0, le=1)] | None = None
    user: str | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
