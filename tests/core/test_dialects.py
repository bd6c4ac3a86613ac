"""The façade in every dialect: efforts, advice, probabilities and texts that cannot be sent."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from tests.core.wire.peers import EFFORT_WORDS, EFFORTS
from woollama.core import (
    ModelRegistry,
    complete,
    complete_response,
    complete_stream,
)
from woollama.core.errors import CannotEncode, InferenceError, ProviderError, RequestError
from woollama.core.providers import ModelSettings
from woollama.core.testing.fake import Fake, FakeTransport, say
from woollama.core.testing.fakes import CompatibleFake, ResponsesFake
from woollama.core.testing.kits import KITS
from woollama.core.wire import DIALECTS

HI: Mapping[str, Any] = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
DECLARED = {"m": ModelSettings(efforts=("low", "high"), effort="high")}
every_dialect = pytest.mark.parametrize("dialect", sorted(DIALECTS))


def behind(dialect: str, fake: Fake, **fields: Any) -> dict[str, Any]:
    """The arguments that lead a call to the fake."""
    registry = ModelRegistry([KITS[dialect].provider(**fields)])
    return {"registry": registry, "transport": FakeTransport(fake), "api_key": "k"}


async def in_full(*arguments: Any, **fields: Any) -> str:
    return await complete(*arguments, **fields)


async def whole(*arguments: Any, **fields: Any) -> str:
    reply = await complete_response(*arguments, **fields)
    return reply["choices"][0]["message"]["content"]


async def streamed(*arguments: Any, **fields: Any) -> str:
    pieces: AsyncIterator[str] = complete_stream(*arguments, **fields)
    return "".join([piece async for piece in pieces])


Way = Callable[..., Any]
every_way = pytest.mark.parametrize("way", [in_full, whole, streamed])


@every_dialect
@every_way
async def test_a_13_the_declared_effort_is_sent_in_the_dialects_own_way(
    dialect: str, way: Way
) -> None:
    fake = KITS[dialect].fake([say("ok")])
    assert "ok" == await way("up/m", [HI], **behind(dialect, fake, model_settings=DECLARED))
    assert EFFORTS[dialect].items() <= json.loads(fake.requests[0].body).items()


@every_dialect
async def test_a_13_a_model_that_declares_none_is_sent_none(dialect: str) -> None:
    fake = KITS[dialect].fake([say("ok")])
    await complete("up/m", [HI], **behind(dialect, fake))
    assert EFFORT_WORDS.isdisjoint(json.loads(fake.requests[0].body))


@every_dialect
@every_way
async def test_ru_17_an_effort_outside_the_list_is_refused_with_the_list(
    dialect: str, way: Way
) -> None:
    fake = KITS[dialect].fake([])
    how = behind(dialect, fake, model_settings=DECLARED)
    with pytest.raises(RequestError, match="takes the efforts low, high, not 'max'") as caught:
        await way("up/m", [HI], params={"reasoning_effort": "max"}, **how)
    assert (400, "reasoning_effort", []) == (
        caught.value.status,
        caught.value.param,
        fake.requests,
    )


@every_way
async def test_p_22_advice_stands_behind_the_peers_words(way: Way) -> None:
    fake = CompatibleFake([say("ok")], effort_beside_tools="refuse")
    params = {"tools": [TOOL], "reasoning_effort": "high"}
    with pytest.raises(ProviderError) as caught:
        await way("up/m", [HI], params=params, **behind("compatible", fake))
    error = caught.value
    assert error.hint is not None
    assert f"{error.message} {error.hint}" == str(error)
    assert 'dialect = "responses"' in error.hint
    # Only the dialect differs.
    taken = ResponsesFake([say("ok")], models=["m"])
    assert "ok" == await way("up/m", [HI], params=params, **behind("responses", taken))


async def test_p_22_another_refusal_gets_no_advice() -> None:
    fake = CompatibleFake([say("ok")])
    with pytest.raises(ProviderError) as caught:
        await complete(
            "up/m", [HI], params={"tool_choice": "required"}, **behind("compatible", fake)
        )
    assert (400, None) == (caught.value.status, caught.value.hint)


@every_dialect
@every_way
async def test_c_3_several_choices_are_refused_and_not_lost(dialect: str, way: Way) -> None:
    fake = KITS[dialect].fake([])
    with pytest.raises(CannotEncode) as caught:
        await way("up/m", [HI], params={"n": 2}, **behind(dialect, fake))
    assert ("n", []) == (caught.value.param, fake.requests)


@every_dialect
@every_way
async def test_half_a_character_is_refused_by_our_own_error(dialect: str, way: Way) -> None:
    fake = KITS[dialect].fake([])
    message = {"role": "user", "content": "broken: \udcff"}
    with pytest.raises(InferenceError, match="half of a character"):
        await way("up/m", [message], **behind(dialect, fake))
    assert [] == fake.requests
