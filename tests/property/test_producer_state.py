"""Producer state of random histories against the slow model: from headers, an index, and any snapshot."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.models.headers import ABORT, COMMIT, data, encode, marker
from tests.models.producer_state import ProducerStateManager, write_snapshot
from txnkafka._core.scan import BatchHeader, scan
from txnkafka.storage.formats import parse_producer_snapshot
from txnkafka.storage.log.producer_state import ProducerState

sequences = st.one_of(st.integers(0, 20), st.integers(2**31 - 4, 2**31 - 1))


@st.composite
def histories(draw: st.DrawFn) -> list[BatchHeader]:
    """Batches of a few producers, as wild as a replica may be sent, in one log without holes."""
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


def replayed(batches: list[BatchHeader]) -> ProducerState:
    state = ProducerState()
    state.replay(batches)
    return state


@given(histories())
def test_replay_equals_the_model(batches: list[BatchHeader]) -> None:
    state, model = replayed(batches), modelled(batches)
    assert state.entries() == model.rows()
    assert state.completed_transactions == model.completed
    assert [transaction.first_offset for transaction in state.open_transactions] == sorted(model.ongoing)
    assert state.first_unstable_offset(0) == min(model.ongoing, default=None)


@given(histories())
def test_an_index_gives_what_its_headers_give(batches: list[BatchHeader]) -> None:
    index = scan(encode(batches))
    assert len(index) == len(batches)
    state, from_headers = ProducerState(), replayed(batches)
    state.replay(index)
    assert state.entries() == from_headers.entries()
    assert state.completed_transactions == from_headers.completed_transactions
    headers = replayed([index[i] for i in range(len(index))])
    assert state.open_transactions == headers.open_transactions


@given(histories(), st.integers(0, 25))
def test_any_snapshot_and_the_rest_give_the_same_state(batches: list[BatchHeader], cut: int) -> None:
    before, whole = batches[:cut], replayed(batches)
    end_offset = before[-1].last_offset + 1 if before else 0
    state = ProducerState()
    state.load(parse_producer_snapshot(write_snapshot(modelled(before).rows())))
    state.replay(batches, end_offset)
    assert state.entries() == whole.entries()
    ended_later = [each for each in whole.completed_transactions if each.last_offset >= end_offset]
    assert state.completed_transactions == ended_later
    assert state.first_unstable_offset(0) == whole.first_unstable_offset(0)


@given(histories(), st.lists(st.integers(0, 25), max_size=3))
def test_segments_do_not_matter(batches: list[BatchHeader], cuts: list[int]) -> None:
    state = ProducerState(lambda code, header, text: None)
    for begin, end in pairwise([0, *sorted(cuts), len(batches)]):
        state.replay(batches[begin:end])
    whole = replayed(batches)
    assert state.entries() == whole.entries()
    assert state.open_transactions == whole.open_transactions
