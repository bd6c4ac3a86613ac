"""Data URLs: how OpenAI's content parts carry bytes, and what other dialects take out of them."""

__all__ = ["data_url", "split_data_url"]


def split_data_url(url: str) -> tuple[str, str] | None:
    """The media type and the base64 text of a ``data:`` URL.

    Args:
        url: any URL. Neither the media type nor the base64 text is checked.

    Returns:
        The media type in lower case, without its parameters and perhaps empty, and the base64
        text; None when ``url`` is of another scheme or holds no base64.
    """
    scheme, _, rest = url.partition(":")
    head, comma, data = rest.partition(",")
    media_type, *parameters = head.lower().split(";")
    if scheme.lower() != "data" or not comma or "base64" not in parameters[-1:]:
        return None
    return media_type, data


def data_url(media_type: str, data: str) -> str:
    """The ``data:`` URL of base64 text."""
    return f"data:{media_type};base64,{data}"
