"""The examples of docs/check-back.md print the shown output; its tables name all settings and errors."""

from __future__ import annotations

import pytest

import txnkafka.checkback
from tests.pages import ROOT, examples
from txnkafka.checkback import CheckBackConfig
from txnkafka.checkback.producer import RESOLVER_SETTINGS
from txnkafka.config import config_defs

PAGE = "docs/check-back.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
EXAMPLES = examples(PAGE)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number: int) -> None:
    example = EXAMPLES[number]
    assert example.run({"__name__": "__main__"}) == example.printed != ""


def test_settings() -> None:
    rows = config_defs(CheckBackConfig)
    for name in RESOLVER_SETTINGS:
        assert f"`{name.replace('.', '_')}`" in TEXT
        default = rows[name].default
        assert default is not None
        assert f" {default.replace('-1', 'the broker')}" in TEXT


def test_errors() -> None:
    names = [name for name in txnkafka.checkback.__all__ if name.endswith("Error")]
    assert [name for name in names if name != "CheckBackError" and f"`{name}`" not in TEXT] == []
