"""Every record type in every version as Kafka's own classes wrote it, whole and damaged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.wire.kafka_classes import MESSAGE, Sample, messages, samples, snake_keys
from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS, read_message
from txnkafka.wire.records.log_record import LogRecord
from txnkafka.wire.schema import Message, SchemaError, in_versions

MESSAGES = messages()
SAMPLES = samples()
FULLEST = {
    sample.kafka_class: sample
    for sample in sorted(SAMPLES, key=lambda each: len(each.data))
    if len(sample.data) <= 600
}


UNTAGGED = [
    sample
    for sample in SAMPLES
    if in_versions(sample.version, MESSAGES[sample.kafka_class].flexible)
    and not any(
        field.tag is not None and field.name in snake_keys(sample.fields)
        for field in MESSAGES[sample.kafka_class].fields
    )
]
TAGGED_DEFAULTS: dict[str, dict[str, Any]] = {
    "TransactionLogValue": {
        "previous_producer_id": -1,
        "next_producer_id": -1,
        "next_producer_epoch": -1,
        "client_transaction_version": 0,
    },
    "OffsetCommitValue": {"topic_id": "A" * 22},
    "ConsumerGroupMetadataValue": {"metadata_hash": 0},
    "ConsumerGroupMemberMetadataValue": {
        "classic_member_metadata": {"session_timeout_ms": 0, "supported_protocols": []}
    },
    "ConsumerGroupTargetAssignmentMetadataValue": {"assignment_timestamp": 0},
    "ConsumerGroupCurrentMemberAssignmentValue": {"assignment_epochs": []},
    "RegisterBrokerRecord": {"log_dirs": [], "cordoned_log_dirs": None},
    "PartitionRecord": {
        "leader_recovery_state": 0,
        "eligible_leader_replicas": None,
        "last_known_elr": None,
    },
    "PartitionChangeRecord": {
        "isr": None,
        "leader": -2,
        "replicas": None,
        "removing_replicas": None,
        "adding_replicas": None,
        "leader_recovery_state": -1,
        "directories": None,
        "eligible_leader_replicas": None,
        "last_known_elr": None,
    },
    "BrokerRegistrationChangeRecord": {
        "fenced": 0,
        "in_controlled_shutdown": 0,
        "log_dirs": [],
        "cordoned_log_dirs": None,
    },
    "BeginTransactionRecord": {"name": None},
    "AbortTransactionRecord": {"reason": None},
}


def short_name(sample: Sample) -> str:
    return sample.kafka_class.rpartition(".")[2]


def read(sample: Sample, data: bytes) -> tuple[dict[str, Any], int]:
    return read_message(MESSAGES[sample.kafka_class], sample.version, data, start_of(sample))


def start_of(sample: Sample) -> int:
    """In KRaft's control records the version is a field of the class; our tables begin behind it."""
    return 2 if sample.kafka_class.startswith(MESSAGE) and "version" in sample.fields else 0


def without_defaults(value: Any, defaults: dict[str, Any]) -> Any:
    """Kafka's JSON leaves out tagged fields that have their default."""
    if isinstance(value, list):
        return [without_defaults(part, defaults) for part in value]
    if not isinstance(value, dict):
        return value
    shown = {name: part for name, part in value.items() if name not in defaults or part != defaults[name]}
    return {name: without_defaults(part, defaults) for name, part in shown.items()}


@pytest.mark.parametrize("sample", SAMPLES, ids=short_name)
def test_reads_what_kafka_wrote(sample: Sample) -> None:
    fields, position = read(sample, sample.data)
    expected = snake_keys(sample.fields)
    if start_of(sample):
        assert expected.pop("version") == sample.version
    shown = LogRecord("sample", value=fields).as_dict()["value"]
    assert without_defaults(shown, TAGGED_DEFAULTS.get(short_name(sample), {})) == expected
    assert position == len(sample.data)


def test_every_table_and_version_has_samples() -> None:
    versions = {
        (name, version)
        for name, message in MESSAGES.items()
        for version in range(20)
        if in_versions(version, message.versions)
    }
    assert {(sample.kafka_class, sample.version) for sample in SAMPLES} == versions
    assert set(FULLEST) == set(MESSAGES)


@pytest.mark.parametrize("sample", SAMPLES, ids=short_name)
def test_every_truncation_is_refused(sample: Sample) -> None:
    for end in range(start_of(sample), len(sample.data)):
        with pytest.raises(SchemaError) as caught:
            read(sample, sample.data[:end])
        assert caught.value.position <= end


@pytest.mark.parametrize("sample", FULLEST.values(), ids=short_name)
def test_every_flipped_bit_reads_within_the_bytes_or_is_refused(sample: Sample) -> None:
    for bit in range(8 * len(sample.data)):
        data = bytearray(sample.data)
        data[bit // 8] ^= 1 << bit % 8
        assert 0 <= position_reached(sample, bytes(data)) <= len(data)


def position_reached(sample: Sample, data: bytes) -> int:
    try:
        return read(sample, data)[1]
    except SchemaError as error:
        return error.position


@pytest.mark.parametrize("message", MESSAGES.values(), ids=lambda message: message.name)
def test_a_version_behind_the_last_is_refused(message: Message) -> None:
    with pytest.raises(SchemaError, match=rf"{message.name} version 9 is not known"):
        read_message(message, 9, bytes(100))


@pytest.mark.parametrize("sample", UNTAGGED, ids=short_name)
def test_a_tagged_field_of_a_later_kafka_is_kept(sample: Sample) -> None:
    fields, _ = read(sample, sample.data)
    later = sample.data[:-1] + b"\x01\x63\x03abc"
    assert read(sample, later) == (fields | {UNKNOWN_TAGGED_FIELDS: [(0x63, b"abc")]}, len(later))
