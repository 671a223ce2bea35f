"""Replay of the coordinators' logs: the owners of producer ids, missing parts, committed offsets."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.committed_offsets import End, Event, Tombstone, committed, pending
from tests.models.coordinator_log import (
    offset_commit_key,
    offset_commit_value,
    transaction_key,
    transaction_value,
)
from tests.unit.coordinator.histories import EVENTS, KEYS, commit
from tests.unit.logdir.logs import write_log
from txnkafka import LogDir, TopicPartition
from txnkafka.coordinator import partition_for
from txnkafka.logdir.coordinator import CoordinatorView
from txnkafka.wire.records import TransactionMetadata, TransactionState

Records = list[tuple[bytes | None, bytes | None]]


def batch(base_offset: int, records: Records, producer_id: int = -1, codec: int = 0) -> bytes:
    return Batch(
        records=[PlainRecord(key, value) for key, value in records],
        base_offset=base_offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        transactional=producer_id >= 0,
        base_sequence=0,
    ).encode()


def transaction_log(folder: Path, partition: int, records: Records) -> None:
    content = b"".join(batch(i, [record]) for i, record in enumerate(records))
    write_log(folder, f"__transaction_state-{partition}", {0: [content]})


def state(transactional_id: str, producer_id: int, **fields: object) -> tuple[bytes, bytes]:
    return transaction_key(transactional_id), transaction_value(producer_id, **fields)


def metadata(
    transactional_id: str,
    producer_id: int,
    *,
    previous_producer_id: int = -1,
    next_producer_id: int = -1,
    last_update_timestamp: int = 0,
) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        previous_producer_id=previous_producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=0,
        next_producer_epoch=-1,
        transaction_timeout_ms=60_000,
        state=TransactionState.EMPTY,
        topic_partitions=frozenset(),
        last_update_timestamp=last_update_timestamp,
        start_timestamp=-1,
        client_transaction_version=0,
    )


# Transactions


def test_the_last_record_of_an_id_is_its_state(tmp_path: Path) -> None:
    records = [
        state("a", 1),
        state("b", 2),
        state("a", 1, state=1, topics={"t": [0, 3]}, start_ms=7),
        (transaction_key("b"), None),
        state("c", 3),
    ]
    transaction_log(tmp_path, 0, records)
    found = LogDir(str(tmp_path)).transactional_ids()
    assert sorted(found) == ["a", "c"]
    assert found["a"].state is TransactionState.ONGOING
    assert found["a"].topic_partitions == {TopicPartition("t", 0), TopicPartition("t", 3)}
    assert found["a"].start_timestamp == 7


def test_partitions_are_put_together(tmp_path: Path) -> None:
    transaction_log(tmp_path, 0, [state("a", 1)])
    transaction_log(tmp_path, 1, [state("b", 2)])
    coordinator = LogDir(str(tmp_path)).coordinator
    assert coordinator.located == {"a": 0, "b": 1}
    assert coordinator.partitions == (0, 1)


def test_keys_of_an_unknown_version_are_passed_over(tmp_path: Path) -> None:
    transaction_log(tmp_path, 0, [(b"\0\x07later", b"\0\0"), (None, b"x"), state("a", 1)])
    coordinator = LogDir(str(tmp_path)).coordinator
    assert list(coordinator.transactions) == ["a"]
    assert not coordinator.findings


def test_an_unreadable_state_is_reported_and_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    transaction_log(tmp_path, 0, [state("a", 1), (transaction_key("a"), b"\0\x63what")])
    coordinator = LogDir(str(tmp_path)).coordinator
    assert not coordinator.transactions
    assert [each.code for each in coordinator.findings] == ["coordinator-log-damaged"]
    assert "'a'" in coordinator.findings[0].message
    assert not coordinator.is_complete


def test_damage_is_skipped_and_reported(tmp_path: Path) -> None:
    damaged = bytearray(batch(0, [state("a", 1)]))
    damaged[-1] ^= 1
    content = bytes(damaged) + batch(1, [state("b", 2)])
    # a second segment, so that the damage is not at the log end
    write_log(tmp_path, "__transaction_state-0", {0: [content], 2: [batch(2, [state("c", 3)])]})
    coordinator = LogDir(str(tmp_path)).coordinator
    assert sorted(coordinator.transactions) == ["b", "c"]
    assert [each.code for each in coordinator.findings] == ["coordinator-log-damaged"]
    assert coordinator.damaged_partitions == {0}
    assert not coordinator.is_current("b")


def test_a_log_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """A segment is a dangling link: the rest of the topic is read."""
    transaction_log(tmp_path, 0, [state("a", 1)])
    folder = write_log(tmp_path, "__transaction_state-1", {})
    (folder / f"{0:020d}.log").symlink_to(tmp_path / "nothing")
    coordinator = LogDir(str(tmp_path)).coordinator
    assert sorted(coordinator.transactions) == ["a"]
    assert [each.code for each in coordinator.findings] == ["coordinator-log-damaged"]
    assert coordinator.damaged_partitions == {1}


def test_a_lost_segment_is_damage(tmp_path: Path) -> None:
    first, last = batch(0, [state("a", 1)]), batch(9, [state("c", 3)])
    write_log(tmp_path, "__transaction_state-0", {0: [first], 9: [last]})
    assert LogDir(str(tmp_path)).coordinator.damaged_partitions == {0}


def test_who_owns_a_producer_id() -> None:
    rotated = metadata("rotated", 20, previous_producer_id=10, next_producer_id=30)
    usual = metadata("usual", 10, previous_producer_id=10)
    never = metadata("never", 40)

    def owner(producer_id: int, *known: TransactionMetadata) -> str | None:
        transactions = {each.transactional_id: each for each in known}
        found = CoordinatorView(transactions, {}, (0,), frozenset()).owner(producer_id)
        return None if found is None else found.transactional_id

    assert [owner(each, rotated, never) for each in (20, 10, 30, 40)] == ["rotated"] * 3 + ["never"]
    assert owner(10, rotated, usual) == owner(10, usual, rotated) == "usual"
    assert owner(-1, rotated, usual) is None
    assert owner(50, rotated, usual) is None


# Existing partitions


def coverage(names: list[str], partitions: int, there: list[int]) -> CoordinatorView:
    located = {name: partition_for(name, partitions) for name in names}
    located = {name: partition for name, partition in located.items() if partition in there}
    return CoordinatorView({}, located, tuple(there), frozenset())


MANY = [f"service-{i}" for i in range(200)]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 50, 64])
def test_a_whole_topic_is_distinguished_from_a_part(partitions: int) -> None:
    assert coverage(MANY, partitions, list(range(partitions))).is_complete
    for there in ([0], list(range(partitions - 1)), list(range(1, partitions))):
        if there != list(range(partitions)):
            assert not coverage(MANY, partitions, there).is_complete


def test_too_few_ids_prove_nothing_but_fifty_partitions_are_the_default() -> None:
    assert not coverage([], 1, [0]).is_complete
    assert not coverage(["a"], 1, [0]).is_complete
    assert coverage(["a"], 50, list(range(50))).is_complete
    assert not coverage(MANY, 64, list(range(50))).is_complete
    assert not coverage([], 1, []).is_complete


def test_missing_partitions() -> None:
    assert coverage(MANY, 5, [1, 4]).missing_partitions == (0, 2, 3)
    assert coverage(MANY, 5, [0, 1]).missing_partitions == ()
    assert coverage(MANY, 5, []).missing_partitions == ()


def test_a_number_of_a_name_bounds_no_loop() -> None:
    """A directory may have any name, such as __transaction_state-2147483647."""
    largest = 2**31 - 1
    view = coverage(MANY, 5, [1, largest])
    assert view.missing_partitions == (0, *range(2, 101))
    assert not view.is_complete


# Offsets

def encode(event: Event, base_offset: int, codec: int = 0) -> bytes:
    if isinstance(event, End):
        return end_marker(
            int(event.commit), base_offset=base_offset, producer_id=event.producer_id, producer_epoch=0
        )
    if isinstance(event, Tombstone):
        return batch(base_offset, [(offset_commit_key(*KEYS[event.key]), None)], codec=codec)
    return batch(base_offset, [commit(event.key, event.offset)], event.producer_id, codec)


def offsets_log(folder: Path, events: list[Event], *, codecs: list[int], roll: int) -> LogDir:
    segments: dict[int, list[bytes]] = {}
    for i, event in enumerate(events):
        encoded = encode(event, i, codecs[i % len(codecs)])
        segments.setdefault(i - i % roll, []).append(encoded)
    write_log(folder, "__consumer_offsets-0", segments)
    return LogDir(str(folder))


@given(st.lists(EVENTS, min_size=1, max_size=25), st.lists(st.integers(0, 4), min_size=1), st.integers(1, 25))
def test_offsets_are_those_of_the_model(history: list[Event], codecs: list[int], roll: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log_dir = offsets_log(Path(folder), history, codecs=codecs, roll=roll)
        found_committed, found_pending = log_dir.committed_offsets(), log_dir.pending_offsets()
    assert not log_dir.groups.findings
    for i, (group, topic, partition) in enumerate(KEYS):
        key = (group, TopicPartition(topic, partition))
        each = found_committed.get(key)
        assert (None if each is None else each.offset) == committed(history, i)
        undecided = {each.producer_id: each.committed.offset for each in found_pending.get(key, [])}
        assert undecided == pending(history, i)


def test_records_of_several_producers_keep_their_own(tmp_path: Path) -> None:
    log = batch(0, [commit(0, 1), commit(1, 2)], 5) + batch(2, [commit(0, 3), commit(2, 4)], 6)
    log += batch(4, [commit(0, 9)]) + end_marker(1, base_offset=5, producer_id=5, producer_epoch=0)
    write_log(tmp_path, "__consumer_offsets-0", {0: [log]})
    log_dir = LogDir(str(tmp_path))
    found = {
        (group, each.partition): value.offset for (group, each), value in log_dir.committed_offsets().items()
    }
    assert found == {("g", 0): 9, ("g", 1): 2}  # the later non-transactional commit of g-0 stays
    undecided = {(group, each.partition): value for (group, each), value in log_dir.pending_offsets().items()}
    assert {
        key: [(each.producer_id, each.record_offset) for each in value] for key, value in undecided.items()
    } == {
        ("g", 0): [(6, 2)],
        ("h", 0): [(6, 3)],
    }


def test_an_idempotent_batch_is_no_transaction(tmp_path: Path) -> None:
    records = [PlainRecord(*commit(0, 5))]
    log = Batch(records=records, producer_id=7, producer_epoch=0, base_sequence=0).encode()
    write_log(tmp_path, "__consumer_offsets-0", {0: [log]})
    log_dir = LogDir(str(tmp_path))
    assert [each.offset for each in log_dir.committed_offsets().values()] == [5]
    assert not log_dir.pending_offsets()


def test_a_batch_at_a_damaged_offset_does_not_claim_the_records_behind_it(tmp_path: Path) -> None:
    segment = [batch(0, [commit(0, 1)]), batch(1 << 40, [commit(1, 2)], 5), batch(2, [commit(2, 3)])]
    write_log(tmp_path, "__consumer_offsets-0", {0: segment, 3: [batch(3, [commit(0, 4)])]})
    log_dir = LogDir(str(tmp_path))
    found = {
        (group, each.partition): value.offset for (group, each), value in log_dir.committed_offsets().items()
    }
    assert found == {("g", 0): 4, ("h", 0): 3}
    assert not log_dir.pending_offsets()
    assert [each.code for each in log_dir.groups.findings] == ["coordinator-log-damaged"]


def test_both_versions_of_a_key_are_one_key(tmp_path: Path) -> None:
    old = offset_commit_key("g", "t", 0, version=0)
    log = batch(0, [(offset_commit_key("g", "t", 0), offset_commit_value(1)), (old, None)])
    write_log(tmp_path, "__consumer_offsets-0", {0: [log]})
    assert LogDir(str(tmp_path)).committed_offsets() == {}


def test_an_unreadable_offset_is_reported(tmp_path: Path) -> None:
    write_log(tmp_path, "__consumer_offsets-3", {0: [batch(0, [(commit(0, 0)[0], b"\0\x63")])]})
    groups = LogDir(str(tmp_path)).groups
    assert groups.partitions == (3,)
    assert not groups.committed
    assert [each.code for each in groups.findings] == ["coordinator-log-damaged"]
