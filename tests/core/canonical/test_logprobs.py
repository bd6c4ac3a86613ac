"""The probabilities of tokens, which a caller asked for, on their way from deltas to a reply."""

from typing import Any

from woollama.core.canonical import Finish, OpaqueDelta, Start, TextDelta, assemble, deltas_of

TOKENS: list[dict[str, Any]] = [{"token": text, "logprob": -0.5} for text in ("a", "b", "no")]


def test_they_add_up_in_order_and_stand_in_the_choice() -> None:
    reply = assemble(
        [
            Start("c", "m", 1),
            OpaqueDelta("compatible", "logprobs", {"content": TOKENS[:1]}),
            TextDelta("ab"),
            OpaqueDelta("compatible", "logprobs", {"content": TOKENS[1:2], "refusal": TOKENS[2:]}),
            Finish("stop"),
        ]
    )
    expected = {"content": TOKENS[:2], "refusal": TOKENS[2:]}
    assert expected == reply.to_openai()["choices"][0]["logprobs"]
    assert {} == reply.message.opaque
    assert reply == assemble(deltas_of(reply))


def test_a_reply_without_any_does_not_speak_of_them() -> None:
    reply = assemble([Start("c", "m", 1), TextDelta("a"), Finish("stop")])
    assert "logprobs" not in reply.to_openai()["choices"][0]
