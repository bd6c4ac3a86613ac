"""P-42 for our own patterns: an image is whole, of a size that is taken, for a model that sees."""

import base64
from typing import Any

import pytest

from woollama.core import Capabilities, ModelRegistry, ModelSettings, Provider
from woollama.core.canonical import Message, message_from_openai
from woollama.core.errors import RequestError
from woollama.core.patterns.images import LIMIT_IMAGE_BYTES, check_images
from woollama.core.providers import Target

PNG = base64.b64encode(b"\x89PNG\r\n").decode()


def target(
    capabilities: Capabilities = Capabilities(),  # noqa: B008
    **settings: Any,
) -> Target:
    provider = Provider(
        "up",
        "http://up.test/v1",
        capabilities=capabilities,
        model_settings={"m": ModelSettings(**settings)},
    )
    return ModelRegistry([provider]).resolve("up/m")


def showing(*urls: str) -> list[Message]:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    content = [{"type": "text", "text": "What is it?"}, *parts]
    return [message_from_openai({"role": "user", "content": content}, "messages[0]")]


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{PNG}",
        f"DATA:image/jpeg;base64,{PNG}",
        f"data:image/svg+xml;charset=utf-8;base64,{PNG}",
        "https://example.org/cat.png",
    ],
)
async def test_an_image_that_is_one_passes(url: str) -> None:
    await check_images(showing(url), target())


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("data:image/png,plain", "must be an http"),
        ("data:text/plain;base64,aGk=", "must be an http"),
        ("data:;base64,aGk=", "must be an http"),
        ("data:image/png;base64,", "holds no data"),
        ("data:image/png;base64,a", "not base64"),
        ("data:image/png;base64,!!!!", "not base64"),
    ],
)
async def test_p_42_a_bad_image_is_refused_by_place(url: str, said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        await check_images(showing("https://example.org/a.png", url), target())
    assert (400, "input[0].content[2].image_url") == (caught.value.status, caught.value.param)


@pytest.mark.parametrize("padding", [0, 1, 2])
async def test_p_42_twenty_mebibytes_are_the_most(padding: int) -> None:
    size = LIMIT_IMAGE_BYTES - padding
    data = base64.b64encode(bytes(size)).decode()
    await check_images(showing(f"data:image/png;base64,{data}"), target())
    for more in (padding + 1, padding + 1000):
        data = base64.b64encode(bytes(size + more)).decode()
        with pytest.raises(RequestError, match=f"{LIMIT_IMAGE_BYTES} bytes at most"):
            await check_images(showing(f"data:image/png;base64,{data}"), target())


@pytest.mark.parametrize(
    "declared",
    [
        target(vision=False),
        target(Capabilities(accepts_audio=True)),
        target(Capabilities(True), vision=False),
    ],
)
async def test_p_42_a_model_that_is_declared_must_see(declared: Target) -> None:
    with pytest.raises(RequestError, match="takes no images") as caught:
        await check_images(showing("https://example.org/a.png"), declared)
    assert (400, "unsupported_content") == (caught.value.status, caught.value.kind)
    await check_images([message_from_openai({"role": "user", "content": "hi"}, "m")], declared)


@pytest.mark.parametrize(
    "seeing", [target(), target(vision=True), target(Capabilities(accepts_image_parts=True))]
)
async def test_a_model_that_sees_or_of_which_nothing_is_known_is_asked(seeing: Target) -> None:
    await check_images(showing(f"data:image/png;base64,{PNG}"), seeing)


async def test_only_what_a_user_shows_is_looked_at() -> None:
    told = message_from_openai({"role": "assistant", "content": "data:image/png,x"}, "m")
    await check_images([told], target(vision=False))
