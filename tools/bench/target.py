"""What a target is: a launch script and what its ``#:`` lines say about asking it."""

from pathlib import Path

import msgspec

from tools.bench.places import TARGETS

DIRECT = "direct"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server to measure.

    Attributes:
        name: Name of the script in ``targets/`` without its suffix, or ``direct``: the mock itself.
        script: The launch script; None for ``direct``.
        model: Model name to ask for, ``{}`` standing for the mock's own name.
        headers: Whole header lines to send, for example an authorization.
        path: Path of the chat route.
        wait_s: How long its port may take to open, in seconds.
    """

    name: str
    script: Path | None = None
    model: str = "{}"
    headers: tuple[str, ...] = ()
    path: str = "/v1/chat/completions"
    wait_s: float = 30.0


class TargetError(Exception):
    """A target that does not exist, or whose script says something this tool does not know."""


def parse_target(name: str, text: str, *, script: Path | None = None) -> Target:
    """Read the ``#: key = value`` lines of a launch script.

    Args:
        name: The target's name.
        text: The script.
        script: Where the script is.

    Raises:
        TargetError: A line is not ``key = value``, or the key is not one of ``targets/README``.
    """
    headers: list[str] = []
    values: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#: "):
            continue
        key, separator, value = line[3:].partition(" = ")
        if not separator:
            raise TargetError(f"target {name!r}: {line!r} is not '#: key = value'")
        if key == "header":
            headers.append(value)
        elif key in {"model", "path", "wait_s"}:
            values[key] = value
        else:
            raise TargetError(f"target {name!r}: unknown key {key!r}; see targets/README")
    plain = Target(name=name, script=script)
    return msgspec.structs.replace(
        plain,
        headers=tuple(headers),
        model=values.get("model", plain.model),
        path=values.get("path", plain.path),
        wait_s=float(values.get("wait_s", plain.wait_s)),
    )


def find_target(name: str, *, folder: Path = TARGETS) -> Target:
    """The target of that name.

    Raises:
        TargetError: No such script; the message lists those there are.
    """
    if name == DIRECT:
        return Target(name=DIRECT)
    script = folder / f"{name}.sh"
    if not script.is_file():
        known = ", ".join([DIRECT, *sorted(path.stem for path in folder.glob("*.sh"))])
        raise TargetError(f"no target {name!r}; there are: {known}")
    return parse_target(name, script.read_text(encoding="utf-8"), script=script)
