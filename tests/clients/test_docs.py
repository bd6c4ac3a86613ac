"""The programs of the pages that use an SDK, run against the real daemon as the pages say."""

from collections.abc import Generator

import pytest

from tests.docs.blocks import blocks_of, pages
from tests.docs.story import SDKS, read_page
from tests.docs.upstream import serve_upstream

WITH_SDKS = [
    page
    for page in pages()
    if any(
        block.language == "python" and f"from {sdk} import" in block.text
        for block in blocks_of(page)
        for sdk in SDKS
    )
]


@pytest.fixture(scope="module")
def upstream() -> Generator[str]:
    with serve_upstream() as address:
        yield address


@pytest.mark.parametrize("page", WITH_SDKS)
def test_a_page_with_an_sdk_does_what_it_says(page: str, upstream: str) -> None:
    read_page(page, upstream, sdks=SDKS)


def test_the_first_pages_that_a_reader_sees_are_among_them() -> None:
    assert {"README.md", "docs/howto/clients.md", "docs/tutorial/first-steps.md"} <= set(WITH_SDKS)
