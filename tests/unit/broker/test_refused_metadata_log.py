"""Metadata logs on which no broker is started: those that lack offsets, and those of other nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.broker.node import NOW, Node
from txnkafka._core.scan import scan
from txnkafka.coordinator.registry.metadata_records import feature_level, partition, topic
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import Owner
from txnkafka.testing.memory_files import MemoryFiles

DIRECTORY = "/data/__cluster_metadata-0"
OTHER_ID = "AAAAAAAAAAEAAAAAAAAAAg"


@pytest.mark.parametrize("replicas", [[2], [1, 2]])
def test_partitions_of_other_nodes_are_not_served(replicas: list[int]) -> None:
    """The voters of most clusters are in their configuration, and not in the log."""
    node = Node()
    node.create("t")
    record = partition(OTHER_ID, 0, 2, OTHER_ID)
    assert record.value is not None
    record.value.update(replicas=replicas, isr=[2], directories=[OTHER_ID] * len(replicas))
    node.broker.metadata.append([topic("u", OTHER_ID), record], NOW)
    node.close()
    before = node.files.read(f"{DIRECTORY}/{0:020}.log", 1 << 24)
    with pytest.raises(KafkaError, match="u-0 has a replica on node 2, this is 1"):
        Node(node.files)
    assert node.files.read(f"{DIRECTORY}/{0:020}.log", 1 << 24) == before


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
    for name in ("t", "u", "v"):
        node.create(name)
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


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    ("name", "level"), [("metadata.version", 34), ("metadata.version", 6), ("share.version", 3), ("new", 1)]
)
def test_unknown_levels_are_refused_by_everybody(name: str, level: int, is_clean: bool) -> None:
    """At such a level, records may have an unknown meaning. No owner writes anything."""
    node = Node(MemoryFiles())
    node.create("t")
    node.broker.metadata.append([feature_level(name, level)], NOW)
    node.close()
    files = node.files
    assert isinstance(files, MemoryFiles)
    if not is_clean:
        files.remove("/data/.kafka_cleanshutdown")
    before = everything(files)
    known = f"the feature {name} has level {level}"
    for owner in Owner:
        report = hand_over(files, "/data", owner, now_ms=NOW)
        assert [finding.code for finding in report.findings] == ["unknown-feature"]
        assert known in report.findings[0].message
        assert everything(files) == before
    with pytest.raises(KafkaError, match=known):
        Node(files)
    assert everything(files) == before


def everything(files: MemoryFiles, path: str = "/data") -> dict[str, bytes]:
    """The content of all files but the lock."""
    found: dict[str, bytes] = {}
    for entry in files.list(path):
        name = files.join(path, entry.name)
        if entry.is_directory:
            found |= everything(files, name)
        elif entry.name != ".lock":
            found[name] = files.read(name, 1 << 24)
    return found
