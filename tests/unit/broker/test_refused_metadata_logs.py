"""Metadata logs with which the broker does not start: damaged, of a cluster, or without a part of what they
said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.broker.node import NOW, Node
from tests.unit.broker.test_metadata_log import (
    DIRECTORY,
    UUID_1,
    UUID_2,
    remove_log,
    snapshots,
    some_topics,
    voters,
    write_now,
)
from txnkafka._core.scan import scan
from txnkafka.broker.metadata_snapshot import SnapshotId
from txnkafka.coordinator.metadata_records import feature_level, partition, topic
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.handover.hand_over import check
from txnkafka.handover.report import Owner
from txnkafka.testing.memory_files import MemoryFiles


@pytest.mark.parametrize("damage", ["empty", "no footer", "a flipped byte", "no header"])
def test_a_damaged_snapshot_is_refused(damage: str) -> None:
    files = MemoryFiles()
    write_now(files, SnapshotId(10, 1), feature_level("metadata.version", 30))
    path = f"{DIRECTORY}/{SnapshotId(10, 1).name}"
    content = files.read(path, 10_000)
    if damage == "no footer":
        content = content[: -len(content) // 3]
    changed = {
        "empty": b"",
        "a flipped byte": content[:150] + bytes([content[150] ^ 1]) + content[151:],
        "no header": content[80:],
    }.get(damage, content)
    files.remove(path)
    file = files.create(path)
    file.write(0, [changed])
    file.close()
    with pytest.raises(LogDirError, match=r"00010-0000000001\.checkpoint is damaged"):
        Node(files)


def test_the_directory_of_a_cluster_is_refused() -> None:
    files = MemoryFiles()
    write_now(files, SnapshotId(0, 0), voters=voters(7))
    with pytest.raises(KafkaError, match="cluster: node 7 is a voter, too"):
        Node(files)


@pytest.mark.parametrize("replicas", [[2], [1, 2]])
def test_partitions_of_other_nodes_are_not_served(replicas: list[int]) -> None:
    """The voters of most clusters are in their configuration, and not in the log."""
    node = Node()
    node.create("t")
    record = partition(UUID_1, 0, 2, UUID_2)
    assert record.value is not None
    record.value.update(replicas=replicas, isr=[2], directories=[UUID_2] * len(replicas))
    node.broker.metadata.append([topic("u", UUID_1), record], NOW)
    node.close()
    before = node.files.read(f"{DIRECTORY}/{0:020}.log", 1 << 24)
    with pytest.raises(KafkaError, match="u-0 has a replica on node 2, this is 1"):
        Node(node.files)
    assert node.files.read(f"{DIRECTORY}/{0:020}.log", 1 << 24) == before


def test_a_log_that_begins_behind_its_snapshot_is_refused() -> None:
    node = Node(metadata_log_max_record_bytes_between_snapshots=1)
    node.create()
    node.wait(1)
    node.close()
    remove_log(node.files)
    node = Node(node.files)
    node.close()
    for snapshot in snapshots(node):
        node.files.remove(f"{DIRECTORY}/{snapshot.name}")
    with pytest.raises(LogDirError, match="has no snapshot of what was before: topics are missing"):
        Node(node.files)


def without_a_batch(files: MemoryFiles) -> None:
    """One in the middle of the metadata log is lost: with it goes a topic, or a deletion."""
    path = f"{DIRECTORY}/{0:020}.log"
    content = files.read(path, 1 << 24)
    index = scan(content)
    begin, end = index.position[len(index) // 2], index.position[len(index) // 2 + 1]
    files.remove(path)
    file = files.create(path)
    file.write(0, [content[:begin], content[end:]])
    file.close()


def with_a_later_segment(files: MemoryFiles) -> None:
    """One that begins behind the end; nothing is between them."""
    files.create(f"{DIRECTORY}/{9999:020}.log").close()


@pytest.mark.parametrize("gap", [without_a_batch, with_a_later_segment])
def test_missing_offsets_are_refused(gap: Callable[[MemoryFiles], None]) -> None:
    """The metadata log is never compacted: each offset is a change of the cluster."""
    node = Node(MemoryFiles())
    some_topics(node)
    node.close()
    files = node.files
    assert isinstance(files, MemoryFiles)
    gap(files)
    before = files.read(f"{DIRECTORY}/{0:020}.log", 1 << 24)
    report = check(files, "/data", Owner.KAFKA, now_ms=NOW)
    assert [finding.code for finding in report.findings] == ["bad-metadata-log"]
    assert "are missing" in report.findings[0].message
    with pytest.raises(LogDirError, match="are missing"):
        Node(files)
    assert files.read(f"{DIRECTORY}/{0:020}.log", 1 << 24) == before
