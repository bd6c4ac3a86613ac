"""Images in a pattern's input: whole, of a size that is taken, and for a model that sees (P-42)."""

import base64
from collections.abc import Iterable, Iterator

from anyio import to_thread

from woollama.core.canonical import Capabilities, ImagePart, Message, UserMessage
from woollama.core.errors import RequestError
from woollama.core.providers import Target
from woollama.core.wire.data_urls import split_data_url

__all__ = ["LIMIT_IMAGE_BYTES", "check_images"]

LIMIT_IMAGE_BYTES = 20 * 1024 * 1024
"""The most bytes of one inline image, decoded."""


async def check_images(messages: Iterable[Message], target: Target) -> None:
    """Refuses images that cannot be what the caller means.

    Args:
        messages: the input of a run.
        target: what it runs on; a model of which nothing is declared is not held against anyone.

    Raises:
        RequestError: an inline image is not base64, is no image or is too large; or the model is
            declared and takes none.
    """
    images = list(_images(messages))
    if images and _declares(target) and not target.capabilities.accepts_image_parts:
        raise RequestError(
            f"{target.name} takes no images: run the pattern on a model that does.",
            "unsupported_content",
            param="input",
        )
    for where, part in images:
        if part.url[:5].lower() == "data:":
            # Megabytes of base64 take the time of many small requests.
            await to_thread.run_sync(_check_inline, part.url, where)


def _images(messages: Iterable[Message]) -> Iterator[tuple[str, ImagePart]]:
    for i, message in enumerate(messages):
        if isinstance(message, UserMessage) and not isinstance(message.content, str):
            for j, part in enumerate(message.content):
                if isinstance(part, ImagePart):
                    yield f"input[{i}].content[{j}].image_url", part


def _declares(target: Target) -> bool:
    return target.declared.vision is not None or target.provider.capabilities != Capabilities()


def _check_inline(url: str, where: str) -> None:
    found = split_data_url(url)
    if found is None or not found[0].startswith("image/"):
        raise RequestError(
            f"{where} must be an http(s) address or 'data:image/…;base64,…'.", param=where
        )
    data = found[1]
    # Four characters are three bytes; counted first, so that no oversized text is decoded.
    if len(data) // 4 * 3 > LIMIT_IMAGE_BYTES + 2:
        raise _too_large(where)
    try:
        size = len(base64.b64decode(data, validate=True))
    except ValueError as error:
        raise RequestError(
            f"{where} holds data that is not base64: {error}.", param=where
        ) from error
    if size > LIMIT_IMAGE_BYTES:
        raise _too_large(where)
    if not size:
        raise RequestError(f"{where} holds no data.", param=where)


def _too_large(where: str) -> RequestError:
    return RequestError(
        f"{where}: an inline image may have {LIMIT_IMAGE_BYTES} bytes at most.", param=where
    )
