"""Bytes in pieces: what any cut must not change."""

from collections.abc import Callable, Iterable
from itertools import pairwise

from hypothesis import strategies as st


def pieces_of(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """`data` cut at these places, some pieces empty."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def slices_of(data: bytes, size: int) -> list[bytes]:
    """`data` in pieces of one size."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def singles(data: bytes) -> list[bytes]:
    """`data` byte by byte."""
    return slices_of(data, 1)


CUTS = st.lists(st.integers(0, 1_000_000), max_size=12)


def fed(feed: Callable[[bytes], object], pieces: Iterable[bytes]) -> None:
    """Feeds the pieces, whatever they give."""
    for piece in pieces:
        feed(piece)
