"""The shape of a case: a configuration, scripted upstreams, what clients do, what must hold.

A case is one JSON file in ``data``. A key that is not named here is an error, so that a check that
nobody evaluates cannot be written.
"""

from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

__all__ = [
    "AwaitMcp",
    "Background",
    "Case",
    "Check",
    "Config",
    "Entry",
    "Expectation",
    "FileContent",
    "Http",
    "Inferencer",
    "Mark",
    "Parallel",
    "Part",
    "Raw",
    "Request",
    "Send",
    "Sleep",
    "Step",
    "UpstreamScript",
    "load_cases",
]

DATA = Path(__file__).parent / "data"


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all shapes share: nothing unknown is let through."""


class Part(Shape, frozen=True, kw_only=True):
    """Some bytes, said in one of three ways, and how they are written.

    Attributes:
        text, latin1, b64: the bytes, in UTF-8, in Latin 1 or in Base64.
        repeat: how often.
        delay_ms: the wait before.
        split_every: written in pieces of so many bytes.
    """

    text: str = ""
    latin1: str = ""
    b64: str = ""
    repeat: int = 1
    delay_ms: int = 0
    split_every: int = 0


Send: TypeAlias = str | Part | tuple[str | Part, ...]
"""One part or several; a text alone is a part in UTF-8."""


# The upstreams


class Match(Shape, frozen=True, kw_only=True):
    """Which requests an entry of the script answers; what is not said matches all."""

    method: str | None = None
    path: str | None = None
    body_contains: str = ""
    stream: bool | None = None


class Entry(Shape, frozen=True, kw_only=True):
    """One line of an upstream's script: the raw bytes of a reply to a request that matches.

    Attributes:
        hold_ms: how long the connection is left open after the last part.
        close: how it is closed then; ``keep`` leaves it open for the next request.
        repeat: whether it answers any number of requests, not one.
        alt: variants of which the first that matches is used.
    """

    expect: Match = Match()
    send: Send = ()
    hold_ms: int = 0
    close: Literal["fin", "rst", "keep"] = "fin"
    repeat: bool = False
    alt: tuple["Entry", ...] = ()


class UpstreamScript(Shape, frozen=True, kw_only=True):
    """A provider's server. A request takes the first unused entry that matches, else 404.

    Attributes:
        defaults: lists of models and Ollama's ``show`` and ``version`` are answered, uncounted.
        refuse: nothing listens at its port.
    """

    script: tuple[Entry, ...] = ()
    defaults: bool = True
    refuse: bool = False


# The configuration


class Inferencer(Shape, frozen=True, kw_only=True):
    """A table of ``inferencers.toml``.

    Attributes:
        upstream: whose server it is; None is the one of the same name.
        suffix: follows the upstream's address in ``base_url``.
        set: further keys.
    """

    kind: Literal["openai_chat", "openai_responses", "ollama", "anthropic"] = "openai_chat"
    upstream: str | None = None
    suffix: str = "/v1"
    set: dict[str, Any] = {}


class FileContent(Shape, frozen=True, kw_only=True):
    """A file's text, with a byte order mark before it if ``bom``."""

    text: str
    bom: bool = False


class Config(Shape, frozen=True, kw_only=True):
    """What the product is given.

    Attributes:
        recipes: tables of ``recipes.toml``.
        mcp_servers: entries of ``mcp.json``, or the script of a fake one (``fake_mcp.py``).
        files: written last, by name in the configuration directory.
        env: set, or taken away if null.
        occupy_port: the product's port is taken.
    """

    inferencers: dict[str, Inferencer] = {}
    recipes: dict[str, dict[str, Any]] = {}
    mcp_servers: dict[str, dict[str, Any]] = {}
    files: dict[str, str | FileContent] = {}
    env: dict[str, str | None] = {}
    occupy_port: bool = False


# What clients do


class Http(Shape, frozen=True, kw_only=True, tag_field="op", tag="http"):
    """One request. ``body`` is sent as JSON, ``body_raw`` as it is.

    Attributes:
        disconnect_after_bytes: of the reply's body; then the client leaves.
        disconnect_after_ms: after the request; then the client leaves.
    """

    method: str
    path: str
    headers: dict[str, str] = {}
    body: Any = UNSET
    body_raw: Send | None = None
    disconnect_after_bytes: int | None = None
    disconnect_after_ms: int | None = None
    timeout_ms: int = 15_000


class Raw(Shape, frozen=True, kw_only=True, tag_field="op", tag="raw"):
    """Bytes as they are; then all that comes is read until the end or for ``read_ms``."""

    send: Send
    read_ms: int = 3000


Request: TypeAlias = Http | Raw


class Parallel(Shape, frozen=True, kw_only=True, tag_field="op", tag="parallel"):
    """One request ``n`` times at once, each ``stagger_ms`` after the one before."""

    request: Request
    n: int
    stagger_ms: int = 0


class Background(Shape, frozen=True, kw_only=True, tag_field="op", tag="background"):
    """One request ``n`` times, whose replies are not looked at; they get ``settle_ms`` to start."""

    request: Request
    n: int = 1
    settle_ms: int = 300


class Sleep(Shape, frozen=True, kw_only=True, tag_field="op", tag="sleep"):
    """Time that passes in the story that the case tells."""

    ms: int


class AwaitMcp(Shape, frozen=True, kw_only=True, tag_field="op", tag="await_mcp"):
    """Goes on when a fake MCP server has got a message of that method."""

    server: str
    method: str
    timeout_ms: int = 10_000


class Mark(Shape, frozen=True, kw_only=True, tag_field="op", tag="mark"):
    """The product's memory and descriptors, noted under a label."""

    label: str


Step: TypeAlias = Http | Raw | Parallel | Background | Sleep | AwaitMcp | Mark


# What must hold


class Check(Shape, frozen=True, kw_only=True):
    """One thing that must hold. ``check`` names it; its row in the table of checks reads the rest.

    The operators are compared all; ``path`` is dotted, ``choices.0.message``.

    Attributes:
        step: which reply of the client's is looked at; the last is -1.
        n: which request of an upstream's, or which message of an MCP server's.
        i: which of the tool results in that request.
    """

    check: str
    checks: tuple["Expectation", ...] = ()
    of: "Check | None" = None
    # where
    step: int = -1
    upstream: str | None = None
    n: int = 0
    i: int = 0
    path: str | None = None
    name: str = ""
    server: str = ""
    method: str | None = None
    # operators
    equals: Any = UNSET
    not_equals: Any = UNSET
    contains: str | UnsetType = UNSET
    not_contains: str | UnsetType = UNSET
    matches: str | UnsetType = UNSET
    not_matches: str | UnsetType = UNSET
    in_: list[Any] | UnsetType = msgspec.field(name="in", default=UNSET)
    exists: bool | UnsetType = UNSET
    type: Literal["str", "int", "list", "dict", "bool", "null"] | UnsetType = UNSET
    len: int | UnsetType = UNSET
    min: int | UnsetType = UNSET
    max: int | UnsetType = UNSET
    json_equals: Any = UNSET
    # of single checks
    ok: bool = True
    range: tuple[int, int] | None = None
    none: bool = False
    names: bool = True
    count: int | None = None
    equals_all: list[Any] | None = None
    max_ms: int | None = None
    within_ms: int = 8000
    no_bits: str = "0"
    optional: bool = False
    what: Literal["rss_kb", "fds"] = "fds"
    from_: str = msgspec.field(name="from", default="")
    to: str = ""


Expectation: TypeAlias = Check | tuple[Check, ...]
"""A check, or several that hold together."""


class Case(Shape, frozen=True, kw_only=True):
    """A fault of the real world, and what is right when it happens.

    Attributes:
        id: a letter for its class, and a number.
        source: where it was seen: ``owner/repository#number`` and a few words.
        level: whether ``right`` is owed or wished for.
        requires: the features that it needs, by their names in ``features.py``.
    """

    id: str
    class_: str = msgspec.field(name="class")
    title: str
    source: tuple[str, ...] = ()
    fault: str
    right: str
    level: Literal["must", "should"]
    requires: tuple[str, ...]
    start_timeout_ms: int = 20_000
    config: Config
    upstreams: dict[str, UpstreamScript]
    client: tuple[Step, ...]
    expect: tuple[Check, ...]


def load_cases(folder: Path = DATA) -> dict[str, Case]:
    """Every case by its id, in the order of the ids.

    Raises:
        msgspec.ValidationError: a file does not have the shape; the message names it.
    """
    decoder = msgspec.json.Decoder(Case)
    cases: dict[str, Case] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            case = decoder.decode(path.read_bytes())
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(f"{path.name}: {error}") from error
        cases[case.id] = case
    return cases
