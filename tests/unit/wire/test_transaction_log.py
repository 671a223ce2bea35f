"""Records of ``__transaction_state``: bytes seen on real brokers, versions, what nobody should believe."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.model import TopicPartition
from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS
from txnkafka.wire.records import (
    LogRecord,
    TransactionMetadata,
    TransactionState,
    decode_transaction_log,
    encode_transaction_value,
)

KEY = bytes.fromhex("0000 0006 74782d637470")
UPDATED = bytes.fromhex("000001a1fd5a8372")
STARTED = bytes.fromhex("000001a1fd5a8370")
NONE = b"\xff" * 8
OFFSETS = b"\x13__consumer_offsets"

EMPTY = bytes.fromhex("0001 0000000000000003 0000 0000ea60 00 00") + UPDATED + NONE
EMPTY += bytes.fromhex("01 00 08 0000000000000003")
ONGOING = (
    bytes.fromhex("0001 0000000000000003 0000 0000ea60 01 02") + OFFSETS + bytes.fromhex("02 00000000 00")
)
ONGOING += UPDATED + STARTED + bytes.fromhex("02 00 08 0000000000000003 02 02 0002")
PREPARE_COMMIT = bytes.fromhex("0001 0000000000000003 0001 0000ea60 02 03 0274 02 00000000 00")
PREPARE_COMMIT += OFFSETS + bytes.fromhex("02 00000000 00") + UPDATED + STARTED
PREPARE_COMMIT += bytes.fromhex("02 00 08 0000000000000003 02 02 0002")
COMPLETE_COMMIT = bytes.fromhex("0001 0000000000000003 0001 0000ea60 04 01") + UPDATED + STARTED
COMPLETE_COMMIT += bytes.fromhex("02 00 08 0000000000000003 02 02 0002")
EMPTY_V0 = bytes.fromhex("0000 0000000000000000 0000 0000ea60 00 ffffffff") + UPDATED + NONE
ONGOING_V0 = bytes.fromhex("0000 0000000000000000 0000 0000ea60 01 00000001 0001 74 00000001 00000000")
ONGOING_V0 += UPDATED + STARTED

STATUS = 2 + 8 + 2 + 4


def metadata_of(value: bytes) -> TransactionMetadata:
    record = decode_transaction_log(KEY, value)
    assert record.error is None
    metadata = TransactionMetadata.of(record)
    assert metadata is not None
    return metadata


@pytest.mark.parametrize(
    ("value", "state", "partitions", "producer_id", "producer_epoch", "client_transaction_version"),
    [
        (EMPTY, "Empty", [], 3, 0, 0),
        (ONGOING, "Ongoing", ["__consumer_offsets-0"], 3, 0, 2),
        (PREPARE_COMMIT, "PrepareCommit", ["__consumer_offsets-0", "t-0"], 3, 1, 2),
        (COMPLETE_COMMIT, "CompleteCommit", [], 3, 1, 2),
        (EMPTY_V0, "Empty", [], 0, 0, 0),
        (ONGOING_V0, "Ongoing", ["t-0"], 0, 0, 0),
    ],
)
def test_observed_values(
    value: bytes,
    state: str,
    partitions: list[str],
    producer_id: int,
    *,
    producer_epoch: int,
    client_transaction_version: int,
) -> None:
    metadata = metadata_of(value)
    assert metadata == TransactionMetadata(
        transactional_id="tx-ctp",
        producer_id=producer_id,
        previous_producer_id=3 if value[1] else -1,
        next_producer_id=-1,
        producer_epoch=producer_epoch,
        next_producer_epoch=-1,
        transaction_timeout_ms=60000,
        state=metadata.state,
        topic_partitions=metadata.topic_partitions,
        last_update_timestamp=int.from_bytes(UPDATED, "big"),
        start_timestamp=-1 if state == "Empty" else int.from_bytes(STARTED, "big"),
        client_transaction_version=client_transaction_version,
    )
    assert metadata.state.label == state
    assert sorted(map(str, metadata.topic_partitions)) == partitions


def test_null_and_empty_partitions_are_told_apart_in_the_record() -> None:
    shown = [decode_transaction_log(KEY, value).value for value in (EMPTY, COMPLETE_COMMIT)]
    assert [value and value["transaction_partitions"] for value in shown] == [None, []]


def test_a_producer_id_that_changes_at_the_end_of_its_epochs() -> None:
    tags = bytes.fromhex("04 00 08 0000000000000003 01 08 0000000000000bb8 02 02 0002 03 02 0001")
    record = decode_transaction_log(KEY, ONGOING.replace(ONGOING[-15:], tags))
    metadata = TransactionMetadata.of(record)
    assert metadata is not None
    assert (metadata.previous_producer_id, metadata.next_producer_id) == (3, 3000)
    assert metadata.next_producer_epoch == 1
    assert record.value is not None
    assert record.value["next_producer_epoch"] == 1


def test_the_last_epoch_is_a_tagged_field_that_kafka_does_not_have() -> None:
    metadata = metadata_of(PREPARE_COMMIT)._replace(last_producer_epoch=0)
    value = encode_transaction_value(metadata, 1)
    fields = decode_transaction_log(KEY, value).value
    assert fields is not None
    assert fields[UNKNOWN_TAGGED_FIELDS] == [(4, b"\0\0")]
    assert metadata_of(value) == metadata
    older = metadata._replace(client_transaction_version=0)
    forgotten = older._replace(previous_producer_id=-1, last_producer_epoch=-1)
    assert metadata_of(encode_transaction_value(older, 0)) == forgotten
    without = metadata._replace(last_producer_epoch=-1)
    assert len(encode_transaction_value(without, 1)) == len(value) - 4


def test_a_last_epoch_of_another_size_is_not_believed() -> None:
    metadata = metadata_of(EMPTY)._replace(last_producer_epoch=5)
    value = encode_transaction_value(metadata, 1)
    assert value.endswith(b"\x04\x02\0\x05")
    assert metadata_of(value[:-4] + b"\x04\x01\x05").last_producer_epoch == -1


def test_states_have_the_numbers_and_names_of_kafka() -> None:
    assert [(int(state), state.label) for state in TransactionState] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]


def test_a_tombstone_has_no_metadata() -> None:
    record = decode_transaction_log(KEY, None)
    assert record == LogRecord("transaction_log", 0, {"transactional_id": "tx-ctp"})
    assert record.is_tombstone
    assert TransactionMetadata.of(record) is None
    assert not decode_transaction_log(KEY, EMPTY).is_tombstone


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", "value: 0 bytes are too short for a version"),
        (b"\0", "value: 1 bytes are too short for a version"),
        (b"\0\x02" + bytes(60), "value: transaction_log version 2 is not known (known: 0-1) (byte 0)"),
        (b"\xff\xff" + bytes(60), "value: transaction_log version -1 is not known (known: 0-1) (byte 0)"),
        (EMPTY[:-1], "value: needs 8 bytes, 7 are left (byte 37)"),
        (EMPTY_V0[:-1], "value: transaction_start_timestamp_ms: needs 8 bytes, 7 are left (byte 29)"),
    ],
)
def test_a_value_that_cannot_be_read_is_kept_as_it_is(value: bytes, error: str) -> None:
    record = decode_transaction_log(KEY, value)
    assert (record.type, record.key) == ("transaction_log", {"transactional_id": "tx-ctp"})
    assert (record.value, record.error, record.raw_value) == (None, error, value)
    assert TransactionMetadata.of(record) is None
    assert not record.is_tombstone
    assert record.as_dict()["raw_value"] == value.hex()


@pytest.mark.parametrize("value", [EMPTY, EMPTY_V0])
def test_bytes_behind_a_value_are_an_error_beside_it(value: bytes) -> None:
    record = decode_transaction_log(KEY, value + b"xyz")
    assert record.error == f"value: 3 bytes are left over (byte {len(value)})"
    assert record.raw_value == value + b"xyz"
    assert TransactionMetadata.of(record) == metadata_of(value)


def test_a_state_that_kafka_could_not_load_has_no_metadata() -> None:
    for status in (8, 127, 128, 255):
        record = decode_transaction_log(KEY, ONGOING[:STATUS] + bytes([status]) + ONGOING[STATUS + 1 :])
        assert record.error == f"value: transaction_status {status - 256 * (status > 127)} is not known"
        assert record.value is not None
        assert TransactionMetadata.of(record) is None


def test_null_partitions_belong_to_empty_alone() -> None:
    for state in TransactionState:
        value = EMPTY_V0[:STATUS] + bytes([state]) + EMPTY_V0[STATUS + 1 :]
        record = decode_transaction_log(KEY, value)
        expected = f"value: transaction_partitions is null in state {state.label}"
        assert record.error == (expected if state else None)
        assert (TransactionMetadata.of(record) is None) == bool(state)


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (None, "the key is null"),
        (b"", "the key is too short for a type"),
        (b"\0", "the key is too short for a type"),
        (b"\0\x01\0\0", "key type 1 is not known"),
        (b"\xff\xff\0\0", "key type -1 is not known"),
    ],
)
def test_an_unknown_key_is_shown_as_type_version_and_hex(key: bytes | None, error: str) -> None:
    record = decode_transaction_log(key, EMPTY)
    assert (record.type, record.value_version, record.error) == ("unknown", 1, error)
    assert (record.raw_key, record.raw_value) == (key, EMPTY)
    assert record.as_dict()["raw_value"] == EMPTY.hex()
    assert TransactionMetadata.of(record) is None


def test_a_key_that_is_cut_off_or_too_long() -> None:
    cut = decode_transaction_log(KEY[:-1], EMPTY)
    assert (cut.key, cut.error) == (None, "key: transactional_id: needs 6 bytes, 5 are left (byte 4)")
    assert TransactionMetadata.of(cut) is None
    long = decode_transaction_log(KEY + b"x", EMPTY[:-1])
    assert long.error == "key: 1 bytes are left over (byte 10); value: needs 8 bytes, 7 are left (byte 37)"
    assert (long.raw_key, long.raw_value) == (KEY + b"x", EMPTY[:-1])


def test_a_tagged_field_of_a_later_version_is_shown_in_hex() -> None:
    value = EMPTY[:-11] + bytes.fromhex("02 00 08 0000000000000003 09 02 beef")
    record = decode_transaction_log(KEY, value)
    assert record.error is None
    assert record.value is not None
    assert record.value[UNKNOWN_TAGGED_FIELDS] == [(9, b"\xbe\xef")]
    assert record.as_dict()["value"][UNKNOWN_TAGGED_FIELDS] == [{"tag": 9, "hex": "beef"}]


@given(
    st.one_of(st.none(), st.binary(max_size=20), st.binary(max_size=20).map(lambda data: b"\0\0" + data)),
    st.one_of(st.none(), st.binary(max_size=80), st.binary(max_size=80).map(lambda data: b"\0\1" + data)),
)
def test_no_bytes_raise(key: bytes | None, value: bytes | None) -> None:
    record = decode_transaction_log(key, value)
    metadata = TransactionMetadata.of(record)
    assert metadata is None or isinstance(metadata.topic_partitions, frozenset)
    json.dumps(record.as_dict(), allow_nan=False)
    understood = record.key is not None and (value is None or record.value is not None)
    assert understood or record.error is not None


@given(st.data())
def test_damaged_bytes_raise_nothing(data: st.DataObject) -> None:
    value = bytearray(
        data.draw(st.sampled_from([EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, ONGOING_V0]))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    metadata = TransactionMetadata.of(decode_transaction_log(KEY, bytes(value)))
    assert metadata is None or all(isinstance(each, TopicPartition) for each in metadata.topic_partitions)
