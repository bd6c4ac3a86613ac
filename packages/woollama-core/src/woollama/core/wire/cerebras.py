"""The dialect ``cerebras``: Chat Completions by a server that refuses every property it lacks.

Source: the wire page ``openai-chat``, its rules CB-1 to CB-9. An earlier turn's thinking is sent as
``reasoning``, the output cap as ``max_completion_tokens``, and nothing opaque at all. Replies are
read as those of ``compatible``, under either name of the thinking (A-4).
"""

from woollama.core.wire.chat import ChatCodec
from woollama.core.wire.codec import Bearer, Dialect

__all__ = ["CEREBRAS"]

CEREBRAS = Dialect(
    name="cerebras",
    family="openai",
    codec=ChatCodec("cerebras", reasoning="reasoning", output_field="max_completion_tokens"),
    key_place=Bearer(),
)
"""Chat Completions as Cerebras speaks it (A-2)."""
