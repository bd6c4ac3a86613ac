"""What a server asks in the middle of a direct call, brought to the client in its revision's way.

A client of the older protocol is sent a request while its own is open. One of the newer protocol
cannot be: it is answered that input is required, and calls again with it. A server of the newer
protocol speaks like that itself, and what it says passes. A server of the older one waits with its
question until the client is back: its call lives on here, under the state that the client brings.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from secrets import token_urlsafe
from typing import Any

import anyio
from anyio.abc import TaskGroup
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INVALID_PARAMS, ElicitRequest, ElicitResult
from pydantic import ValidationError

from woollama.core.canonical.value import NOTHING
from woollama.server.mcp.health import OnProgress
from woollama.server.mcp.questions import Asker, CannotAsk
from woollama.server.mcp.surface_results import Context, is_modern, mapping_in

__all__ = ["ASKS_LIMIT_S", "Conversations", "asker_over", "declared_by", "questions_in"]

ASKS_LIMIT_S = 600.0
"""How long a person may take to answer."""

_OPEN_LIMIT = 64
"""How many questions may be open to clients of the newer protocol."""

_METHOD = "elicitation/create"
_STATE = "woollama:"
_USED = ("elicitation", "sampling", "roots")

Raw = Mapping[str, Any]
Work = Callable[[Asker, OnProgress], Awaitable[dict[str, Any]]]


def declared_by(ctx: Context) -> Mapping[str, Any]:
    """What the client declared that a server may use in the middle of a call, as on the wire."""
    declared = ctx.session.client_capabilities
    if declared is None:
        return NOTHING
    all_ = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {key: all_[key] for key in _USED if key in all_}


def questions_in(raw: Raw) -> Mapping[str, Raw] | None:
    """The questions of a result that requires input, by their keys.

    None: it asks for something that is no question to a person.
    """
    found: dict[str, Raw] = {}
    for key, request in mapping_in(raw.get("inputRequests")).items():
        match request:
            case {"method": str(method), "params": Mapping()} if method == _METHOD:
                found[key] = request["params"]
            case _:
                return None
    return found


def asker_over(ctx: Context) -> Asker | None:
    """A client of the older protocol, asked while its request is open; None: it cannot be."""
    capability = declared_by(ctx).get("elicitation")
    if capability is None or is_modern(ctx.protocol_version) or not ctx.session.can_send_request:
        return None

    async def ask(question: Raw) -> Raw:
        with anyio.move_on_after(ASKS_LIMIT_S):
            try:
                answer = await ctx.session.send_request(
                    ElicitRequest.model_validate({"method": _METHOD, "params": dict(question)}),
                    ElicitResult,
                    metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
                )
            except MCPError as error:
                raise CannotAsk(f"the client refused the question: {error.message}") from error
            except ValidationError as error:
                # Its text quotes what was said.
                raise CannotAsk("the question or its answer does not fit the protocol") from error
            return answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        raise CannotAsk("nobody answered in time")

    return Asker(capability=capability, ask=ask)


class Conversations:
    """Calls of clients of the newer protocol that are under way, or wait for an answer."""

    def __init__(self, tasks: TaskGroup) -> None:
        """The calls live in ``tasks``: longer than one request of the client."""
        self._tasks = tasks
        self._waiting: dict[str, _Question] = {}

    def resumes(self, params: Raw) -> bool:
        """Whether a call comes back with an answer to a question of ours."""
        state = params.get("requestState")
        return isinstance(state, str) and state.startswith(_STATE)

    async def begin(
        self, capability: Raw, work: Work, *, on_progress: OnProgress | None
    ) -> dict[str, Any]:
        """Runs a call until it has its result or asks something.

        Args:
            capability: what the client declared.
            work: the call; gets the client to ask, and what tells the progress to whichever of its
                requests is open.
            on_progress: of this request.
        """
        conversation = _Conversation(self._waiting)
        conversation.on_progress = on_progress
        asker = Asker(capability=capability, ask=conversation.ask)
        self._tasks.start_soon(conversation.run, work, asker)
        return await conversation.next()

    async def resume(self, params: Raw, *, on_progress: OnProgress | None) -> dict[str, Any]:
        """Goes on with the call that asked; its result, or its next question.

        Args:
            params: of the client's request.
            on_progress: of this request.

        Raises:
            MCPError: nothing waits for this answer any more.
        """
        question = self._waiting.pop(str(params.get("requestState")), None)
        given = mapping_in(params.get("inputResponses"))
        if question is None or not isinstance(given.get(_KEY), Mapping):
            raise MCPError(INVALID_PARAMS, "Nothing waits for this answer; make the call anew.")
        question.answer = given[_KEY]
        question.conversation.on_progress = on_progress
        question.answered.set()
        return await question.conversation.next()


_KEY = "question"


class _Question:
    def __init__(self, conversation: "_Conversation", params: Raw) -> None:
        self.conversation = conversation
        self.params = params
        self.state = _STATE + token_urlsafe(24)
        self.told = False
        self.answered = anyio.Event()
        self.answer: Raw | None = None


class _Conversation:
    """One call that can ask; read by one request of the client after another."""

    def __init__(self, waiting: dict[str, _Question]) -> None:
        self._waiting = waiting
        self._asked: list[_Question] = []
        self._result: dict[str, Any] | None = None
        self._failure: Exception | None = None
        self._news = anyio.Event()
        self._scope = anyio.CancelScope()
        self.on_progress: OnProgress | None = None

    async def run(self, work: Work, asker: Asker) -> None:
        with self._scope:
            try:
                self._result = await work(asker, self._progress)
            except Exception as error:  # noqa: BLE001 - raised again in the request that waits for it
                self._failure = error
        self._tell()

    async def next(self) -> dict[str, Any]:
        """The result, or a result that asks for the next answer."""
        async with self._abandoned_with_its_reader():
            while True:
                for question in self._asked:
                    if not question.told:
                        question.told = True
                        self._waiting[question.state] = question
                        request = {"method": _METHOD, "params": question.params}
                        return {
                            "resultType": "input_required",
                            "inputRequests": {_KEY: request},
                            "requestState": question.state,
                        }
                if self._failure is not None:
                    raise self._failure
                if self._result is not None:
                    return self._result
                await self._news.wait()

    @asynccontextmanager
    async def _abandoned_with_its_reader(self) -> AsyncGenerator[None]:
        # A client that leaves while its request is open has cancelled the call.
        try:
            yield
        except anyio.get_cancelled_exc_class():
            self._scope.cancel()
            raise

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self.on_progress is not None:
            await self.on_progress(progress, total, message)

    async def ask(self, params: Raw) -> Raw:
        if len(self._waiting) >= _OPEN_LIMIT:
            raise CannotAsk("too many questions are open")
        question = _Question(self, params)
        self._asked.append(question)
        self._tell()
        try:
            with anyio.move_on_after(ASKS_LIMIT_S):
                await question.answered.wait()
        finally:
            self._asked.remove(question)
            self._waiting.pop(question.state, None)
        if question.answer is None:
            raise CannotAsk("nobody answered in time")
        return question.answer

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()
