"""Control records: every rule about keys and end transaction markers."""

from __future__ import annotations

import struct

import pytest

from txnkafka.errors import CorruptRecordError
from txnkafka.record import ControlRecordType, EndTransactionMarker, parse_control_key, parse_end_txn_marker

ABORT_KEY, COMMIT_KEY = bytes.fromhex("00000000"), bytes.fromhex("00000001")
VALUE_42 = bytes.fromhex("00000000002a")


@pytest.mark.parametrize("control_type", [t for t in ControlRecordType if t >= 0])
def test_known_types(control_type: ControlRecordType) -> None:
    assert parse_control_key(struct.pack(">hh", 0, control_type)) is control_type


def test_numbers_of_the_types_are_kafkas() -> None:
    names = ["ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION"]
    assert [ControlRecordType(number).name for number in range(7)] == [*names, "KRAFT_VOTERS"]


@pytest.mark.parametrize("number", [7, 100, -1, -7, 32767])
def test_other_numbers_are_unknown(number: int) -> None:
    assert parse_control_key(struct.pack(">hh", 0, number)) is ControlRecordType.UNKNOWN


@pytest.mark.parametrize("key", [b"\0\1\0\1", b"\x7f\xff\0\1", COMMIT_KEY + b"more"])
def test_higher_versions_and_longer_keys_read_as_version_0(key: bytes) -> None:
    assert parse_control_key(key) is ControlRecordType.COMMIT


@pytest.mark.parametrize("key", [None, b"", COMMIT_KEY[:3], b"\xff\xff\0\1", b"\x80\0\0\0"])
def test_short_keys_and_negative_versions_are_errors(key: bytes | None) -> None:
    with pytest.raises(CorruptRecordError, match="key"):
        parse_control_key(key)
    with pytest.raises(CorruptRecordError, match="key"):
        parse_end_txn_marker(key, VALUE_42)


def test_markers() -> None:
    abort, commit = ControlRecordType.ABORT, ControlRecordType.COMMIT
    assert parse_end_txn_marker(ABORT_KEY, VALUE_42) == EndTransactionMarker(abort, 42)
    assert parse_end_txn_marker(memoryview(COMMIT_KEY), memoryview(VALUE_42)) == EndTransactionMarker(
        commit, 42
    )
    assert parse_end_txn_marker(COMMIT_KEY, b"\0\0\xff\xff\xff\xff").coordinator_epoch == -1


@pytest.mark.parametrize("value", [b"\0\1" + VALUE_42[2:], b"\x7f\xff" + VALUE_42[2:], VALUE_42 + b"more"])
def test_higher_versions_and_longer_values_read_as_version_0(value: bytes) -> None:
    assert parse_end_txn_marker(ABORT_KEY, value).coordinator_epoch == 42


@pytest.mark.parametrize(
    "value", [None, b"", b"\0", b"\0\0", VALUE_42[:5], b"\xff\xff" + VALUE_42[2:], b"\x80\0"]
)
def test_short_values_and_negative_versions_are_errors(value: bytes | None) -> None:
    with pytest.raises(CorruptRecordError, match="marker"):
        parse_end_txn_marker(COMMIT_KEY, value)


@pytest.mark.parametrize("number", [-1, 2, 3, 4, 5, 6, 7])
def test_only_abort_and_commit_end_transactions(number: int) -> None:
    with pytest.raises(CorruptRecordError, match="does not end a transaction"):
        parse_end_txn_marker(struct.pack(">hh", 0, number), VALUE_42)
    assert not parse_control_key(struct.pack(">hh", 0, number)).ends_transaction
