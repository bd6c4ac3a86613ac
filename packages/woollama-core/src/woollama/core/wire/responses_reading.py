"""What the payloads of a Responses reply mean, whole and streamed."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from woollama.core.canonical import NOTHING, Delta, Finish, Start, Usage, UsageDelta
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TruncatedReply
from woollama.core.wire.faults import payload_error
from woollama.core.wire.framing import parse
from woollama.core.wire.responses_output import OutputReading
from woollama.core.wire.responses_texts import Budget
from woollama.core.wire.shapes import count_in, list_in, mapping_in, text_in

__all__ = ["ResponsesReading"]


class ResponsesReading:
    """Reads events by their ``type``; a whole response is its own terminal event."""

    def __init__(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> None:
        """Reads one reply."""
        self._new_id = new_id
        self._now = now
        self._budget = Budget()
        self._output = OutputReading(new_id=new_id, budget=self._budget)
        self._started = False
        self._usage: Usage | None = None
        self._finish: Finish | None = None

    def whole(self, payload: Any, out: list[Delta]) -> None:
        """See ``Reading.whole``; a server that answers JSON stays supported (R-13)."""
        body = _checked(payload)
        status = text_in(body, "status")
        if not (status or body.get("error") or isinstance(body.get("output"), list)):
            raise ReplyError("The provider's reply has no list 'output'.", payload=payload)
        self._terminal(body, status or "completed", out)
        self.end(out)

    def event(self, data: bytes, out: list[Delta]) -> bool:
        """See ``Reading.event``; ``[DONE]`` is not the mark and is passed over (RE-18)."""
        if data.startswith(b"[DONE]"):
            return False
        body = _checked(parse(data))
        kind = text_in(body, "type").removeprefix("response.")
        match kind:
            case "created" | "queued" | "in_progress":
                response = mapping_in(body, "response")
                self._usage = _usage(response) or self._usage
                self._start(response, out)
            case "completed" | "incomplete" | "failed":
                response = mapping_in(body, "response")
                self._terminal(response, text_in(response, "status") or kind, out)
                return True
            case "output_item.added" | "output_item.done":
                self._budget.spend(len(data))
                self._start(NOTHING, out)
                read = self._output.begin if kind.endswith("added") else self._output.finish
                read(body, mapping_in(body, "item"), out)
            case "error":
                raise _error(body)
            case "" if body.get("error"):
                raise _error(body)
            case _:
                self._piece(kind, body, out)
        return False

    def end(self, out: list[Delta]) -> None:
        """See ``Reading.end``; only a terminal response is the mark (R-17)."""
        if self._finish is None:
            raise TruncatedReply("stream ended before a terminal response")
        if self._usage is not None:
            out.append(UsageDelta(self._usage))
        out.append(self._finish)

    def _piece(self, kind: str, body: Mapping[str, Any], out: list[Delta]) -> None:
        name, _, step = kind.rpartition(".")
        deltas: list[Delta] = []
        # Unknown events are skipped (C-9).
        if self._output.piece(name, step, body, deltas):
            self._start(NOTHING, out)
            out.extend(deltas)

    def _start(self, response: Mapping[str, Any], out: list[Delta]) -> None:
        if self._started:
            return
        self._started = True
        created = response.get("created_at")
        out.append(
            Start(
                text_in(response, "id") or f"resp_{self._new_id()}",
                text_in(response, "model") or None,
                int(created) if isinstance(created, int | float) else int(self._now()),
            )
        )

    def _terminal(self, response: Mapping[str, Any], status: str, out: list[Delta]) -> None:
        if status == "failed" or response.get("error"):
            raise _failure(response.get("error"))
        # Neither says that the reply is whole (RE-17).
        if status == "cancelled":
            raise ProviderError("The response was cancelled.", "canceled", payload=response)
        if status not in {"completed", "incomplete"}:
            raise TruncatedReply(f"stream ended with the response {status!r}")
        self._start(response, out)
        self._output.end(list_in(response, "output"), out)
        self._usage = _usage(response) or self._usage
        self._finish = self._finish_of(response, status)

    def _finish_of(self, response: Mapping[str, Any], status: str) -> Finish:
        if status == "completed":
            # The status is the same when the reply is calls (RE-6).
            return Finish("tool_calls" if self._output.calls else "stop", status)
        reason = text_in(mapping_in(response, "incomplete_details"), "reason")
        native = f"{status}.{reason}" if reason else status
        # Cut short for whatever reason: a call in it may be half a call (C-5).
        return Finish("content_filter" if reason == "content_filter" else "length", native)


def _checked(payload: Any) -> Mapping[str, Any]:
    if not isinstance(payload, dict):
        raise ReplyError("The provider's reply is not an object.", payload=payload)
    return cast("Mapping[str, Any]", payload)


def _error(event: Mapping[str, Any]) -> InferenceError:
    # The event is documented flat and seen nested (RE-4); its own type is not the error's.
    return payload_error(
        {key: value for key, value in event.items() if key not in {"type", "sequence_number"}}
    )


def _failure(error: object) -> InferenceError:
    silent = {"message": "The response failed, and the provider does not say why."}
    return payload_error({"error": error or silent})


def _usage(response: Mapping[str, Any]) -> Usage | None:
    raw = mapping_in(response, "usage")
    if not raw:
        return None
    prompt = mapping_in(raw, "input_tokens_details")
    completion = mapping_in(raw, "output_tokens_details")
    return Usage(
        prompt_tokens=count_in(raw, "input_tokens"),
        completion_tokens=count_in(raw, "output_tokens"),
        total_tokens=count_in(raw, "total_tokens"),
        cached_tokens=count_in(prompt, "cached_tokens"),
        cache_write_tokens=count_in(prompt, "cache_write_tokens"),
        reasoning_tokens=count_in(completion, "reasoning_tokens"),
    )
