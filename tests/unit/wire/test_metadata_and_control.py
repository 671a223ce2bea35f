"""Records of ``__cluster_metadata`` and control records: frames, bytes seen on real brokers, unknown ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.wire.records import LogRecord, decode_control_body, decode_metadata
from txnkafka.wire.records.metadata import RECORDS

FEATURE_LEVEL = bytes.fromhex("01 0c 00 11") + b"metadata.version" + bytes.fromhex("001e 00")
LEADER_CHANGE = bytes.fromhex("0000 00000001 02 00000001 00 02 00000001 00 00")


def test_the_observed_feature_level() -> None:
    assert decode_metadata(FEATURE_LEVEL) == LogRecord(
        "feature_level_record",
        12,
        value_version=0,
        value={"name": "metadata.version", "feature_level": 30},
    )


def test_the_observed_record_of_an_idle_controller() -> None:
    assert decode_metadata(bytes.fromhex("01140000")) == LogRecord(
        "no_op_record", 20, value_version=0, value={}
    )


def test_api_keys() -> None:
    assert set(RECORDS) == set(range(30)) - {6, 13, 16}


@pytest.mark.parametrize(
    ("value", "api_key", "version", "error"),
    [
        (b"", None, None, "frame: varint is cut off (byte 0)"),
        (b"\x01\x0c", None, None, "frame: varint is cut off (byte 2)"),
        (b"\x00\x0c\x00", None, None, "frame version 0 is not known"),
        (b"\x02\x0c\x00", None, None, "frame version 2 is not known"),
        (b"\x01\x06\x03", 6, 3, "api key 6 is not known"),
        (b"\x01\x80\x01\x00", 128, 0, "api key 128 is not known"),
    ],
)
def test_an_unknown_frame_is_shown_in_hex(
    value: bytes, api_key: int | None, version: int | None, error: str
) -> None:
    record = decode_metadata(value)
    assert record == LogRecord("unknown", api_key, value_version=version, error=error, raw_value=value)
    assert record.as_dict()["raw_value"] == value.hex()


def test_a_null_value_is_no_record_of_this_log() -> None:
    record = decode_metadata(None)
    assert (record.type, record.error, record.is_tombstone) == ("unknown", "the value is null", False)


@pytest.mark.parametrize(
    ("value", "fields", "error"),
    [
        (b"\x01\x0c\x01\x00", None, "feature_level_record version 1 is not known (known: 0) (byte 0)"),
        (FEATURE_LEVEL[:-1], None, "varint is cut off (byte 22)"),
        (
            FEATURE_LEVEL + b"x",
            {"name": "metadata.version", "feature_level": 30},
            "1 bytes are left over (byte 23)",
        ),
    ],
)
def test_a_known_record_that_cannot_be_read(
    value: bytes, fields: dict[str, object] | None, error: str
) -> None:
    record = decode_metadata(value)
    assert (record.type, record.value, record.error) == ("feature_level_record", fields, error)
    assert record.raw_value == value


@pytest.mark.parametrize(
    ("bits", "shown"),
    [("7ff8000000000000", "nan"), ("fff0000000000000", "-inf"), ("4090020000000000", 1024.5)],
)
def test_numbers_that_json_cannot_hold_are_text(bits: str, shown: object) -> None:
    record = decode_metadata(bytes.fromhex("010e00 01 02 71" + bits + "00 00"))
    assert record.as_dict()["value"] == {"entity": [], "key": "q", "value": shown, "remove": False}


@pytest.mark.parametrize(
    ("control_type", "value", "name", "fields"),
    [
        (0, "0000 00000007", "abort", {"coordinator_epoch": 7}),
        (1, "0000 00000007", "commit", {"coordinator_epoch": 7}),
        (1, "0009 00000007 ffff", "commit", {"coordinator_epoch": 7}),
        (
            2,
            LEADER_CHANGE.hex(),
            "leader_change",
            {"leader_id": 1, "voters": [{"voter_id": 1}], "granting_voters": [{"voter_id": 1}]},
        ),
        (3, "0000 000001a1fd5a85ea 00", "snapshot_header", {"last_contained_log_timestamp": 0x1A1FD5A85EA}),
        (4, "0000 00", "snapshot_footer", {}),
        (5, "0000 0001 00", "kraft_version", {"kraft_version": 1}),
        (
            6,
            "0000 02 00000001" + "fb" * 16 + "02 02 43 02 68 520d 00 0000 0001 00 00 00",
            "kraft_voters",
            {
                "voters": [
                    {
                        "voter_id": 1,
                        "voter_directory_id": "-_v7" * 5 + "-w",
                        "endpoints": [{"name": "C", "host": "h", "port": 21005}],
                        "kraft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
                    }
                ]
            },
        ),
    ],
)
def test_control_bodies(control_type: int, value: str, name: str, fields: dict[str, object]) -> None:
    record = decode_control_body(control_type, bytes.fromhex(value))
    assert record == LogRecord(name, control_type, value_version=int(value[:4], 16), value=fields)


@pytest.mark.parametrize(
    ("control_type", "value", "name", "error"),
    [
        (0, None, "abort", "the value is too short for a version"),
        (1, b"\0", "commit", "the value is too short for a version"),
        (1, b"\0\0\0\0\0", "commit", "coordinator_epoch: needs 4 bytes, 3 are left (byte 2)"),
        (1, b"\xff\xff\0\0\0\x01", "commit", "commit version -1 is not known (known: 0) (byte 0)"),
        (
            2,
            b"\0\x02" + LEADER_CHANGE[2:],
            "leader_change",
            "leader_change version 2 is not known (known: 0-1) (byte 0)",
        ),
        (4, b"\0\0\0\0", "snapshot_footer", "1 bytes are left over (byte 3)"),
        (7, b"\0\0\0", "unknown", "control type 7 is not known"),
        (-1, b"", "unknown", "the value is too short for a version"),
    ],
)
def test_control_bodies_that_cannot_be_read(
    control_type: int, value: bytes | None, name: str, error: str
) -> None:
    record = decode_control_body(control_type, value)
    assert (record.type, record.key_version, record.error) == (name, control_type, error)
    assert record.raw_value == value
    assert not record.is_tombstone


@given(st.integers(0, 30), st.integers(0, 5), st.binary(max_size=80))
def test_no_bytes_raise(number: int, version: int, data: bytes) -> None:
    for record in (
        decode_metadata(bytes([1, number, version]) + data),
        decode_control_body(number % 8, bytes([0, version]) + data),
    ):
        json.dumps(record.as_dict(), allow_nan=False)
        assert record.value is not None or (record.error is not None and record.raw_value is not None)
