"""Valid names of topics."""

from __future__ import annotations

import pytest

from txnkafka.errors import InvalidTopicError
from txnkafka.model import validate_topic

STRANGE = ("a b", "a/b", "a\n", "\nt", "\u00fc", "\udc80", "a\0")


@pytest.mark.parametrize("name", ["t", "a.b", "...", "_", "-", "A9", "__transaction_state", "x" * 249])
def test_a_name_of_a_topic(name: str) -> None:
    validate_topic(name)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "topic name '' is not allowed"),
        (".", "topic name '.' is not allowed"),
        ("..", "topic name '..' is not allowed"),
        ("x" * 250, "is longer than 249 characters"),
        *((name, "contains characters other than") for name in STRANGE),
    ],
)
def test_no_name_of_a_topic(name: str, fault: str) -> None:
    with pytest.raises(InvalidTopicError, match=fault.replace(".", r"\.")) as caught:
        validate_topic(name)
    assert caught.value.code == 17
    assert str(caught.value).isprintable()
