"""Whole records: keys with their type, values with their version, frames; typed states and offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.test_group_log import ASSIGNMENT, SUBSCRIPTION, group
from tests.unit.wire.test_group_log import KEY as OFFSET_KEY
from tests.unit.wire.test_group_log import VALUE as OFFSET_VALUE
from tests.unit.wire.test_metadata_and_control import FEATURE_LEVEL
from tests.unit.wire.test_transaction_log import (
    COMPLETE_COMMIT,
    EMPTY,
    EMPTY_V0,
    KEY,
    ONGOING,
    ONGOING_V0,
    PREPARE_COMMIT,
    metadata_of,
)
from tests.unit.wire.values import INTEGERS, TEXT, values_of
from txnkafka.model import TopicPartition
from txnkafka.wire.records import (
    GroupOffset,
    LogRecord,
    TransactionMetadata,
    TransactionState,
    decode_group_log,
    decode_metadata,
    decode_transaction_log,
    encode_group_log,
    encode_metadata,
    encode_offset_commit_key,
    encode_offset_commit_value,
    encode_transaction_key,
    encode_transaction_value,
    group_log,
    metadata,
)
from txnkafka.wire.records.log_record import encode_coordinator_record
from txnkafka.wire.records.transaction_log import TYPES
from txnkafka.wire.schema import SchemaError, in_versions

INT16, INT32, INT64 = (st.integers(*INTEGERS[name]) for name in ("int16", "int32", "int64"))
PARTITIONS = st.frozensets(st.builds(TopicPartition, TEXT, INT32), max_size=6)
STATES = st.builds(
    TransactionMetadata,
    transactional_id=TEXT,
    producer_id=INT64,
    previous_producer_id=INT64,
    next_producer_id=INT64,
    producer_epoch=INT16,
    next_producer_epoch=INT16,
    transaction_timeout_ms=INT32,
    state=st.sampled_from(TransactionState),
    topic_partitions=PARTITIONS,
    last_update_timestamp=INT64,
    start_timestamp=INT64,
    client_transaction_version=INT16,
    last_producer_epoch=INT16,
).map(lambda found: found if found.state else found._replace(topic_partitions=frozenset()))
# Version 0 has no fields for these.
NEWER = {
    "previous_producer_id": -1, "next_producer_id": -1, "next_producer_epoch": -1, "last_producer_epoch": -1
}  # fmt: skip


# Transactions


@pytest.mark.parametrize("value", [EMPTY, ONGOING, COMPLETE_COMMIT, EMPTY_V0, ONGOING_V0])
def test_a_state_is_written_as_a_broker_wrote_it(value: bytes) -> None:
    state = metadata_of(value)
    assert encode_transaction_key(state.transactional_id) == KEY
    assert encode_transaction_value(state, value[1]) == value


def test_partitions_are_sorted() -> None:
    state = metadata_of(PREPARE_COMMIT)
    written = decode_transaction_log(KEY, encode_transaction_value(state, 1)).value
    assert written is not None
    assert written["transaction_partitions"] == [
        {"topic": "__consumer_offsets", "partition_ids": [0]},
        {"topic": "t", "partition_ids": [0]},
    ]


@given(STATES, st.integers(0, 1))
def test_a_state_is_read_as_it_was_written(state: TransactionMetadata, version: int) -> None:
    if version == 0:
        state = state._replace(client_transaction_version=0)
    key, value = encode_transaction_key(state.transactional_id), encode_transaction_value(state, version)
    read = TransactionMetadata.of(decode_transaction_log(key, value))
    assert read == (state if version else state._replace(**NEWER))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"producer_epoch": 2**15}, "value.producer_epoch: 32768 is no int16"),
        ({"next_producer_epoch": -(2**15) - 1}, "value.next_producer_epoch: -32769 is no int16"),
        ({"transaction_timeout_ms": None},
         "value.transaction_timeout_ms: is null, which this version does not allow"),
        ({"topic_partitions": frozenset([TopicPartition("t", 2**31)])},
         "value.transaction_partitions[0].partition_ids[0]: 2147483648 is no int32"),
        ({"topic_partitions": frozenset([TopicPartition("x" * 32768, 0)])},
         "value.transaction_partitions[0].topic: string has 32768 bytes, more than 32767"),
        ({"state": TransactionState.EMPTY}, "topic_partitions: there are some in state Empty"),
    ],
)  # fmt: skip
def test_a_state_that_cannot_be_written(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(SchemaError) as caught:
        encode_transaction_value(metadata_of(ONGOING)._replace(**changes), 1)
    assert str(caught.value) == error


def test_a_client_of_a_later_transaction_version_needs_a_later_version_of_the_value() -> None:
    state = metadata_of(ONGOING)
    assert state.client_transaction_version == 2
    with pytest.raises(
        SchemaError, match=r"^value\.client_transaction_version: this version has no such field$"
    ):
        encode_transaction_value(state, 0)


def test_ids_that_cannot_be_written() -> None:
    with pytest.raises(SchemaError, match=r"^key\.transactional_id: string has 40000 bytes"):
        encode_transaction_key("x" * 40_000)
    with pytest.raises(SchemaError, match=r"^value: transaction_log version 2 is not known"):
        encode_transaction_value(metadata_of(ONGOING), 2)


# Offsets


def test_an_offset_is_written_as_a_broker_wrote_it() -> None:
    committed = GroupOffset.of(decode_group_log(OFFSET_KEY, OFFSET_VALUE))
    assert committed is not None
    assert encode_offset_commit_key(committed.group, committed.topic, committed.partition) == OFFSET_KEY
    assert encode_offset_commit_value(committed) == OFFSET_VALUE


OFFSETS = st.builds(
    GroupOffset,
    group=TEXT,
    topic=TEXT,
    partition=INT32,
    offset=INT64,
    leader_epoch=INT32,
    metadata=TEXT,
    commit_timestamp=INT64,
    expire_timestamp=st.just(-1) | INT64,
    topic_id=st.none() | st.just("AAAAAAAAAAEAAAAAAAAAAg"),
)


@given(OFFSETS)
def test_an_offset_is_read_as_it_was_written(committed: GroupOffset) -> None:
    key = encode_offset_commit_key(committed.group, committed.topic, committed.partition)
    read = GroupOffset.of(decode_group_log(key, encode_offset_commit_value(committed)))
    if committed.expire_timestamp != -1:
        committed = replace(committed, leader_epoch=-1, topic_id=None)  # version 1 has neither
    assert read == committed


def test_an_offset_that_cannot_be_written() -> None:
    committed = GroupOffset("g", "t", 0, 2**63, -1, "", 0, -1, None)
    with pytest.raises(SchemaError, match=r"^value\.offset: 9223372036854775808 is no int64$"):
        encode_offset_commit_value(committed)
    with pytest.raises(SchemaError, match=r"^key\.partition: -2147483649 is no int32$"):
        encode_offset_commit_key("g", "t", -(2**31) - 1)


# Any record


def group_records() -> st.SearchStrategy[LogRecord]:
    """Records of all types and versions of a group's log, tombstones among them."""
    return st.one_of(
        st.builds(
            LogRecord,
            st.just(kind.value.name),
            st.just(number),
            values_of(kind.key, 0),
            st.just(version),
            values_of(kind.value, version),
        )
        for number, kind in group_log.TYPES.items()
        for version in range(10)
        if in_versions(version, kind.value.versions)
    )


@given(group_records(), st.booleans())
def test_a_record_of_a_group_is_read_as_it_was_written(record: LogRecord, is_tombstone: bool) -> None:
    if is_tombstone:
        record = replace(record, value_version=None, value=None)
    key, value = encode_group_log(record)
    assert (value is None) == is_tombstone
    assert decode_group_log(key, value) == record


def metadata_records() -> st.SearchStrategy[LogRecord]:
    return st.one_of(
        st.builds(
            LogRecord,
            st.just(message.name),
            st.just(api_key),
            value_version=st.just(version),
            value=values_of(message, version),
        )
        for api_key, message in metadata.RECORDS.items()
        for version in range(10)
        if in_versions(version, message.versions)
    )


@given(metadata_records())
def test_a_record_of_the_metadata_log_is_read_as_it_was_written(record: LogRecord) -> None:
    assert decode_metadata(encode_metadata(record)) == record


def test_a_frame_is_written_as_a_controller_wrote_it() -> None:
    assert encode_metadata(decode_metadata(FEATURE_LEVEL)) == FEATURE_LEVEL


def test_records_of_transactions_are_written_from_their_fields_too() -> None:
    for value in (ONGOING, PREPARE_COMMIT, EMPTY_V0, None):
        assert encode_coordinator_record(TYPES, decode_transaction_log(KEY, value)) == (KEY, value)


# What is no record


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"key_version": 99}, "'group_metadata' is not the record of key type 99"),
        ({"key_version": None}, "'group_metadata' is not the record of key type None"),
        ({"key_version": 3}, "'group_metadata' is not the record of key type 3"),
        ({"key": None}, "the group_metadata could not be decoded: it has no key"),
        ({"error": "3 bytes left"}, "the group_metadata could not be decoded: 3 bytes left"),
        ({"value": None}, "the group_metadata has a value without a version, or a version without a value"),
        ({"value_version": None},
         "the group_metadata has a value without a version, or a version without a value"),
        ({"value_version": 9}, "value: group_metadata version 9 is not known (known: 0-4)"),
    ],
)  # fmt: skip
def test_a_record_that_was_not_understood_is_not_written(changes: dict[str, Any], error: str) -> None:
    record = decode_group_log(b"\0\x02\0\x01g", group(b"other", SUBSCRIPTION, ASSIGNMENT))
    encode_group_log(record)
    with pytest.raises(SchemaError) as caught:
        encode_group_log(replace(record, **changes))
    assert str(caught.value) == error


def test_a_member_is_written_from_bytes() -> None:
    record = decode_group_log(b"\0\x02\0\x01g", group(b"consumer", SUBSCRIPTION, ASSIGNMENT))
    with pytest.raises(SchemaError, match=r"^value\.members\[0\]\.subscription: .* is no bytes$"):
        encode_group_log(record)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"key_version": 6}, "'feature_level_record' is not the record of api key 6"),
        ({"value": None}, "the feature_level_record could not be decoded: it has no value"),
        ({"value_version": None}, "the feature_level_record could not be decoded: it has no value"),
        ({"value_version": 1}, "feature_level_record version 1 is not known (known: 0)"),
        ({"value": {"name": "x", "feature_level": 2**15}}, "feature_level: 32768 is no int16"),
    ],
)
def test_a_record_of_the_metadata_log_that_cannot_be_written(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(SchemaError) as caught:
        encode_metadata(replace(decode_metadata(FEATURE_LEVEL), **changes))
    assert str(caught.value) == error
