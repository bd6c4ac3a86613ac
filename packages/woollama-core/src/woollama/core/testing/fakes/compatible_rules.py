"""What ``POST /v1/chat/completions`` refuses of a body of good shape."""

from collections.abc import Sequence

from woollama.core.testing.fakes.compatible_shapes import (
    AssistantTurn,
    ChatBody,
    NamedChoice,
    ToolTurn,
)
from woollama.core.testing.fakes.openai_rules import Refused, check_strict_schema, openai_error

__all__ = ["check_body", "check_cap", "check_effort"]


def check_body(body: ChatBody) -> None:
    """Refuses parts that do not belong together.

    Raises:
        Refused: 400.
    """
    _check_history(body.messages)
    _check_tools(body)
    if body.stream_options is not None and not body.stream:
        raise _refused(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
        )
    if body.top_logprobs is not None and not body.logprobs:
        raise _refused("'top_logprobs' is only allowed when 'logprobs' is true.", "top_logprobs")


def check_cap(body: ChatBody, field: str) -> None:
    """Refuses the output cap under any name but ``field`` (OC-2).

    Raises:
        Refused: 400.
    """
    other = "max_tokens" if field == "max_completion_tokens" else "max_completion_tokens"
    if getattr(body, other) is not None:
        raise Refused(
            openai_error(
                400,
                f"Unsupported parameter: '{other}' is not supported with this model. "
                f"Use '{field}' instead.",
                param=other,
                code="unsupported_parameter",
            )
        )


def check_effort(body: ChatBody, default: str | None) -> None:
    """Refuses an effort beside tools, also the model's own when none was sent (A-14, OC-43).

    Raises:
        Refused: 400.
    """
    effort = body.reasoning_effort or default
    if body.tools and effort not in {None, "none"}:
        raise _refused(
            "Function tools with reasoning_effort are not supported for "
            f"{body.model} in /v1/chat/completions. To use function tools, use /v1/responses or "
            "set reasoning_effort to 'none'.",
            "reasoning_effort",
        )


def _refused(message: str, param: str) -> Refused:
    return Refused(openai_error(400, message, param=param))


def _check_history(messages: Sequence[object]) -> None:
    waiting: list[str] = []
    for i, message in enumerate(messages):
        if isinstance(message, ToolTurn):
            if message.tool_call_id not in waiting:
                raise _refused(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceding message with 'tool_calls'.",
                    f"messages[{i}].role",
                )
            waiting.remove(message.tool_call_id)
            continue
        _check_answered(waiting, i)
        if isinstance(message, AssistantTurn):
            calls = message.tool_calls or []
            waiting = [call.id for call in calls]
            if not (calls or message.content is not None or message.refusal):
                raise _refused(
                    "An assistant message needs 'content', 'refusal' or 'tool_calls'.",
                    f"messages[{i}].content",
                )
    _check_answered(waiting, len(messages))


def _check_answered(waiting: Sequence[str], place: int) -> None:
    if waiting:
        raise _refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(waiting),
            f"messages[{place}].role",
        )


def _check_tools(body: ChatBody) -> None:
    tools = body.tools or []
    for i, tool in enumerate(tools):
        if tool.function.strict:
            check_strict_schema(
                tool.function.parameters or {},
                f"function '{tool.function.name}'",
                f"tools[{i}].function.parameters",
            )
    if body.tool_choice is not None and not tools:
        raise _refused("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
    if body.parallel_tool_calls is not None and not tools:
        raise _refused(
            "'parallel_tool_calls' is only allowed when 'tools' are specified.",
            "parallel_tool_calls",
        )
    if isinstance(body.tool_choice, NamedChoice):
        name = body.tool_choice.function.name
        if name not in {tool.function.name for tool in tools}:
            raise _refused(f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice")
