"""The image of a call as the program takes it: an address, or a file that we write (P-42)."""

import base64
import binascii
from types import MappingProxyType

from woollama.core.canonical import Value
from woollama.core.errors import RequestError
from woollama.core.patterns.images import LIMIT_IMAGE_BYTES
from woollama.core.wire.data_urls import split_data_url

__all__ = ["InlineImage", "RemoteImage", "read_image"]

_WHERE = "input.image_url"
_SUFFIXES = MappingProxyType(
    {
        "image/bmp": ".bmp",
        "image/gif": ".gif",
        "image/heic": ".heic",
        "image/jpeg": ".jpg",
        "image/jpg": ".jpg",
        "image/png": ".png",
        "image/svg+xml": ".svg",
        "image/tiff": ".tiff",
        "image/webp": ".webp",
    }
)


class InlineImage(Value, frozen=True, kw_only=True):
    """Bytes that came with the call, and the ending of a file that holds them."""

    data: bytes
    suffix: str

    def __repr__(self) -> str:
        """Without the bytes."""
        return f"InlineImage({len(self.data)} bytes, {self.suffix!r})"


class RemoteImage(Value, frozen=True, kw_only=True):
    """An address that fabric asks for itself, or hands to the vendor."""

    url: str


def read_image(url: str) -> InlineImage | RemoteImage:
    """The image that an address stands for; nothing is fetched.

    Raises:
        RequestError: it is neither an http address nor an inline image of at most 20 MiB.
    """
    scheme = url.partition(":")[0].lower()
    if scheme in {"http", "https"} and "://" in url and url.isprintable() and " " not in url:
        return RemoteImage(url=url)
    if scheme != "data":
        raise RequestError(
            f"{_WHERE} must be an http(s) address or 'data:image/…;base64,…', not {url[:40]!r}.",
            param=_WHERE,
        )
    found = split_data_url(url)
    if found is None or not found[0].startswith("image/"):
        raise RequestError(f"{_WHERE} must be 'data:image/…;base64,…'.", param=_WHERE)
    kind, text = found
    # Four characters are three bytes; counted first, so that no oversized text is decoded.
    if len(text) // 4 * 3 > LIMIT_IMAGE_BYTES + 2:
        raise _too_large()
    data = _decode(text)
    if len(data) > LIMIT_IMAGE_BYTES:
        raise _too_large()
    if not data:
        raise RequestError(f"{_WHERE} holds no data.", param=_WHERE)
    return InlineImage(data=data, suffix=_SUFFIXES.get(kind, ".img"))


def _decode(text: str) -> bytes:
    # Some clients leave the padding out.
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(
            f"{_WHERE} holds data that is not base64: {error}.", param=_WHERE
        ) from error


def _too_large() -> RequestError:
    return RequestError(
        f"{_WHERE}: an inline image may have {LIMIT_IMAGE_BYTES} bytes at most.", param=_WHERE
    )
