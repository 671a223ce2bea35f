"""The examples of docs/two-phase-commit.md run one after another, and print what the page shows."""

from __future__ import annotations

from tests.pages import examples


def test_examples() -> None:
    names: dict[str, object] = {}
    found = examples("docs/two-phase-commit.md")
    assert len(found) == 3
    for example in found:
        assert example.run(names) == example.printed != ""
