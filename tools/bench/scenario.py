"""The scenarios of the load client, by name."""

from typing import Literal, cast, get_args

import msgspec

Kind = Literal["chat", "stream", "slow"]

_MODELS: dict[Kind, tuple[str, int]] = {
    "chat": ("chat", 0),
    "stream": ("stream-200-0ms", 200),
    "slow": ("stream-50-100ms", 50),
}


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What the load client does.

    Attributes:
        name: ``KIND-CONNECTIONS``, for example ``slow-500``.
        kind: ``chat``: not streaming, each connection asks again as soon as it is answered;
            ``stream``: the same with streams of 200 chunks as fast as they go; ``slow``: one stream
            a connection, 50 chunks at 10 a second, as a model writes.
        connections: How many connections.
        model: The mock's name for it.
        chunks: How many chunks a whole answer has; 0 when it does not stream.
    """

    name: str
    kind: Kind
    connections: int
    model: str
    chunks: int

    @property
    def streaming(self) -> bool:
        """Whether the answers are streams."""
        return self.chunks > 0


class ScenarioError(Exception):
    """A name that is no scenario."""


def parse_scenario(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        ScenarioError: The name is not ``KIND-CONNECTIONS`` with a known kind.
    """
    word, _, number = name.partition("-")
    if word not in get_args(Kind) or not number.isdecimal() or not int(number):
        kinds = ", ".join(f"{kind}-N" for kind in get_args(Kind))
        raise ScenarioError(f"no scenario {name!r}; there are {kinds}")
    kind = cast("Kind", word)
    model, chunks = _MODELS[kind]
    return Scenario(name=name, kind=kind, connections=int(number), model=model, chunks=chunks)
