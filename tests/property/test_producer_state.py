"""Replays of random histories, compared with the slow model: from headers, from any snapshot, with
anomalies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.models.headers import ABORT, COMMIT, data, encode, marker
from tests.models.producer_state import ProducerStateManager, write_snapshot
from tests.models.record_batch import TRANSACTIONAL
from tests.unit.core.producers import NEVER, Replayed
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.scan import BatchHeader, scan
from txnkafka.model import CompletedTxn

sequences = st.one_of(st.integers(0, 20), st.integers(2**31 - 4, 2**31 - 1))


@st.composite
def histories(draw: st.DrawFn) -> list[BatchHeader]:
    """Generate batches of a few producers, including sequences that only a replica accepts, in one log
    without gaps."""
    batches: list[BatchHeader] = []
    offset = draw(st.sampled_from([0, 7, 2**33]))
    for _ in range(draw(st.integers(0, 25))):
        producer_id, epoch = draw(st.integers(-1, 3)), draw(st.integers(0, 3))
        timestamp = draw(st.integers(1000, 1010))
        if producer_id >= 0 and draw(st.booleans()):
            kind = draw(st.sampled_from([ABORT, COMMIT]))
            coordinator_epoch = draw(st.integers(0, 2))
            batch = marker(
                producer_id, epoch, offset, kind, coordinator_epoch=coordinator_epoch, max_timestamp=timestamp
            )
        else:
            last_offset = offset + draw(st.integers(0, 3))
            transactional = producer_id >= 0 and draw(st.booleans())
            batch = data(
                producer_id, epoch, offset, sequence=draw(sequences), transactional=transactional,
                last_offset=last_offset, max_timestamp=timestamp,
            )  # fmt: skip
        batches.append(batch)
        offset = batch.last_offset + 1
    return batches


def modelled(batches: list[BatchHeader]) -> ProducerStateManager:
    model = ProducerStateManager()
    for batch in batches:
        model.update(batch)
    return model


@given(histories())
def test_replay_equals_the_model(batches: list[BatchHeader]) -> None:
    state, model = Replayed(*batches), modelled(batches)
    assert state.entries() == model.rows()
    assert state.completed == model.completed
    assert [first for _, first in state.opened] == sorted(model.ongoing)
    assert state.table.first_undecided_offset == min(model.ongoing, default=None)


@given(histories(), st.integers(0, 25))
def test_any_snapshot_and_the_rest_give_the_same_state(batches: list[BatchHeader], cut: int) -> None:
    before, whole = batches[:cut], Replayed(*batches)
    end_offset = before[-1].last_offset + 1 if before else 0
    state = Replayed()
    state.table.load(write_snapshot(modelled(before).rows()), now_ms=0, expiration_ms=NEVER)
    state.replay(batches, end_offset)
    assert state.entries() == whole.entries()
    assert state.completed == [each for each in whole.completed if each.last_offset >= end_offset]
    assert state.table.first_undecided_offset == whole.table.first_undecided_offset


@given(histories(), st.lists(st.integers(0, 25), max_size=3))
def test_segments_do_not_matter(batches: list[BatchHeader], cuts: list[int]) -> None:
    """The state does not depend on whether anomalies are reported, either."""
    table, completed = ProducerTable(), list[CompletedTxn]()
    anomalies, told_at_once = list[tuple[str, int, str]](), list[tuple[str, int, str]]()
    for begin, end in pairwise([0, *sorted(min(cut, len(batches)) for cut in cuts), len(batches)]):
        index, found = scan(encode(batches[begin:end])), list[tuple[str, int, str]]()
        table.replay_checked(index, 0, len(index), completed, found)
        anomalies += [(name, begin + number, text) for name, number, text in found]
    whole = Replayed(*batches)
    assert (table.entries(), completed) == (whole.entries(), whole.completed)
    ProducerTable().replay_checked(scan(encode(batches)), 0, len(batches), [], told_at_once)
    assert anomalies == told_at_once


def expected_anomalies(batches: list[BatchHeader]) -> list[tuple[int, str]]:
    """Return the anomalies by the model's state before each batch; the logs of ``histories`` have no gaps."""
    model, told = ProducerStateManager(), list[tuple[int, str]]()
    begun: dict[int, int] = {}  # epochs of producers whose sequences are known to begin with 0
    for number, batch in enumerate(batches):
        entry = model.entries.get(batch.producer_id)
        if entry is not None:
            told += [(number, name) for name in _anomalies(entry, batch, begun.get(batch.producer_id))]
            if entry.producer_epoch != batch.producer_epoch:
                begun[batch.producer_id] = batch.producer_epoch
        model.update(batch)
    return told


def _anomalies(entry: Any, batch: BatchHeader, begun: int | None) -> Iterator[str]:
    is_marker = batch.control_type >= 0
    if batch.producer_epoch < entry.producer_epoch:
        yield "marker_epoch_back" if is_marker else "producer_epoch_back"
    if is_marker:
        if batch.coordinator_epoch < entry.coordinator_epoch:
            yield "coordinator_epoch_back"
        return
    if entry.current_txn_first_offset >= 0 and not batch.attributes & TRANSACTIONAL:
        yield "non_transactional_in_transaction"
    if batch.producer_epoch != entry.producer_epoch or (not entry.batches and begun is not None):
        following = 0
    elif entry.batches:
        following = (entry.batches[-1].last_sequence + 1) % 2**31
    else:
        return
    if batch.base_sequence != following:
        ahead = (batch.base_sequence - following) % 2**31 < 2**30
        yield "sequence_gap" if ahead else "sequence_back"


@given(histories())
def test_anomalies_are_what_a_leader_would_have_refused(batches: list[BatchHeader]) -> None:
    found = list[tuple[str, int, str]]()
    ProducerTable().replay_checked(scan(encode(batches)), 0, len(batches), [], found)
    assert [(number, name) for name, number, _ in found] == expected_anomalies(batches)
    assert all(text.startswith(f"producer {batches[number].producer_id}: ") for _, number, text in found)
