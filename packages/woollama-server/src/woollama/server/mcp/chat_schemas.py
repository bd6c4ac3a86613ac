"""The schemas of the tool ``chat``: what it takes, what it gives."""

from typing import Any

__all__ = ["chat_input", "chat_output"]


def chat_input(*, only_recipes: bool) -> dict[str, Any]:
    """The schema of the arguments; without ``model`` where only recipes are offered."""
    model = {
        "model": {
            "type": "string",
            "description": "A model as provider/model, or woollama/NAME for a recipe or pattern. "
            "Beside 'recipe' or 'pattern' it is what that runs on.",
        }
    }
    return {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "The question, as one user message."},
            "messages": {
                "type": "array",
                "description": "A conversation in the shape of OpenAI's Chat Completions.",
                "items": {
                    "type": "object",
                    "properties": {
                        "role": {
                            "type": "string",
                            "enum": ["system", "developer", "user", "assistant", "tool"],
                        },
                        "content": {
                            "description": "Text, or a list of parts (text, image_url).",
                            "anyOf": [
                                {"type": "string"},
                                {"type": "array", "items": {"type": "object"}},
                                {"type": "null"},
                            ],
                        },
                    },
                    "required": ["role"],
                },
            },
            **({} if only_recipes else model),
            "recipe": {"type": "string", "description": "The name of a recipe."},
            "pattern": {"type": "string", "description": "The name of a pattern."},
            "variables": {
                "type": "object",
                "description": "Values for the variables of the recipe or pattern, by name.",
            },
            "options": {
                "type": "object",
                "description": "Fields of the request, such as temperature or max_tokens.",
            },
        },
        "additionalProperties": False,
    }


def chat_output() -> dict[str, Any]:
    """The schema of the structured answer."""
    return {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The answer."},
            "model": {"type": "string", "description": "The model that gave it."},
            "finish_reason": {"type": "string"},
            "usage": {
                "type": "object",
                "description": "Tokens of the whole run, in OpenAI's shape.",
                "properties": {
                    "prompt_tokens": {"type": "integer"},
                    "completion_tokens": {"type": "integer"},
                    "total_tokens": {"type": "integer"},
                },
            },
            "reasoning": {"type": "string", "description": "What the model thought."},
            "refusal": {"type": "string"},
            "dropped": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Parameters that the configuration left out.",
            },
        },
        "required": ["text", "finish_reason"],
    }
