"""The metadata log: snapshots of it, and directories that Kafka has formatted or written."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, Producer
from txnkafka.broker.registry import metadata_snapshots
from txnkafka.broker.registry.metadata_replay import MetadataReplay
from txnkafka.broker.registry.metadata_snapshot import SnapshotId, find_snapshots, write_snapshot
from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.coordinator.registry.image_records import image_records
from txnkafka.coordinator.registry.metadata_records import LogRecord, encode_metadata, feature_level, topic
from txnkafka.env import DataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.handover.hand_over import check
from txnkafka.handover.report import Owner
from txnkafka.storage.identity import identify_or_make
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.records import decode_control_body

DIRECTORY = "/data/__cluster_metadata-0"
HOUR_MS = 3_600_000
UUID_1, UUID_2 = "AAAAAAAAAAEAAAAAAAAAAg", "AAAAAAAAAAMAAAAAAAAABA"


def snapshots(node: Node) -> list[SnapshotId]:
    return find_snapshots(node.files, DIRECTORY)


def shown(image: ClusterImage) -> list[dict[str, Any]]:
    """Without the producer ids: every start takes a block."""
    return [record.as_dict() for record in image_records(image) if record.type != "producer_ids_record"]


def shown_after_a_start(before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with the epochs of the next start."""
    raised = [dict(each, value=dict(each["value"])) for each in before]
    for each in raised:
        if each["type"] == "partition_record":
            each["value"]["leader_epoch"] += 1
            each["value"]["partition_epoch"] += 1
    return raised


def write_now(files: DataFiles, snapshot: SnapshotId, *records: LogRecord, **fields: Any) -> None:
    for path in ("/data", DIRECTORY):
        if not files.exists(path):
            files.make_directory(path)
    for _ in write_snapshot(
        files, DIRECTORY, snapshot, records, **{"voters": [], "timestamp": NOW, **fields}
    ):
        pass


def remove_log(files: DataFiles) -> None:
    """Of the metadata log only its snapshots are left."""
    for entry in files.list(DIRECTORY):
        if not entry.name.endswith(".checkpoint"):
            files.remove(f"{DIRECTORY}/{entry.name}")


def some_topics(node: Node) -> None:
    node.create("t", 3, retention_ms="1000")
    node.create("gone")
    node.call(node.broker.topics.delete, ["gone"], [])
    producer = Producer(node)
    assert producer.send_and_commit(b"a", 0) == ErrorCode.NONE
    assert node.broker.image.next_producer_id == 1000


def test_a_snapshot_is_written_every_hour_in_which_something_has_changed() -> None:
    node = Node(metadata_max_retention_ms=-1)
    some_topics(node)
    assert snapshots(node) == []
    end, before = node.broker.metadata.log.log_end_offset, shown(node.broker.image)
    node.wait(HOUR_MS)
    assert snapshots(node) == [(end, 1)] == node.broker.metadata.snapshots
    node.wait(HOUR_MS)
    assert len(snapshots(node)) == 1
    node.create("later")
    node.wait(HOUR_MS)
    assert [each.epoch for each in snapshots(node)] == [1, 1]
    node.restart()
    assert all(record in shown(node.broker.image) for record in shown_after_a_start(before))
    assert set(node.broker.image.topics) >= {"t", "later"}


def test_a_snapshot_is_the_state_of_the_log() -> None:
    node = Node(metadata_log_max_record_bytes_between_snapshots=1)
    some_topics(node)
    node.wait(1)
    before, epoch = shown(node.broker.image), node.broker.metadata.epoch
    newest = snapshots(node)[-1]
    assert newest.end_offset == node.broker.metadata.log.log_end_offset
    node.close()
    remove_log(node.files)
    node = Node(node.files)
    assert shown(node.broker.image) == shown_after_a_start(before)
    assert node.broker.image.next_producer_id == 2000, "the second block, behind the first"
    assert node.broker.metadata.epoch > epoch
    assert node.broker.metadata.log.segments[0].base_offset == newest.end_offset
    node.create("u")
    node.restart()
    assert set(node.broker.image.topics) >= {"t", "u"}
    assert node.values() == [b"a"]


def test_a_snapshot_contains_only_what_is_durable_when_it_begins() -> None:
    """A record that is appended and not flushed may be lost; a snapshot with it would stay."""
    node = Node(metadata_log_max_record_bytes_between_snapshots=1)
    node.create("t")
    metadata = node.broker.metadata
    durable = metadata.log.log_end_offset
    metadata.append([topic("unflushed", UUID_1)], node.now_ms)
    node.broker.advance(node.now_ms + 1)
    while (work := node.broker.begin_work()) is not None:
        work.run()
        node.broker.finish_work(work, None, now_ms=node.now_ms)
    assert metadata.log.recovery_point == durable, "the topic is not durable yet"
    newest = snapshots(node)[-1]
    assert newest.end_offset == durable
    state = MetadataReplay()
    for _ in state.load(node.files, DIRECTORY, newest):
        pass
    assert "unflushed" not in state.image.topics


def test_what_lies_before_old_snapshots_is_deleted() -> None:
    node = Node(metadata_log_max_record_bytes_between_snapshots=1, metadata_max_retention_bytes=1)
    for number in range(4):
        node.create(f"t{number}")
        node.wait(1)
    (newest,) = snapshots(node)
    assert node.broker.metadata.log.log_start_offset == newest.end_offset
    node.restart()
    assert set(node.broker.image.topics) >= {"t0", "t1", "t2", "t3"}


def test_snapshots_that_are_too_old_are_deleted_but_the_newest() -> None:
    node = Node(metadata_max_retention_ms=2 * HOUR_MS)
    files = node.files
    for number in range(3):
        node.create(f"t{number}")
        node.wait(HOUR_MS)
        files.set_modified_ms(f"{DIRECTORY}/{snapshots(node)[-1].name}", node.now_ms)
    assert len(snapshots(node)) == 3
    for number in range(3, 5):
        node.create(f"t{number}")
        node.wait(HOUR_MS)
        files.set_modified_ms(f"{DIRECTORY}/{snapshots(node)[-1].name}", node.now_ms)
    assert len(snapshots(node)) == 3


def in_a_snapshot() -> Node:
    """A broker that has written a part of a snapshot."""
    node = Node()
    node.create("t", 5)
    node.now_ms += HOUR_MS
    node.broker.advance(node.now_ms)
    while not parts(node.files):
        work = node.broker.begin_work()
        assert work is not None
        work.run()
        node.broker.finish_work(work, None, now_ms=node.now_ms)
    return node


def parts(files: DataFiles) -> list[str]:
    return [entry.name for entry in files.list(DIRECTORY) if entry.name.endswith(".checkpoint.part")]


def test_pieces_of_a_snapshot_and_a_stop_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_snapshots, "PIECE_COST", 1)
    node = in_a_snapshot()
    assert node.broker.is_idle
    node.broker.close()
    assert not parts(node.files)
    node = Node(node.files)
    assert len(node.broker.image.topics["t"].partitions) == 5


def test_a_dropped_broker_changes_nothing_when_it_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory may have another owner by then, which writes the same snapshot."""
    monkeypatch.setattr(metadata_snapshots, "PIECE_COST", 1)
    files = in_a_snapshot().files
    gc.collect()
    assert parts(files)


def test_a_power_cut_leaves_the_old_snapshot_or_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_snapshots, "PIECE_COST", 4096)
    node = Node(metadata_log_max_record_bytes_between_snapshots=1, metadata_max_retention_bytes=1)
    moments: list[tuple[int, str]] = []
    for number in range(3):
        assert node.create(f"t{number}") == ErrorCode.NONE
        moments.append((len(node.files.journal), f"t{number}"))  # type: ignore[attr-defined]
        node.wait(1)
    count = 0
    assert isinstance(node.files, MemoryFiles)
    for state in crash_states(node.files, limit=60, news=[told for told, _ in moments]):
        again = Node(MemoryFiles(base=state.disk))
        promised = {name for told, name in moments if told <= state.changes}
        assert promised <= again.broker.image.topics.keys()
        count += 1
    assert count > 40


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


def test_what_is_not_finished_is_removed() -> None:
    node = Node()
    node.close()
    for name in (f"{SnapshotId(9, 1).name}.part", f"{SnapshotId(9, 1).name}.deleted"):
        node.files.create(f"{DIRECTORY}/{name}").close()
    node = Node(node.files)
    assert not [entry for entry in node.files.list(DIRECTORY) if ".checkpoint" in entry.name]


def voters(node_id: int) -> list[tuple[bytes, bytes]]:
    """As ``kafka-storage format --standalone`` writes them."""
    endpoint = b"\x0b" + b"CONTROLLER" + b"\x0a" + b"127.0.0.1" + (9093).to_bytes(2, "big") + b"\0"
    voter = node_id.to_bytes(4, "big") + bytes(range(16)) + b"\2" + endpoint + b"\0\0\0\1\0" + b"\0"
    return [(b"\0\0\0\5", b"\0\0\0\1\0"), (b"\0\0\0\6", b"\0\0" + b"\2" + voter + b"\0")]


def test_the_voters_of_a_dynamic_quorum_stay() -> None:
    files = MemoryFiles()
    assert decode_control_body(6, voters(1)[1][1]).error is None
    write_now(files, SnapshotId(0, 0), voters=voters(1))
    node = Node(files, metadata_max_retention_ms=-1)
    quorum = json.loads(files.read(f"{DIRECTORY}/quorum-state", 1000))
    assert quorum == {
        "leaderId": 1, "leaderEpoch": 1, "votedId": -1, "votedDirectoryId": "A" * 22, "data_version": 1
    }  # fmt: skip
    node.create()
    node.wait(HOUR_MS)
    assert len(snapshots(node)) == 2
    node.close()
    files.remove(f"{DIRECTORY}/{SnapshotId(0, 0).name}")
    remove_log(files)
    node = Node(files)
    assert json.loads(files.read(f"{DIRECTORY}/quorum-state", 1000))["data_version"] == 1
    assert "t" in node.broker.image.topics


def test_the_directory_of_a_cluster_is_refused() -> None:
    files = MemoryFiles()
    write_now(files, SnapshotId(0, 0), voters=voters(7))
    with pytest.raises(KafkaError, match="cluster: node 7 is also a voter"):
        Node(files)


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
    with pytest.raises(LogDirError, match="has no snapshot: topics are missing"):
        Node(node.files)


@pytest.mark.parametrize("version", ["4.3", "4.4"])
def test_features_of_a_directory_that_was_only_formatted(version: str) -> None:
    """Apache Kafka 4.4 leaves them in ``0-0.checkpoint``. The log gets them: Kafka does not start without."""
    files, snapshot = MemoryFiles(), f"{DIRECTORY}/{SnapshotId(0, 0).name}"
    records = [feature_level("metadata.version", 25), feature_level("transaction.version", 1)]
    write_now(files, SnapshotId(0, 0), *records)
    if version == "4.3":
        files.rename(snapshot, "/data/bootstrap.checkpoint")
        identify_or_make(files, "/data", None, None)  # without it the directory could be anything
    node = Node(files)
    assert node.broker.image.features == {"metadata.version": 25, "transaction.version": 1}
    node.close()
    files.remove(snapshot if version == "4.4" else "/data/bootstrap.checkpoint")
    assert Node(files).broker.image.features == {"metadata.version": 25, "transaction.version": 1}


@pytest.mark.parametrize("to", Owner)
def test_unknown_levels_of_a_directory_that_was_only_formatted(to: Owner) -> None:
    files = MemoryFiles()
    Node(files).close()
    files.remove(f"{DIRECTORY}/{0:020}.log")
    write_now(files, SnapshotId(0, 0), feature_level("metadata.version", 34))
    assert [each.code for each in check(files, "/data", to, now_ms=NOW).findings] == ["unknown-feature"]
    with pytest.raises(KafkaError, match=r"metadata\.version has level 34"):
        Node(files)


def record(kind: str, api_key: int, version: int, /, **fields: Any) -> LogRecord:
    return LogRecord(kind, api_key, None, version, fields)


KEPT = [
    record(
        "register_broker_record", 0, 3, broker_id=1, is_migrating_zk_broker=False, incarnation_id=UUID_1,
        broker_epoch=5, end_points=[], features=[], rack=None, fenced=True, in_controlled_shutdown=False,
        log_dirs=[UUID_2],
    ),
    record(
        "client_quota_record", 14, 0, entity=[{"entity_type": "user", "entity_name": None}],
        key="producer_byte_rate", value=1000.0, remove=False,
    ),
    record(
        "access_control_entry_record", 18, 0, id=UUID_1, resource_type=2, resource_name="t", pattern_type=3,
        principal="User:a", host="*", operation=3, permission_type=3,
    ),
    record(
        "user_scram_credential_record", 11, 0, name="a", mechanism=1, salt=b"s", stored_key=b"k",
        server_key=b"v", iterations=4096,
    ),
    record(
        "delegation_token_record", 10, 0, owner="User:a", requester="User:a", renewers=[], issue_timestamp=1,
        max_timestamp=2, expiration_timestamp=3, token_id="x",
    ),
]  # fmt: skip
REMOVALS = [
    record("unregister_broker_record", 1, 0, broker_id=1, broker_epoch=5),
    record(
        "client_quota_record", 14, 0, entity=[{"entity_type": "user", "entity_name": None}],
        key="producer_byte_rate", value=0.0, remove=True,
    ),
    record("remove_access_control_entry_record", 19, 0, id=UUID_1),
    record("remove_user_scram_credential_record", 22, 0, name="a", mechanism=1),
    record("remove_delegation_token_record", 26, 0, token_id="x"),
]  # fmt: skip


PAIRS = list(zip(KEPT, REMOVALS, strict=True))


@pytest.mark.parametrize(("kept", "removal"), PAIRS, ids=lambda each: each.type)
def test_what_means_nothing_here_is_in_a_snapshot(kept: LogRecord, removal: LogRecord) -> None:
    assert encode_metadata(kept)
    assert encode_metadata(removal)
    image = ClusterImage()
    image.replay(kept)
    assert list(image_records(image)) == [kept]
    image.replay(kept)
    assert list(image_records(image)) == [kept]
    image.replay(removal)
    assert list(image_records(image)) == []


def test_the_registration_of_a_broker_follows_its_changes() -> None:
    image = ClusterImage()
    image.replay(KEPT[0])
    change = {"broker_id": 1, "broker_epoch": 5, "fenced": -1, "in_controlled_shutdown": 1}
    image.replay(record("broker_registration_change_record", 17, 1, **change))
    ((found),) = image_records(image)
    assert found.value is not None
    assert (found.value["fenced"], found.value["in_controlled_shutdown"]) == (False, True)
    image.replay(record("fence_broker_record", 7, 0, id=1, epoch=5))
    ((found),) = image_records(image)
    assert found.value == {**(KEPT[0].value or {}), "fenced": True, "in_controlled_shutdown": True}


def test_a_kafka_that_was_killed_is_fenced_at_the_next_start() -> None:
    files = MemoryFiles()
    running = replace(KEPT[0], value={**(KEPT[0].value or {}), "fenced": False})
    write_now(files, SnapshotId(10, 1), feature_level("metadata.version", 30), running)
    node = Node(files)
    (found,) = node.broker.image.kept.of("register_broker_record")
    assert found.value == KEPT[0].value
    end = node.broker.metadata.log.log_end_offset
    node.restart()
    (found,) = node.broker.image.kept.of("register_broker_record")
    assert found.value == KEPT[0].value
    assert node.broker.metadata.log.log_end_offset == end + 2, "an election and a block of ids"
