"""What the broker itself says of its offsets, producers, transactions and groups, and what we read from its
files while it runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from kafka import IsolationLevel, KafkaAdminClient, OffsetSpec
from kafka import TopicPartition as Asked

from tests.conformance.broker import KafkaBroker
from tests.conformance.topics import BEGAN, PARTITIONS
from txnkafka import LogDir, TopicPartition
from txnkafka.cli.main import cli
from txnkafka.env import SystemClock

ALL = [Asked(topic, number) for topic, count in PARTITIONS.items() for number in range(count)]


@pytest.fixture
def log_dir(kafka: KafkaBroker) -> LogDir:
    return LogDir(str(kafka.log_dir))


@pytest.fixture
def admin(kafka: KafkaBroker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    yield client
    client.close()


def listed(admin: KafkaAdminClient, spec: object, level: IsolationLevel) -> dict[Asked, int]:
    found = admin.list_partition_offsets(dict.fromkeys(ALL, spec), isolation_level=level)
    return {partition: each.offset for partition, each in found.items()}


def run(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, [*arguments, "--format", "json"], standalone_mode=False)
    assert result.exception is None, result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_offsets(admin: KafkaAdminClient, kafka: KafkaBroker) -> None:
    """`txnkafka ls` against ListOffsets."""
    rows = {Asked(row["topic"], row["partition"]): row for row in run("ls", str(kafka.log_dir))["partitions"]}
    starts = listed(admin, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)
    assert {each: rows[each]["log_start_offset"] for each in ALL} == starts
    ends = listed(admin, OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED)
    assert {each: rows[each]["log_end_offset"] for each in ALL} == ends
    stable = listed(admin, OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED)
    assert {each: rows[each]["last_stable_offset"] for each in ALL} == stable
    assert {each.topic for each in ALL if stable[each] < ends[each]} == {"hang", "held"}


def test_an_open_transaction_without_its_beginning(admin: KafkaAdminClient, log_dir: LogDir) -> None:
    """The last stable offset is where the batch begins that holds the log start."""
    (stable,) = admin.list_partition_offsets(
        {Asked("headless", 0): OffsetSpec.LATEST}, isolation_level=IsolationLevel.READ_COMMITTED
    ).values()
    view = log_dir.partition("headless", 0)
    assert (view.log_start_offset, view.last_stable_offset) == (17, stable.offset)
    assert list(view.records()) == []


@pytest.mark.parametrize("number", [-5, 0, 3, 149, 300, 699, 10_000])
def test_offsets_by_time(admin: KafkaAdminClient, log_dir: LogDir, number: int) -> None:
    timestamp = BEGAN + 1000 * number
    for level in IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED:
        theirs = listed(admin, timestamp, level)
        for each in ALL:
            found = log_dir.partition(*each).offset_for_timestamp(timestamp, level.name.lower())
            assert (-1 if found is None else found.offset) == theirs[each], each


def test_time_before_an_emptied_segment(
    admin: KafkaAdminClient, kafka: KafkaBroker, log_dir: LogDir
) -> None:
    """Kafka takes the time of the file for the latest timestamp of a segment without records, searches that
    segment only, and finds nothing."""
    emptied = Asked("emptied", 0)
    first = min((kafka.log_dir / "emptied-0").glob("*.log"))
    assert (first.stem, first.stat().st_size) == ("0" * 20, 0)
    for level in IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED:
        theirs = admin.list_partition_offsets({emptied: BEGAN}, isolation_level=level)
        found = log_dir.partition("emptied", 0).offset_for_timestamp(BEGAN, level.name.lower())
        assert (found and found.offset, theirs[emptied].offset) == (1, -1)


class Producer(NamedTuple):
    """What DescribeProducers tells; -1 where there is nothing."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


def test_producers(admin: KafkaAdminClient, log_dir: LogDir) -> None:
    described = admin.describe_producers([*ALL, Asked("headless", 0)])
    now_ms = SystemClock().now_ms()
    count = 0
    for partition, answer in described.items():
        theirs = {Producer(*each) for each in answer.active_producers}
        ours = {
            Producer(
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.coordinator_epoch,
                each.current_txn_first_offset,
            )
            for each in log_dir.partition(*partition).producers(now_ms=now_ms)
        }
        assert ours == theirs, partition
        count += len(theirs)
    assert count >= 15


def test_transactions(admin: KafkaAdminClient, log_dir: LogDir) -> None:
    (listings,) = admin.list_transactions().values()
    known = log_dir.transactional_ids()
    assert {(name, each.producer_id, each.state.label) for name, each in known.items()} == {
        (each.transactional_id, each.producer_id, each.state.value) for each in listings
    }
    for name, description in admin.describe_transactions(list(known)).items():
        ours = known[name]
        assert (
            ours.state.label,
            ours.producer_id,
            ours.producer_epoch,
            ours.transaction_timeout_ms,
            ours.start_timestamp,
            {Asked(*each) for each in ours.topic_partitions},
        ) == (
            description.state.value,
            description.producer_id,
            description.producer_epoch,
            description.transaction_timeout_ms,
            description.transaction_start_time_ms,
            description.topic_partitions,
        )
    assert {each.state.label for each in known.values()} == {"Ongoing", "CompleteCommit", "CompleteAbort"}


def test_group_offsets(admin: KafkaAdminClient, log_dir: LogDir) -> None:
    committed = log_dir.committed_offsets()
    for group in ("billing", "audit"):
        (theirs,) = admin.list_group_offsets(group).values()
        assert {
            each: (found.offset, found.metadata, found.leader_epoch) for each, found in theirs.items()
        } == {
            Asked(*partition): (found.offset, found.metadata, found.leader_epoch)
            for (name, partition), found in committed.items()
            if name == group
        }
        assert theirs[Asked("orders", 1)].offset == 11
    assert {partition for _, partition in log_dir.pending_offsets()} == {
        TopicPartition("orders", 1),
        TopicPartition("held", 0),
    }


def test_what_the_broker_left_is_sound(kafka: KafkaBroker) -> None:
    """`txnkafka verify` has nothing to say about files that no fault has met."""
    with kafka.stopped():
        report = run("verify", str(kafka.log_dir), "--level", "records")
    assert [each for each in report["findings"] if each["severity"] != "note"] == []
    assert report["partitions"] > len(ALL)
