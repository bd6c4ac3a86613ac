"""A tool's result to what one model is told: the one place where something is left out, visibly.

Each block goes to the renderers in turn, the caller's first; the last one has words for all. What a
text model cannot take leaves a line that names it; base64 never becomes text.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

import msgspec

from woollama.core.canonical import (
    Capabilities,
    Content,
    Part,
    TextPart,
    ToolResult,
    content_from_openai,
    content_to_openai,
)

__all__ = [
    "ERROR_MARK",
    "ImageRenderer",
    "Renderer",
    "TextRenderer",
    "render_content",
    "render_tool_result",
]

ERROR_MARK = "[tool error]"
"""What a failed tool's text begins with; callers match it (core API, section 5)."""

Block = Mapping[str, Any]


class Renderer(Protocol):
    """Turns blocks of a result into what a model can take."""

    def render(self, block: Block, caps: Capabilities, /) -> str | Mapping[str, Any] | None:
        """One block for a model with these capabilities.

        Args:
            block: a content block in MCP's shape, or ``{"type": "structured", "structured": …}``
                for the JSON beside the blocks.
            caps: what the model accepts.

        Returns:
            A line of text; or a content part in OpenAI's shape; or None: the next renderer's turn.
        """
        ...


class ImageRenderer:
    """Images as they are, for models that accept image parts."""

    def render(self, block: Block, caps: Capabilities, /) -> Mapping[str, Any] | None:
        """See ``Renderer.render``; an ``image`` block or an embedded image, as a ``data:`` URL."""
        if not caps.accepts_image_parts:
            return None
        match block:
            case {"type": "image"}:
                data, mime = block.get("data"), _mime(block)
            case {"type": "resource"}:
                resource = _resource(block)
                data, mime = resource.get("blob"), _mime(resource)
            case _:
                return None
        if not isinstance(data, str) or mime is None or not mime.startswith("image/"):
            return None
        return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


class TextRenderer:
    """Text as it is, structured results as JSON, a line in brackets for everything else."""

    def render(self, block: Block, caps: Capabilities, /) -> str:
        """See ``Renderer.render``; never None."""
        match block:
            case {"type": "text", "text": str(text)}:
                return text
            case {"type": "structured"}:
                return _json(block.get("structured"))
            case {"type": "resource"}:
                resource = _resource(block)
                text = resource.get("text")
                return text if isinstance(text, str) else _mark("resource omitted", resource)
            case {"type": "resource_link"}:
                return _mark("resource link", block)
            case {"type": str(kind)}:
                return _mark(f"{kind} omitted", block)
            case _:
                return "[block of no type omitted]"


_DEFAULT_RENDERERS: tuple[Renderer, ...] = (ImageRenderer(), TextRenderer())


def render_tool_result(
    result: ToolResult,
    *,
    caps: Capabilities = Capabilities(),  # noqa: B008 - an immutable value
    renderers: Iterable[Renderer] = (),
) -> str | list[dict[str, Any]]:
    """What a model with these capabilities is told of a result.

    Text blocks are joined with a line break; ``structured`` follows as JSON, unless a text block
    says the same already; a failed tool's text begins with ``[tool error]``.

    Args:
        result: any result.
        caps: what the model accepts beside text.
        renderers: tried before our own, in their order.

    Returns:
        A string; or, when there is more than text, a list of OpenAI content parts.
    """
    return content_to_openai(render_content(result, caps=caps, renderers=renderers))


def render_content(
    result: ToolResult, *, caps: Capabilities, renderers: Iterable[Renderer] = ()
) -> Content:
    """As ``render_tool_result``, in canonical content."""
    chain = (*renderers, *_DEFAULT_RENDERERS)
    pieces = [_render(block, caps, chain) for block in _blocks(result)]
    if result.is_error:
        first = pieces[0] if pieces else None
        if isinstance(first, str):
            pieces[0] = f"{ERROR_MARK} {first}"
        else:
            pieces.insert(0, ERROR_MARK)
    return _joined(pieces)


def _render(block: Block, caps: Capabilities, chain: tuple[Renderer, ...]) -> str | Part:
    rendered = next(
        found for found in (renderer.render(block, caps) for renderer in chain) if found is not None
    )
    if isinstance(rendered, str):
        return rendered
    (part,) = content_from_openai([rendered], "the rendered block")
    return cast("Part", part)


def _joined(pieces: list[str | Part]) -> Content:
    parts: list[Part] = []
    lines: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            lines.append(piece)
            continue
        if lines:
            parts.append(TextPart(text="\n".join(lines)))
            lines = []
        parts.append(piece)
    text = "\n".join(lines)
    if not parts:
        return text
    return (*parts, TextPart(text=text)) if lines else tuple(parts)


def _blocks(result: ToolResult) -> list[Block]:
    blocks = [_as_mapping(block) for block in result.blocks]
    structured = result.structured
    if structured is not None and not any(_says(block, structured) for block in blocks):
        blocks.append({"type": "structured", "structured": structured})
    return blocks


def _says(block: Block, structured: Any) -> bool:
    # Servers repeat a structured result as text, for clients that do not look at it. MCP's Python
    # SDK makes one of a plain value: {"result": value}.
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str):
        return False
    said = [structured]
    match structured:
        case {"result": value, **others} if not others:
            said.append(value)
        case _:
            pass
    if text in said:
        return True
    try:
        return msgspec.json.decode(text) in said
    except (msgspec.DecodeError, RecursionError):
        return False


def _as_mapping(block: Any) -> Block:
    if isinstance(block, Mapping):
        return cast("Block", block)
    if isinstance(block, str):
        return {"type": "text", "text": block}
    dump = getattr(block, "model_dump", None)
    if callable(dump):
        return cast("Block", dump(mode="json", by_alias=True, exclude_none=True))
    text = getattr(block, "text", None)
    if isinstance(text, str):
        return {"type": "text", "text": text}
    return {"type": type(block).__name__}


def _resource(block: Block) -> Block:
    resource = block.get("resource")
    return cast("Block", resource) if isinstance(resource, Mapping) else block


def _mime(block: Block) -> str | None:
    mime = block.get("mimeType") or block.get("mime_type")
    return mime if isinstance(mime, str) else None


def _mark(what: str, block: Block) -> str:
    said = [block.get("name"), block.get("uri"), _mime(block)]
    about = ", ".join(word for word in said if isinstance(word, str) and word)
    return f"[{what}: {about}]" if about else f"[{what}]"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return f"[structured result of type {type(value).__name__} omitted]"
