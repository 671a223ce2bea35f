"""The examples of docs/clients.md run, and print what the page shows."""

from __future__ import annotations

import pytest

from tests.pages import examples

EXAMPLES = examples("docs/clients.md")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number: int) -> None:
    example = EXAMPLES[number]
    assert example.run({}) == example.printed != ""
