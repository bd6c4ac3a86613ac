"""What was measured: one sample for each subject, scenario and round."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one measuring process prints, as one line of JSON.

    Attributes:
        values: Numbers by field; the unit is the end of the field's name.
        trouble: What went wrong, for example ``3 cut off``; empty when nothing did.
    """

    values: dict[str, float] = {}
    trouble: str = ""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement in its place.

    Attributes:
        subject: The target or library.
        scenario: What was done with it, for example ``chat-64``.
        round: Number of the round, from 0.
        machine_load: The machine's 1-minute load average just before.
        values: As in ``Measured``.
        trouble: As in ``Measured``.
    """

    subject: str
    scenario: str
    round: int
    machine_load: float
    values: dict[str, float]
    trouble: str = ""


def by_round(
    samples: Iterable[Sample], subject: str, scenario: str, field: str
) -> Mapping[int, float]:
    """One field of one subject in one scenario, by round; rounds that lack it are left out."""
    return {
        sample.round: sample.values[field]
        for sample in samples
        if (sample.subject, sample.scenario) == (subject, scenario) and field in sample.values
    }


def troubles(samples: Iterable[Sample], subject: str, scenario: str) -> tuple[str, ...]:
    """What went wrong with one subject in one scenario, over all rounds."""
    return tuple(
        sample.trouble
        for sample in samples
        if (sample.subject, sample.scenario) == (subject, scenario) and sample.trouble
    )


def save_samples(samples: Iterable[Sample], file: Path) -> None:
    """Write one JSON line a sample."""
    file.write_bytes(b"".join(msgspec.json.encode(sample) + b"\n" for sample in samples))


def load_samples(file: Path) -> tuple[Sample, ...]:
    """Read what ``save_samples`` wrote.

    Raises:
        msgspec.ValidationError: A line is not a sample.
    """
    decoder = msgspec.json.Decoder(Sample)
    return tuple(decoder.decode(line) for line in file.read_bytes().splitlines() if line)
