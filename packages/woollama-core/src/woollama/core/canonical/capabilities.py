"""What a model can take; never guessed from a name or a URL."""

from woollama.core.canonical.value import Value

__all__ = ["Capabilities"]


class Capabilities(Value, frozen=True, kw_only=False):
    """What a model accepts beside text (RU-22). Absent means not declared, which is no."""

    accepts_image_parts: bool = False
    accepts_audio: bool = False
    accepts_structured: bool = False
