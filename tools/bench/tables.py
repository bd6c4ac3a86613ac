"""The tables, in Markdown: the goals, and every number by scenario."""

from collections.abc import Iterable, Mapping, Sequence

from tools.bench.figures import median, spread, written
from tools.bench.goal import Goal, Outcome
from tools.bench.sample import Sample, by_round, troubles

_FIELDS: Mapping[str, Sequence[str]] = {
    "chat": (
        *("requests_per_s", "p50_ms", "p95_ms", "p99_ms", "cpu_us_per_request"),
        *("cpu_percent", "client_cpu_percent", "rss_mb"),
    ),
    "stream": (
        *("chunks_per_s", "first_p50_ms", "p50_ms", "p99_ms", "cpu_us_per_chunk"),
        *("cpu_percent", "client_cpu_percent", "rss_mb"),
    ),
    "slow": (
        *("served_share", "late_p50_ms", "late_p99_ms", "first_p50_ms", "cpu_us_per_chunk"),
        *("cpu_percent", "client_cpu_percent", "rss_mb"),
    ),
    "call": ("cpu_us_per_call", "calls_per_s"),
    "import": ("import_ms", "import_cpu_ms", "modules", "heavy"),
    "start": ("port_s", "answer_s", "rss_mb"),
}
_TROUBLE_CHARS = 120
_KEY_FIELDS: Mapping[str, str] = {
    "chat": "requests_per_s",
    "stream": "chunks_per_s",
    "slow": "cpu_us_per_chunk",
    "call": "cpu_us_per_call",
    "import": "import_ms",
    "start": "port_s",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a ``|`` within a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
        for line in lines
    )


def limit_text(goal: Goal, limit: float) -> str:
    """A limit, for example ``≥ 20 x``."""
    return f"{'≥' if goal.better == 'more' else '≤'} {limit:.3g} {goal.unit}".rstrip()


def verdict_text(outcome: Outcome) -> str:
    """The verdict; of a miss also by how much of the limit."""
    goal, judged = outcome.goal, outcome.judged
    text = outcome.verdict
    if text == "MISSED" and judged is not None and goal.must and not outcome.trouble:
        text += f" by {abs(judged - goal.must) / goal.must:.0%}"
    return "; ".join((text, *(trouble[:_TROUBLE_CHARS] for trouble in outcome.trouble[:3])))


def goals_table(outcomes: Iterable[Outcome]) -> str:
    """One row a goal: both numbers, what is judged, its range over the rounds, limits, verdict."""
    head = ("measure", "ours", "against", "judged", "rounds", "must hold", "aim", "verdict")
    rows = [
        (
            outcome.goal.label,
            written(outcome.ours),
            written(outcome.against),
            f"{written(outcome.judged)} {outcome.goal.unit}".rstrip(),
            f"{written(outcome.low)} to {written(outcome.high)}",
            limit_text(outcome.goal, outcome.goal.must),
            limit_text(outcome.goal, outcome.goal.aim),
            verdict_text(outcome),
        )
        for outcome in outcomes
    ]
    return table(head, rows)


def scenario_table(samples: Sequence[Sample], scenario: str) -> str:
    """One row a subject: medians over the rounds, and how steady the key field was."""
    kind = scenario.partition("-")[0]
    key = _KEY_FIELDS[kind]
    subjects = tuple(dict.fromkeys(s.subject for s in samples if s.scenario == scenario))
    rows = list[Sequence[str]]()
    first: float | None = None
    for subject in subjects:
        columns = {
            field: tuple(by_round(samples, subject, scenario, field).values())
            for field in _FIELDS[kind]
        }
        middle = median(columns[key])
        first = first or middle
        rows.append(
            (
                subject,
                *(written(median(values)) for values in columns.values()),
                written(middle / first if middle is not None and first else None),
                str(len(columns[key])),
                written(spread(columns[key])),
                "; ".join(dict.fromkeys(troubles(samples, subject, scenario))),
            )
        )
    head = (
        "subject",
        *(field.replace("_", " ") for field in _FIELDS[kind]),
        f"{key.replace('_', ' ')} / {subjects[0]}",
        "rounds",
        "max/min",
        "trouble",
    )
    return table(head, rows)


def all_tables(samples: Sequence[Sample]) -> str:
    """Every scenario's table under its name."""
    scenarios = tuple(dict.fromkeys(sample.scenario for sample in samples))
    return "\n\n".join(f"### {name}\n\n{scenario_table(samples, name)}" for name in scenarios)
