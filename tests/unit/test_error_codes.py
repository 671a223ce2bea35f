"""The table of Kafka's error codes: complete, consistent, and the only place of codes and flags.

tests/conformance/test_error_codes.py compares the rows with Kafka's own classes.
"""

from __future__ import annotations

import json

import pytest

from txnkafka import errors
from txnkafka._core import producer_rules
from txnkafka.error_codes import ErrorCode, Family, Outcome
from txnkafka.errors import KafkaError, class_of

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KafkaError)]
WITH_A_CODE = [kind for kind in CLASSES if "code" in vars(kind) and not issubclass(kind, errors.ClientError)]


def test_codes_have_no_gaps() -> None:
    assert [int(row) for row in ErrorCode] == list(range(-1, 137))
    assert len(ErrorCode.__members__) == 138


def test_a_code_leads_to_its_name() -> None:
    assert ErrorCode.of(47) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert [ErrorCode.of(code).name for code in (-1, 0, 133)] == [
        "UNKNOWN_SERVER_ERROR",
        "NONE",
        "SHARE_SESSION_LIMIT_REACHED",
    ]


@pytest.mark.parametrize("code", [-2, 137, 32767])
def test_a_code_of_a_later_kafka_is_an_unknown_error(code: int) -> None:
    assert ErrorCode.of(code) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_what_is_retried_neither_aborts_nor_ends_anything() -> None:
    assert {row.family for row in ErrorCode if row.retriable} == {Family.RETRIABLE, Family.REFRESH}
    assert {row.outcome for row in ErrorCode if row.retriable} == {Outcome.NONE}
    assert not [row for row in ErrorCode if row.abortable and row.fatal]
    assert ErrorCode.TRANSACTION_ABORTABLE.abortable
    assert [row for row in ErrorCode if row.family is Family.ABORTABLE] == [ErrorCode.TRANSACTION_ABORTABLE]


def test_success_is_no_error() -> None:
    success = ErrorCode.NONE
    assert (success.family, success.retriable, success.abortable, success.fatal) == (
        Family.PLAIN,
        False,
        False,
        False,
    )


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_has_a_row(kind: type[KafkaError]) -> None:
    assert isinstance(kind.code, ErrorCode)
    error, row = kind("why"), kind.code
    assert (error.retriable, error.txn_requires_abort, error.fatal) == (
        row.retriable,
        row.abortable,
        row.fatal,
    )


@pytest.mark.parametrize("kind", WITH_A_CODE)
def test_a_code_leads_to_its_class(kind: type[KafkaError]) -> None:
    assert class_of(kind.code) is kind


def test_a_code_without_a_class_gets_one_with_its_name() -> None:
    kind = class_of(ErrorCode.NOT_CONTROLLER)
    assert (kind.__name__, kind.code, kind.__base__) == ("NotControllerError", 41, KafkaError)
    assert class_of(41) is kind
    assert class_of(ErrorCode.LISTENER_NOT_FOUND).__name__ == "ListenerNotFoundError"


def test_an_unknown_code_is_a_kafka_error() -> None:
    assert class_of(9999) is KafkaError
    assert class_of(ErrorCode.UNKNOWN_SERVER_ERROR) is KafkaError


def test_an_error_of_a_response_has_the_brokers_message_or_the_name_of_its_code() -> None:
    assert repr(errors.error_for(36)) == "TopicAlreadyExistsError('TOPIC_ALREADY_EXISTS')"
    assert str(errors.error_for(36, "orders exists")) == "orders exists"


def test_every_refusal_of_the_producer_table_has_a_class() -> None:
    """Except duplicates, which are answered with success, and errors that only invalid requests cause."""
    refused = set(producer_rules.CODES) - {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}
    assert len(refused) == 7
    assert [code for code in refused if class_of(code) not in CLASSES[1:]] == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_code_is_shown_as_a_number() -> None:
    code = errors.CorruptRecordError.code
    assert (f"{code}", str(code), json.dumps(code)) == ("2", "2", "2")
