"""Kept transactions (KIP-939): the decisions of the coordinator, and the producer that may end them."""

from __future__ import annotations

import random
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.transaction_world import Written
from tests.unit.coordinator.transition_cases import (
    EPOCH,
    EXHAUSTED,
    ID,
    INSIDE,
    LATE,
    NEW_PRODUCER,
    NOW,
    PRODUCER,
    state_of,
)
from tests.unit.coordinator.world import T0, T1, World
from txnkafka.coordinator.txn.open_transactions import has_joined
from txnkafka.coordinator.txn.txn_config import TransactionConfig
from txnkafka.coordinator.txn.txn_events import (
    AddPartitions,
    Answer,
    EndTxn,
    Event,
    InitProducerId,
    MarkersWritten,
    NeedsProducerId,
    Parked,
    Refused,
    Result,
    Timeout,
    Transition,
    VerifyPartitions,
)
from txnkafka.coordinator.txn.txn_image import NO_TIMEOUT
from txnkafka.coordinator.txn.txn_setting import Limits, SeenEpochs
from txnkafka.coordinator.txn.txn_state import transition
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.records import (
    TransactionMetadata,
    TransactionState,
    decode_transaction_log,
    encode_transaction_key,
    encode_transaction_value,
)

S = TransactionState
ON = Limits(two_phase_commit=True)
KEEP = InitProducerId(ID, 30_000, enable_2pc=True, keep_prepared_txn=True)
ONGOING = state_of(S.ONGOING)._replace(transaction_timeout_ms=NO_TIMEOUT)


def decided(metadata: TransactionMetadata | None, event: Event, *, version: int = 2) -> Result:
    result = transition(metadata, event, now_ms=NOW, version=version, limits=ON)
    if isinstance(result, NeedsProducerId):
        return transition(metadata, event, now_ms=NOW, version=version, limits=ON, producer_id=NEW_PRODUCER)
    return result


def accepted(metadata: TransactionMetadata | None, event: Event, *, version: int = 2) -> Transition:
    result = decided(metadata, event, version=version)
    assert isinstance(result, Transition)
    assert result.record is not None
    assert result.record.metadata == result.metadata
    return result


def state(result: Transition) -> TransactionMetadata:
    assert result.metadata is not None
    return result.metadata


KEPT = ONGOING._replace(
    next_producer_id=PRODUCER, next_producer_epoch=EPOCH + 1, last_update_timestamp=NOW
)  # fmt: skip


def test_the_transaction_keeps_its_identity_and_the_producer_gets_the_next_epoch() -> None:
    result = accepted(ONGOING, KEEP)
    assert result.response == Answer(ErrorCode.NONE, PRODUCER, EPOCH + 1, frozenset(), PRODUCER, EPOCH)
    assert result.effects == ()
    assert state(result) == KEPT
    again = accepted(KEPT, KEEP)
    assert again.response == Answer(ErrorCode.NONE, PRODUCER, EPOCH + 2, frozenset(), PRODUCER, EPOCH)


@pytest.mark.parametrize(("committed", "prepare"), [(True, S.PREPARE_COMMIT), (False, S.PREPARE_ABORT)])
def test_its_end_has_markers_of_the_transaction_and_the_identity_of_the_producer(
    committed: bool, prepare: S
) -> None:
    twice = state(accepted(KEPT, KEEP))
    result = accepted(twice, EndTxn(ID, PRODUCER, EPOCH + 2, committed, 2))
    assert result.response == Answer(ErrorCode.NONE, PRODUCER, EPOCH + 3)
    (markers,) = result.effects
    assert (markers.producer_id, markers.producer_epoch) == (PRODUCER, EPOCH + 3)
    assert (markers.committed, markers.partitions) == (committed, frozenset([INSIDE]))
    assert state(result).state == prepare


def test_at_the_last_epoch_the_producer_gets_another_id_and_the_markers_do_not() -> None:
    """The example of KIP-939."""
    ongoing = ONGOING._replace(producer_epoch=EXHAUSTED)
    once = accepted(ongoing, KEEP)
    assert once.response == Answer(ErrorCode.NONE, NEW_PRODUCER, 0, frozenset(), PRODUCER, EXHAUSTED)
    twice = accepted(state(once), KEEP)
    assert twice.response == Answer(ErrorCode.NONE, NEW_PRODUCER, 1, frozenset(), PRODUCER, EXHAUSTED)
    ended = accepted(state(twice), EndTxn(ID, NEW_PRODUCER, 1, True, 2))
    image = state(ended)
    assert (image.producer_id, image.producer_epoch) == (PRODUCER, EXHAUSTED + 1)
    assert (image.previous_producer_id, image.next_producer_id, image.next_producer_epoch) == (
        NEW_PRODUCER, NEW_PRODUCER, 2,
    )  # fmt: skip
    assert ended.response == Answer(ErrorCode.NONE, NEW_PRODUCER, 2)


def refusal_of(metadata: TransactionMetadata, event: Event) -> ErrorCode:
    result = decided(metadata, event)
    assert isinstance(result, Refused)
    return result.error


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("committed", [True, False])
def test_only_the_newest_producer_may_end_it(version: int, committed: bool) -> None:
    for epoch in (EPOCH - 1, EPOCH, EPOCH + 2):
        event = EndTxn(ID, PRODUCER, epoch, committed, version)
        assert refusal_of(KEPT, event) == ErrorCode.PRODUCER_FENCED
    other = EndTxn(ID, NEW_PRODUCER, EPOCH + 1, committed, version)
    assert refusal_of(KEPT, other) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("kind", [AddPartitions, VerifyPartitions])
def test_it_takes_no_more_partitions(kind: type[AddPartitions]) -> None:
    for epoch, error in (
        (EPOCH, ErrorCode.PRODUCER_FENCED), (EPOCH + 1, ErrorCode.INVALID_TXN_STATE),
    ):  # fmt: skip
        assert refusal_of(KEPT, kind(ID, PRODUCER, epoch, frozenset([INSIDE]))) == error
    assert has_joined(ONGOING, INSIDE, PRODUCER, EPOCH)
    assert not has_joined(KEPT, INSIDE, PRODUCER, EPOCH)
    assert not has_joined(KEPT, INSIDE, PRODUCER, EPOCH + 1)


def test_a_delayed_commit_does_not_end_the_next_transaction() -> None:
    """The producer repeats its request after a timeout, and the first one arrives late."""
    commit = EndTxn(ID, PRODUCER, EPOCH + 1, True, 2)
    world = kept_world()
    first = world.ask(commit)
    assert first == Answer(ErrorCode.NONE, PRODUCER, EPOCH + 2)
    assert world.ask(commit) == first  # a retry
    world.begin(first, T0, transactional_id=ID)
    assert world.error(commit) == ErrorCode.PRODUCER_FENCED
    assert world.state(ID).state == S.ONGOING


def kept_world() -> World:
    """A coordinator that has loaded KEPT."""
    world = World(first_producer_id=100, config=TransactionConfig(ON))
    partition = world.coordinator.partition_of(ID)
    key, value = encode_transaction_key(ID), encode_transaction_value(KEPT, 1)
    world.host.state_logs[partition].entries.append((key, value))
    world.load()
    assert world.state(ID) == KEPT
    return world


@pytest.mark.parametrize("version", [0, 1, 2])
def test_without_keeping_it_is_aborted_and_its_producers_are_fenced(version: int) -> None:
    result = decided(KEPT, InitProducerId(ID, 30_000), version=version)
    assert isinstance(result, Transition)
    assert isinstance(result.response, Parked)
    image = state(result)
    assert (image.state, image.producer_epoch, image.next_producer_epoch) == (
        S.PREPARE_ABORT, EPOCH + 2, -1,
    )  # fmt: skip


def test_a_client_of_an_earlier_transaction_version_ends_it() -> None:
    world = kept_world()
    commit = EndTxn(ID, PRODUCER, EPOCH + 1, True, 0)
    retry = decided(state(accepted(KEPT, commit)), commit)
    assert isinstance(retry, Parked)  # until the markers are written
    assert world.ask(commit) == Answer()
    found = world.state(ID)
    assert (found.state, found.producer_epoch, found.next_producer_epoch) == (
        S.COMPLETE_COMMIT,
        EPOCH + 1,
        -1,
    )
    assert world.error(commit) == ErrorCode.NONE  # a retry


@pytest.mark.parametrize("version", [0, 2])
def test_with_another_producer_id_a_retry_waits_for_the_markers(version: int) -> None:
    last = state(accepted(ONGOING._replace(producer_epoch=EXHAUSTED), KEEP))
    commit = EndTxn(ID, NEW_PRODUCER, 0, True, version)
    ended = state(accepted(last, commit))
    assert isinstance(decided(ended, commit), Parked)
    done = MarkersWritten(ID, ended.producer_id, ended.producer_epoch)
    complete = state(accepted(ended, done))
    assert (complete.producer_id, complete.producer_epoch) == (NEW_PRODUCER, 1 if version else 0)
    assert (complete.next_producer_id, complete.next_producer_epoch) == (-1, -1)
    retry = decided(complete, commit)
    assert isinstance(retry, Transition)
    assert retry.record is None


def test_it_has_no_time_limit() -> None:
    assert isinstance(decided(ONGOING, Timeout(ID, 0)), Refused)
    assert isinstance(transition(KEPT, Timeout(ID, 0), now_ms=2**62, version=2, limits=ON), Refused)


@pytest.mark.parametrize("enable_2pc", [True, False])
def test_the_time_limit_of_a_kept_transaction(enable_2pc: bool) -> None:
    """One without a limit never gets one, since its outcome may be decided; one with a limit loses it only
    with two-phase commit."""
    keep = KEEP._replace(enable_2pc=enable_2pc)
    assert state(accepted(ONGOING, keep)).transaction_timeout_ms == NO_TIMEOUT
    limited = state(accepted(state_of(S.ONGOING), keep))
    assert (limited.transaction_timeout_ms == NO_TIMEOUT) == enable_2pc
    late = transition(limited, Timeout(ID), now_ms=LATE, version=2, limits=ON)
    assert isinstance(late, Refused) == enable_2pc


@pytest.mark.parametrize("state_before", [None, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_without_an_open_transaction_nothing_is_kept(state_before: S | None) -> None:
    before = None if state_before is None else state_of(state_before)
    result = accepted(before, KEEP)
    assert isinstance(result.response, Answer)
    assert result.response[4:] == (-1, -1)
    image = state(result)
    assert (image.state, image.transaction_timeout_ms, image.next_producer_epoch) == (S.EMPTY, NO_TIMEOUT, -1)


@pytest.mark.parametrize("state_before", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_a_decided_transaction_is_waited_for(state_before: S) -> None:
    assert isinstance(decided(state_of(state_before), KEEP), Parked)


def test_a_producer_that_names_itself_must_be_the_newest() -> None:
    named = KEEP._replace(producer_id=PRODUCER, producer_epoch=EPOCH + 1)
    assert accepted(KEPT, named).response == Answer(
        ErrorCode.NONE, PRODUCER, EPOCH + 2, frozenset(), PRODUCER, EPOCH
    )
    for keeps in (True, False):
        zombie = named._replace(producer_epoch=EPOCH, keep_prepared_txn=keeps)
        assert refusal_of(KEPT, zombie) == ErrorCode.PRODUCER_FENCED
        older = zombie._replace(producer_epoch=EPOCH - 1)
        assert refusal_of(ONGOING, older) == ErrorCode.PRODUCER_FENCED
    mine = named._replace(keep_prepared_txn=False)
    assert state(accepted(KEPT, mine)).state == S.PREPARE_ABORT


def test_epochs_that_the_log_has_lost_are_fenced() -> None:
    seen = {PRODUCER: SeenEpochs(EPOCH + 10, EPOCH)}
    result = transition(ONGOING, KEEP, now_ms=NOW, version=2, limits=ON, seen=seen)
    assert isinstance(result, Transition)
    assert isinstance(result.response, Answer)
    assert result.response.producer_epoch == EPOCH + 11


def test_the_record_has_both_identities() -> None:
    last = state(accepted(ONGOING._replace(producer_epoch=EXHAUSTED), KEEP))
    ended = state(accepted(last, EndTxn(ID, NEW_PRODUCER, 0, True, 2)))
    assert ended.next_producer_epoch == 1
    for metadata in (KEPT, last, ended):
        key, value = encode_transaction_key(ID), encode_transaction_value(metadata, 1)
        assert TransactionMetadata.of(decode_transaction_log(key, value)) == metadata


class Story:
    """Producers of one id, of which each newer one fences the earlier ones. ``left`` are the values of the
    open transaction, ``committed`` those that the newest producer has committed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(config=TransactionConfig(ON), first_producer_id=5)
        self.earlier: list[Answer] = []
        self.newest: Answer | None = None
        self.is_kept = self.is_open = False
        self.left: list[int] = []
        self.committed: list[int] = []
        self.count = self.lives = 0

    def init(self, *, keeps: bool) -> None:
        answer = self.world.ask(InitProducerId(ID, 1_000, enable_2pc=True, keep_prepared_txn=keeps))
        assert answer.error == ErrorCode.NONE
        assert (answer.ongoing_producer_id >= 0) == (keeps and self.is_open)
        if self.newest is not None:
            self.earlier.append(self.newest)
        self.newest = answer
        if not keeps:
            self.is_open, self.left = False, []
        self.is_kept = self.is_open

    def add(self, newest: Answer) -> None:
        if self.is_kept:
            assert self.world.error(joins(newest)) == ErrorCode.INVALID_TXN_STATE
            return
        place = self.random.choice([T0, T1])
        assert self.world.error(joins(newest, place)) == ErrorCode.NONE
        self.count += 1
        written = Written(newest.producer_id, newest.producer_epoch, self.count)
        self.world.host.partitions[place].append(written)
        self.world.host.partitions[place].flush()
        self.left.append(self.count)
        self.is_open = True

    def end(self, newest: Answer) -> None:
        commits = self.random.random() < 0.5
        answer = self.world.ask(self.world.end(newest, commits, ID))
        if not self.is_open:
            assert answer.error == (ErrorCode.INVALID_TXN_STATE if commits else ErrorCode.NONE)
        if answer.error == ErrorCode.NONE:
            self.committed += self.left if commits else []
            self.earlier.append(newest)
            self.newest, self.is_open, self.is_kept, self.left = answer, False, False, []

    def zombie(self) -> None:
        """An earlier identity can do nothing, except repeat the request that ended its transaction."""
        one, before = self.random.choice(self.earlier), self.world.state(ID)
        if before.state == S.ONGOING or one is not self.earlier[-1]:
            for event in (self.world.end(one, True, ID), self.world.end(one, False, ID), joins(one)):
                assert self.world.error(event) in (
                    ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                )  # fmt: skip
            assert self.world.state(ID) == before

    def crash(self) -> None:
        self.lives += 1
        logs, partitions = self.world.host.crash(repeat(0))
        self.world = World(
            logs, partitions, config=TransactionConfig(ON), first_producer_id=1000 * self.lives
        )
        self.world.host.settle()

    def step(self) -> None:
        action = self.random.choice(["init", "keep", "add", "add", "end", "zombie", "crash", "late"])
        if action in ("init", "keep") or self.newest is None:
            self.init(keeps=action == "keep")
        elif action == "add":
            self.add(self.newest)
        elif action == "end":
            self.end(self.newest)
        elif action == "zombie" and self.earlier:
            self.zombie()
        elif action == "crash":
            self.crash()
        else:
            self.world.advance(10_000_000)
            self.world.host.settle()
        assert (self.world.state(ID).state == S.ONGOING) == self.is_open


def joins(producer: Answer, place: TopicPartition = T1) -> AddPartitions:
    return AddPartitions(ID, producer.producer_id, producer.producer_epoch, frozenset([place]), 2)


@given(st.integers(0, 2**32))
def test_random_restarts_zombies_crashes_and_late_timers(seed: int) -> None:
    """Exactly the values are visible whose transaction the newest producer has committed, each once."""
    story = Story(seed)
    for _ in range(40):
        story.step()
    story.world.host.settle()
    visible = [value for log in story.world.host.partitions.values() for value in log.visible()]
    assert sorted(visible) == story.committed
