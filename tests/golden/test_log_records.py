"""Kafka's own logs of the golden cases, record by record, compared with Kafka's dump tool and
coordinators."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import Case, cases
from tests.models.record_batch import CONTROL, BatchHeader, Record, decode_batch, read_header
from tests.unit.wire.kafka_classes import snake_keys
from txnkafka.model import TopicPartition
from txnkafka.wire.records import (
    GroupOffset,
    LogRecord,
    TransactionMetadata,
    TransactionState,
    decode_control_body,
    decode_group_log,
    decode_metadata,
    decode_transaction_log,
)

TRANSACTION_LOG, METADATA_LOG = "__transaction_state", "__cluster_metadata"
GROUP_LOG = "__consumer_offsets"
OF_SHARE_GROUPS = range(9, 16)  # key versions; these records are kept, and not decoded

# Kafka's JSON omits tagged fields with their default.
TAGGED_DEFAULTS = {
    "previous_producer_id": -1,
    "next_producer_id": -1,
    "next_producer_epoch": -1,
    "client_transaction_version": 0,
    "metadata_hash": 0,
    "assignment_timestamp": 0,
    "topic_id": "A" * 22,
}

DECODED = [
    (case, partition)
    for case in cases()
    for partition in case.partitions()
    if case.decoded(partition) is not None
]
WITH_TRANSACTIONS = [
    case
    for case in cases()
    if case.cluster.get("list_transactions") and list(case.answered.glob(TRANSACTION_LOG + "-*"))
]
WITH_METADATA = [case for case in cases() if list(case.logs.glob(METADATA_LOG + "-*"))]

STATUS = {state.label: state for state in TransactionState}
QUORUM_RECORDS = {
    "LEADER_CHANGE": "leader_change",
    "LeaderChange": "leader_change",
    "KRaftVersion": "kraft_version",
    "KRaftVoters": "kraft_voters",
}


def name_of(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


def dumped_records(case: Case, partition: TopicPartition) -> Iterator[tuple[LogRecord, str, str]]:
    """Yield each record with a key: decoded by us, and key and payload in the text of the dump tool."""
    decode = decode_transaction_log if partition.topic == TRANSACTION_LOG else decode_group_log
    records = {each["offset"]: each for each in case.expected_records(partition, "read_uncommitted")}
    text = case.decoded(partition) or ""
    for offset, key, payload in re.findall(r"^\| offset: (\d+) .*? key: (.*?) payload: (.*)$", text, re.M):
        record = records.pop(int(offset))
        value = record["value"]
        yield decode(b64decode(record["key"]), None if value is None else b64decode(value)), key, payload
    assert not records


def log_records(path: Path) -> Iterator[tuple[BatchHeader, Record]]:
    data, position = path.read_bytes(), 0
    while position < len(data):
        header = read_header(data, position)
        for record in decode_batch(data[position : position + header.size]):
            yield header, record
        position += header.size


def metadata_records(path: Path) -> Iterator[LogRecord]:
    for header, record in log_records(path):
        if header.attributes & CONTROL:
            assert record.key is not None
            yield decode_control_body(int.from_bytes(record.key[2:4], "big"), record.value)
        else:
            yield decode_metadata(record.value)


@pytest.mark.parametrize(("case", "partition"), DECODED, ids=name_of)
def test_every_record_is_what_the_dump_tool_says(case: Case, partition: TopicPartition) -> None:
    count = 0
    for record, key, payload in dumped_records(case, partition):
        json.dumps(record.as_dict())
        assert record.is_tombstone == (payload == "<DELETE>")
        if record.key_version in OF_SHARE_GROUPS and partition.topic == GROUP_LOG:
            assert (record.type, str(record.key_version)) == ("unknown", json.loads(key)["type"])
            count += 1
            continue
        assert record.error is None
        if key.startswith("{"):
            assert_equals_json(record, json.loads(key), payload)
        else:
            assert as_old_text(record) == (key, in_order(payload))
        count += 1
    assert count == len(case.expected_records(partition, "read_uncommitted"))


def assert_equals_json(record: LogRecord, key: dict[str, Any], payload: str) -> None:
    assert (str(record.key_version), record.key) == (key["type"], snake_keys(key["data"]))
    if record.is_tombstone:
        return
    expected = json.loads(payload)
    status = expected["data"].get("transactionStatus")
    if isinstance(status, str):  # the dump tool of version 4.4 gives its name
        expected["data"]["transactionStatus"] = STATUS[status]
    value = record.as_dict()["value"]
    left_out = {name: part for name, part in value.items() if name not in snake_keys(expected["data"])}
    assert str(record.value_version) == expected["version"]
    assert value == snake_keys(expected["data"]) | left_out
    assert left_out == {name: TAGGED_DEFAULTS[name] for name in left_out}


def as_old_text(record: LogRecord) -> tuple[str, str]:
    """Return the text that the dump tool printed before version 3.7."""
    key, value = record.key, record.value
    assert key is not None
    if record.type == "transaction_log":
        return f"transaction_metadata::transactionalId={key['transactional_id']}", old_transaction(record)
    if record.type == "group_metadata":
        assert value is not None
        return f"group_metadata::group={key['group']}", old_group(value)
    name = f"offset_commit::group={key['group']},partition={key['topic']}-{key['partition']}"
    if value is None:
        return name, "<DELETE>"
    return name, f"offset={value['offset']}" + (f",metadata={value['metadata']}" if value["metadata"] else "")


def in_order(payload: str) -> str:
    """Sort the partitions in the old tool's payload, which are in the order of a set."""
    if "assignment" in payload:
        return old_group(payload)
    return re.sub(
        r"(?<=,partitions=)\[(.*?)\]", lambda found: f"[{','.join(sorted(found[1].split(',')))}]", payload
    )


def old_transaction(record: LogRecord) -> str:
    metadata = TransactionMetadata.of(record)
    if metadata is None:
        return "<DELETE>"
    partitions = sorted(map(str, metadata.topic_partitions))
    return (
        f"producerId:{metadata.producer_id},producerEpoch:{metadata.producer_epoch},"
        f"state={metadata.state.label},partitions=[{','.join(partitions)}],"
        f"txnLastUpdateTimestamp={metadata.last_update_timestamp},"
        f"txnTimeoutMs={metadata.transaction_timeout_ms}"
    )


def old_group(group: dict[str, Any] | str) -> str:
    """Return a group as the old tool prints it: the assignment as Java's toString, member by member."""
    if isinstance(group, str):
        shown = json.loads(group)
        return json.dumps(
            [shown["protocolType"], shown["protocol"], shown["generationId"], shown["assignment"]]
        )
    members = {
        member["member_id"]: [
            f"{topic['topic']}-{number}"
            for topic in member["assignment"]["assigned_partitions"]
            for number in topic["partitions"]
        ]
        for member in group["members"]
    }
    assignment = ", ".join(f"{member}=[{', '.join(owned)}]" for member, owned in members.items())
    return json.dumps([group["protocol_type"], group["protocol"], group["generation"], f"{{{assignment}}}"])


@pytest.mark.parametrize("case", WITH_TRANSACTIONS, ids=name_of)
def test_the_last_records_are_what_the_coordinator_knows(case: Case) -> None:
    known: dict[str, TransactionMetadata] = {}
    for path in sorted(case.answered.glob(f"{TRANSACTION_LOG}-*/*.log")):
        for _, record in log_records(path):
            decoded = decode_transaction_log(record.key, record.value)
            assert decoded.key is not None
            metadata = TransactionMetadata.of(decoded)
            if metadata is None:
                known.pop(decoded.key["transactional_id"], None)
            else:
                known[metadata.transactional_id] = metadata
    assert {(each.transactional_id, each.producer_id, each.state.label) for each in known.values()} == {
        (each["transactional_id"], each["producer_id"], each["state"])
        for each in case.cluster["list_transactions"]
    }
    described = {
        name: told for name, told in case.cluster["describe_transactions"].items() if "state" in told
    }
    assert described
    assert {name: describe(known[name]) for name in described} == {
        name: {part: told[part] for part in describe(known[name])} for name, told in described.items()
    }


def describe(metadata: TransactionMetadata) -> dict[str, Any]:
    return {
        "state": metadata.state.label,
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
        "transaction_timeout_ms": metadata.transaction_timeout_ms,
        "transaction_start_time_ms": None if metadata.start_timestamp < 0 else metadata.start_timestamp,
        "topic_partitions": sorted(map(str, metadata.topic_partitions)),
    }


def test_every_state_and_version_occurs() -> None:
    seen = {
        (record.value_version, metadata.state)
        for case, partition in DECODED
        for record, _, _ in dumped_records(case, partition)
        if (metadata := TransactionMetadata.of(record)) is not None
    }
    persisted = set(TransactionState) - {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
    assert seen == {(version, state) for version in (0, 1) for state in persisted}


def test_committed_offsets_have_their_topic_id_unless_a_transaction_wrote_them() -> None:
    case = next(each for each in cases() if each.name == "coordinator_logs")
    topic_id = case.meta["topics"]["data"]["topic_id"]
    commits = [
        commit
        for each, partition in DECODED
        if each is case
        for record, _, _ in dumped_records(case, partition)
        if (commit := GroupOffset.of(record)) is not None
    ]
    in_transactions = {commit.group for commit in commits if commit.topic_id is None}
    assert in_transactions == {"txn-committed", "txn-aborted", "txn-pending", "txn-mixed", "txn-prepared"}
    assert {commit.topic_id for commit in commits} == {None, topic_id}


@pytest.mark.parametrize("case", cases(), ids=name_of)
def test_metadata_logs_and_checkpoints_have_no_unknown_record(case: Case) -> None:
    paths = [*case.logs.glob("bootstrap.checkpoint"), *case.logs.glob(METADATA_LOG + "-*/*.log")]
    records = [record for path in paths for record in metadata_records(path)]
    assert [record for record in records if record.error is not None] == []
    topics = {
        record.value["name"]: record.value["topic_id"]
        for record in records
        if record.type == "topic_record" and record.value is not None
    }
    recorded = case.meta["topics"]
    assert {name: recorded[name]["topic_id"] for name in topics if name in recorded} == {
        name: topic_id for name, topic_id in topics.items() if name in recorded
    }


@pytest.mark.parametrize("case", WITH_METADATA, ids=name_of)
def test_records_of_the_quorum_are_what_the_dump_tool_says(case: Case) -> None:
    text = (case.expected / f"{METADATA_LOG}-0.dump.txt").read_text(encoding="utf-8")
    dumped = re.findall(r"^\| offset: .* headerKeys: \[\] (?:controlType: )?(\w+)(\W.*)$", text, re.M)
    paths = case.answered.glob(METADATA_LOG + "-*/*.log")
    records = [each for path in paths for each in metadata_records(path) if not each.type.endswith("_record")]
    assert dumped
    for record, (name, fields) in zip(records, dumped, strict=True):
        assert record.type == QUORUM_RECORDS[name]
        # Before version 4 the tool prints only the type.
        if not fields.startswith("("):
            assert {"version": record.value_version, **(record.value or {})} == snake_keys(
                json.loads(fields.removeprefix(":"))
            )
