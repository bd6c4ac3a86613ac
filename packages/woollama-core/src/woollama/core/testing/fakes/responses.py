"""A strict server of the Responses API, and the plan server that speaks it in its own way."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from woollama.core.canonical import Reply
from woollama.core.testing.fake import Fake, FakeReply, FakeRequest, json_reply
from woollama.core.testing.fakes.chat_replies import model_list
from woollama.core.testing.fakes.openai_rules import (
    Refused,
    check_model,
    openai_error,
    refuse_key,
    shaped,
)
from woollama.core.testing.fakes.responses_events import events_of, response_of
from woollama.core.testing.fakes.responses_rules import check_body, check_plan, decode_items
from woollama.core.testing.fakes.responses_shapes import ResponsesBody

__all__ = ["ResponsesFake"]

_METHODS = (("/v1/responses", "POST"), ("/v1/models", "GET"))


class ResponsesFake(Fake):
    """A server that stores nothing: each request must carry its whole conversation (R-7).

    In plan mode (P-23) it refuses system items, wants ``stream: true`` and ``store: false``,
    answers its streams under another content type, and ends them with an empty ``output``.
    """

    def __init__(
        self,
        script: Iterable[Reply | FakeReply] = (),
        *,
        key: str | None = None,
        models: Collection[str] = (),
        plan: bool = False,
    ) -> None:
        """A server that has not been asked yet.

        Args:
            script: as ``Fake``.
            key: as ``Fake``.
            models: the models that are there; empty is any.
            plan: whether it is the plan server.
        """
        super().__init__(script, key=key)
        self._models = tuple(models)
        self._plan = plan

    def refuse(self, request: FakeRequest) -> FakeReply | None:
        """See ``Fake.refuse``."""
        method = dict(_METHODS).get(request.path)
        if method is None:
            return self.error(404, f"Invalid URL ({request.method} {request.path})")
        if method != request.method:
            return self.error(405, f"Not allowed to {request.method} on {request.path}.")
        refusal = refuse_key(request, self._key)
        if refusal is not None or request.method == "GET":
            return refusal
        try:
            self._check(request.json())
        except Refused as refused:
            return refused.reply
        return None

    def _check(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise Refused(self.error(400, "We could not parse the JSON body of your request."))
        body = shaped(value, ResponsesBody)
        items = decode_items(body)
        check_model(body.model, self._models)
        if self._plan:
            check_plan(body, items)
        check_body(body, items)

    def models(self, request: FakeRequest) -> FakeReply:
        """See ``Fake.models``; ``GET /v1/models``."""
        return model_list(self._models, owner="fake")

    def render(self, reply: Reply, body: Mapping[str, Any]) -> FakeReply:
        """See ``Fake.render``; an event for every step when ``stream`` is true."""
        response = response_of(reply, body)
        if not body.get("stream"):
            return json_reply(200, response)
        label = "application/json" if self._plan else "text/event-stream; charset=utf-8"
        return FakeReply(
            headers={"content-type": label},
            chunks=tuple(map(_frame, events_of(response, empty_end=self._plan))),
        )

    def error(self, status: int, message: str, **fields: Any) -> FakeReply:
        """See ``Fake.error``; the plan server's is ``{"detail": message}``."""
        if self._plan:
            return json_reply(status, {"detail": message})
        return openai_error(status, message, **fields)


def _frame(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"
