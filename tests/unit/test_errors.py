"""Errors and Kafka's codes."""

from __future__ import annotations

import collections

import pytest

from txnkafka import errors

CLASSES = [getattr(errors, name) for name in errors.__all__ if name not in ("class_of", "error_for")]


def test_a_code_belongs_to_one_error() -> None:
    """And to its subclasses: a file that has changed is not damaged, but caught like damage."""
    codes = collections.Counter(each.code for each in CLASSES if "code" in vars(each) and each.code != -1)
    assert len(codes) == 27
    assert set(codes.values()) == {1}


@pytest.mark.parametrize("kind", CLASSES)
def test_what_a_client_does_about_an_error(kind: type[errors.KafkaError]) -> None:
    """An error has at most one of these properties; the retriable ones are those of Kafka's table."""
    error = kind("why")
    assert error.retriable == (error.code in (2, 3, 7, 13, 51, 56))
    assert error.retriable + error.txn_requires_abort + error.fatal <= 1


def test_answers_to_a_produce_request() -> None:
    abortable = {each.code for each in CLASSES if each("why").txn_requires_abort}
    assert abortable == {10, 17, 18, 22, 25, 32, 42, 45, 47, 48, 76, 82, 87, 120}
    fatal = {each.code for each in CLASSES if each("why").fatal}
    assert fatal == {35, 49, 52, 90}
