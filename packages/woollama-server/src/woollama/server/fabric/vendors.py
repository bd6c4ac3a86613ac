"""A model's name to the vendor and the model that fabric knows."""

from collections.abc import Mapping

__all__ = ["resolve_model"]


def resolve_model(name: str, vendors: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """Vendor and model for ``name``; a vendor of ``""`` leaves it to fabric.

    ``vendor|model`` is split there. In ``vendor/model`` the vendor is found whatever its case and
    its spaces (``lmstudio`` is ``LM Studio``); when there is none, the whole name may be a model's
    (``meta-llama/llama-3``). What nobody lists goes as it is, for fabric to refuse.

    Args:
        name: as the caller wrote it.
        vendors: fabric's models by the display name of their vendor.
    """
    vendor, bar, model = name.partition("|")
    if bar:
        return _known(vendor, vendors) or vendor, model
    vendor, slash, model = name.partition("/")
    if not slash:
        return "", name
    known = _known(vendor, vendors)
    if known is not None:
        return known, model
    wanted = name.casefold()
    for display, models in vendors.items():
        if any(each.casefold() == wanted for each in models):
            return display, name
    return vendor, model


def _known(name: str, vendors: Mapping[str, tuple[str, ...]]) -> str | None:
    wanted = _plain(name)
    return next((display for display in vendors if _plain(display) == wanted), None)


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
