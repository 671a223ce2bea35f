"""Every row of the error table is what Kafka's own classes say of its code."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

import pytest

from tests.conformance.kafka_log import OPTIONS, compiled
from txnkafka.error_codes import ErrorCode, Family

# The answer to a marker, whose sender is a coordinator and no producer: a later one is in its place.
OF_COORDINATORS = {ErrorCode.TRANSACTION_COORDINATOR_FENCED}


class Row(NamedTuple):
    """What ErrorCodes.java says of a code."""

    code: int
    name: str
    family: str
    retriable: bool
    state: str


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    command = ["java", *OPTIONS, "-cp", compiled(), "ErrorCodes"]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    words = map(str.split, run.stdout.splitlines())
    return [Row(int(code), name, family, flag == "true", state) for code, name, family, flag, state in words]


def test_codes_and_names_are_kafkas(rows: list[Row]) -> None:
    assert {row.code: row.name for row in rows} == {int(code): code.name for code in ErrorCode}


def test_families_are_the_base_classes_of_kafkas_exceptions(rows: list[Row]) -> None:
    families = {row.code: row.family for row in rows if row.code}
    assert families == {int(code): code.family.value for code in ErrorCode if code}
    assert [row.family for row in rows if not row.code] == ["-"]
    assert set(families.values()) == {family.value for family in Family}


def test_kafka_retries_the_same_codes(rows: list[Row]) -> None:
    assert {row.code for row in rows if row.retriable} == {int(code) for code in ErrorCode if code.retriable}


def test_kafkas_producer_ends_with_the_same_codes(rows: list[Row]) -> None:
    fatal = {row.code for row in rows if row.state == "FATAL_ERROR"}
    assert fatal == {code for code in ErrorCode if code.fatal} - OF_COORDINATORS


def test_kafkas_producer_aborts_for_what_is_abortable(rows: list[Row]) -> None:
    """For more besides: whatever is not fatal, also codes that no producer is ever answered with."""
    aborts = {row.code for row in rows if row.state == "ABORTABLE_ERROR"}
    assert {code for code in ErrorCode if code.abortable} < aborts
