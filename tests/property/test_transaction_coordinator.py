"""Random requests, compared with the simple model: the same answers, states and markers, also after a
reload."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.models.transaction_coordinator import Coordinator, Id
from tests.models.transaction_world import Partition
from tests.unit.coordinator.world import T0, T1, World
from txnkafka.coordinator.txn.transaction_partition import TransactionPartition, loaded_records
from txnkafka.coordinator.txn.txn_events import (
    AddOffsets,
    AddPartitions,
    Answer,
    EndTxn,
    InitProducerId,
    TransactionRecord,
    VerifyPartitions,
)
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

NAMES = ("a", "b")
PARTITIONS = (T0, T1, TopicPartition("__consumer_offsets", 0))
START_EPOCHS = (0, 3, 32763, 32764, 32765, 32766, 32767)

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["init", "init", "continue", "add", "add", "offsets", "verify", "end", "end", "late"]
        ),
        st.sampled_from(NAMES),
        st.sampled_from(["mine", "mine", "mine", "mine", "before", "last", "ahead", "old id", "foreign"]),
        st.sampled_from([0, 2]),
        st.integers(1, 7),
        st.integers(0, 400),
    ),
    max_size=40,
)


@dataclass
class Both:
    """The coordinator and the model, with the results of each."""

    world: World
    model: Coordinator

    def identity(self, name: str, kind: str) -> tuple[int, int]:
        """Return the producer id and the epoch of a request."""
        it = self.model.ids.get(name) or Id(77, 0)
        return {
            "mine": (it.producer, it.epoch),
            "before": (it.producer, max(it.epoch - 1, 0)),
            "last": (it.producer, max(it.last_epoch, 0)),
            "ahead": (it.producer, min(it.epoch + 1, 32767)),
            "old id": (max(it.previous, 0), 32766),
            "foreign": (4711, it.epoch),
        }[kind]

    def do(self, what: str, name: str, who: tuple[int, int], version: int, number: int) -> None:
        now, world, model = self.world.now, self.world, self.model
        chosen = frozenset(each for i, each in enumerate(PARTITIONS) if number >> i & 1)
        words = set(map(str, chosen))
        if what == "init":
            event: Any = InitProducerId(name, 1_000 * number)
            told: Any = model.init(name, 1_000 * number, now)
        elif what == "continue":
            event = InitProducerId(name, 1_000 * number, *who)
            told = model.init(name, 1_000 * number, now, *who)
        elif what == "add":
            event = AddPartitions(name, *who, chosen, version)
            told = model.add(name, *who, words, version, now)
        elif what == "offsets":
            event = AddOffsets(name, *who, PARTITIONS[2], version)
            told = model.add(name, *who, {str(PARTITIONS[2])}, version, now)
        elif what == "verify":
            event = VerifyPartitions(name, *who, chosen)
            told = model.verify(name, *who, words)
        else:
            event = EndTxn(name, *who, number > 3, version)
            told = model.end(name, *who, number > 3, version, now)
        assert shown(world.ask(event), what) == told, event

    def pass_time(self, milliseconds: int) -> None:
        self.world.host.now_ms += milliseconds
        now = self.world.now
        self.model.time_out(now)
        self.model.expire(now)
        self.world.advance(0)
        self.world.host.settle()

    def compare(self) -> None:
        states = [state.metadata for state in self.world.coordinator.partitions.values()]
        metadata = {name: each for state in states for name, each in state.items()}
        assert {name: modelled(each) for name, each in metadata.items()} == self.model.ids
        found = Counter(
            (it.producer_id, it.producer_epoch, it.committed, str(it.partition), it.transaction_version)
            for it in self.world.host.written
        )
        modelled_markers = Counter(
            (*identity, partition, version)
            for *identity, partitions, version in self.model.markers
            for partition in partitions
        )
        assert found == modelled_markers


def shown(answer: Answer, what: str) -> Any:
    if what == "verify":
        return answer.error.name, {str(each) for each in answer.missing}
    return answer.error.name, answer.producer_id, answer.producer_epoch


def modelled(metadata: TransactionMetadata) -> Id:
    assert (metadata.next_producer_id, metadata.next_producer_epoch) == (-1, -1)
    return Id(
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.previous_producer_id,
        metadata.last_producer_epoch,
        metadata.transaction_timeout_ms,
        metadata.state.label,
        {str(each) for each in metadata.topic_partitions},
        metadata.start_timestamp,
        metadata.last_update_timestamp,
        metadata.client_transaction_version,
    )


def started(version: int, epoch: int) -> Both:
    """Create both with id "a" at an epoch, as left by another coordinator."""
    both = Both(World(version=version), Coordinator(version))
    both.world.host.partitions = {}
    both.world.host.partitions.update({name: Partition() for name in PARTITIONS})
    if epoch:
        both.do("init", "a", (-1, -1), 0, 5)
        coordinator = both.world.coordinator
        state = coordinator.partitions[coordinator.partition_of("a")]
        record = TransactionRecord("a", state.metadata["a"]._replace(producer_epoch=epoch))
        log = both.world.host.state_logs[coordinator.partition_of("a")]
        log.append(record.encoded(1))
        log.flush()
        state.replay(record)
        both.model.ids["a"].epoch = epoch
    return both


def reloaded(world: World, length: int, number: int) -> dict[str, TransactionMetadata]:
    """Return the state after a number of records of a log."""
    state = TransactionPartition(0)
    for record in loaded_records(world.host.state_logs[number].entries[:length])[0]:
        state.replay(record)
    return state.metadata


@given(steps, st.sampled_from([0, 1, 2]), st.sampled_from(START_EPOCHS))
def test_the_same_as_the_model(requests: list[Any], version: int, epoch: int) -> None:
    both = started(version, epoch)
    for what, name, kind, client_version, number, gap in requests:
        if what == "late":
            both.pass_time(1_000 * gap**3)
            continue
        both.world.host.now_ms += gap
        both.do(what, name, both.identity(name, kind), client_version, number)
        both.compare()
    both.compare()


@given(steps, st.sampled_from([1, 2]), st.sampled_from(START_EPOCHS))
def test_at_every_record_a_reload_gives_the_state_that_was(
    requests: list[Any], version: int, epoch: int
) -> None:
    """Compares every field, including the last epoch, after every record when it takes effect."""
    both = started(version, epoch)
    world, states = both.world, both.world.coordinator.partitions
    snapshots = [(number, *watched(world, number)) for number in states]
    for what, name, kind, client_version, number, gap in requests:
        if what == "late":
            both.pass_time(1_000 * gap**3)
        else:
            both.do(what, name, both.identity(name, kind), client_version, number)
    for partition, first, taken in snapshots:
        assert first + len(taken) == len(world.host.state_logs[partition].entries)
        for i, metadata in enumerate(taken):
            assert reloaded(world, first + i + 1, partition) == metadata
    for state in states.values():
        ongoing = {name for name, each in state.metadata.items() if each.state == TransactionState.ONGOING}
        assert set(state.ongoing) == ongoing


def watched(world: World, number: int) -> tuple[int, list[dict[str, TransactionMetadata]]]:
    """Return the number of records of the log, and a list that gets the state after each later one."""
    state, taken = world.coordinator.partitions[number], list[dict[str, TransactionMetadata]]()
    replay = state.replay

    def replay_and_look(record: TransactionRecord) -> None:
        replay(record)
        taken.append(dict(state.metadata))

    state.replay = replay_and_look  # type: ignore[method-assign]
    return len(world.host.state_logs[number].entries), taken
