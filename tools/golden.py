"""Write what golden exchanges expect, for the cases that lack it: ``nox -s golden``.

A new case is a directory with ``case.json``, ``canonical_request.json`` and the reply's bytes. This
writes its other files from what the codec does now, to be read in review: they are the claim, not
the proof. A file that is there stays as it is; delete it to have it written anew.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from woollama.core.canonical import assemble, request_from_openai
from woollama.core.errors import InferenceError
from woollama.core.testing.golden import (
    Case,
    canonical_error,
    canonical_events,
    decode,
    load_cases,
)
from woollama.core.wire import DIALECTS, Dialect, WireSettings

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures" / "dialects"
_BASE_URL = "http://peer.test/v1"


def main() -> int:
    """Writes the missing files and prints their names."""
    written = 0
    for name, dialect in DIALECTS.items():
        for case in load_cases(FIXTURES / name):
            for file, content in expected(dialect, case):
                if not case.has(file):
                    text = json.dumps(content, indent=1, ensure_ascii=False)
                    (case.path / file).write_text(f"{text}\n", "utf-8")
                    print(case.path.relative_to(FIXTURES) / file)
                    written += 1
    print(f"{written} written")
    return 0


def expected(dialect: Dialect, case: Case) -> Iterator[tuple[str, Any]]:
    """The files of a case and what is in them by what the codec does now."""
    if "encode_request" in case.directions:
        try:
            yield "wire_request.json", _wire_request(dialect, case)
        except InferenceError as error:
            yield "canonical_error.json", canonical_error(error)
            return
    if case.kind == "refuse":
        return
    status = case.http["status"]
    if status >= 400:
        headers = {key.lower(): value for key, value in case.http.get("headers", {}).items()}
        error = dialect.codec.decode_error(status, headers, case.body, now=lambda: 0.0)
        yield "canonical_error.json", canonical_error(error)
        return
    deltas, failure = decode(dialect, case, "whole")
    if failure is None:
        yield "canonical_response.json", assemble(deltas).to_openai()
    else:
        yield "canonical_error.json", canonical_error(failure)
    if case.kind == "stream":
        yield "canonical_events.json", list(canonical_events(deltas, failure))


def _wire_request(dialect: Dialect, case: Case) -> Any:
    request = request_from_openai(case.json("canonical_request.json"))
    settings = msgspec.convert(case.server, WireSettings)
    wire = dialect.codec.encode(
        request, base_url=_BASE_URL, stream=request.stream, settings=settings
    )
    return json.loads(wire.body)


if __name__ == "__main__":
    sys.exit(main())
