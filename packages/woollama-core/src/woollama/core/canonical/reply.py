"""A whole reply and its OpenAI shape (wire README, section 2)."""

from collections.abc import Mapping
from typing import Any

from woollama.core.canonical.messages import AssistantMessage, message_to_openai
from woollama.core.canonical.value import NOTHING, Value

__all__ = ["Reply", "Usage", "usage_to_openai"]


class Usage(Value, frozen=True, kw_only=True):
    """Token counts as the server reported them; None is unknown and a reported 0 is kept (N-14)."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None


def usage_to_openai(usage: Usage) -> dict[str, Any]:
    """OpenAI's ``usage`` object; detail objects only when something is in them."""
    prompt = usage.prompt_tokens or 0
    completion = usage.completion_tokens or 0
    total = usage.total_tokens if usage.total_tokens is not None else prompt + completion
    body: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
    }
    details = {
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    details = {key: count for key, count in details.items() if count is not None}
    if details:
        body["prompt_tokens_details"] = details
    if usage.reasoning_tokens is not None:
        body["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    if usage.cost is not None:
        body["cost"] = usage.cost
    return body


class Reply(Value, frozen=True, kw_only=True):
    """One assistant message and how it came about.

    Attributes:
        id: the server's id of the reply, or one made for it.
        created: Unix time in seconds.
        model: the server's name of the model, None when it gave none.
        finish_reason: ``stop``, ``length``, ``tool_calls``, ``content_filter`` or ``error``.
        native_finish_reason: the server's own word.
        usage: None when unknown.
        extra: what the dialect kept of the reply beside these; ``logprobs`` as Chat Completions
            writes them.
    """

    id: str
    created: int
    model: str | None
    message: AssistantMessage
    finish_reason: str
    native_finish_reason: str | None = None
    usage: Usage | None = None
    extra: Mapping[str, Any] = NOTHING

    def to_openai(
        self, *, model: str | None = None, reasoning: str = "reasoning"
    ) -> dict[str, Any]:
        """The ``chat.completion`` object with exactly one choice.

        Args:
            model: the name to show instead of the server's.
            reasoning: the key under which the thinking is shown.
        """
        choice: dict[str, Any] = {
            "index": 0,
            "message": message_to_openai(self.message, reasoning=reasoning),
            "finish_reason": self.finish_reason,
            "native_finish_reason": self.native_finish_reason,
        }
        if "logprobs" in self.extra:
            choice["logprobs"] = self.extra["logprobs"]
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": model if model is not None else self.model,
            "choices": [choice],
            "usage": usage_to_openai(self.usage) if self.usage is not None else None,
        }
