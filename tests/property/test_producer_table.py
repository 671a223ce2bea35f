"""The compiled producer table, compared with the model: refusals and state, through restarts and eviction.

The machine does what a log does: check, write, append; after a restart it looks for older batches when the
table requests it. The model never restarts, so the two agree only if no relevant state is lost.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.models.headers import data, encode, marker
from tests.models.producer_state import CachedBatch, ProducerStateManager, Request, write_snapshot
from tests.property.test_producer_state import histories, modelled
from tests.unit.core.producers import Replayed
from txnkafka._core.producer_rules import Checked
from txnkafka._core.producer_table import CLIENT, COORDINATOR, REPLICATION, ProducerTable
from txnkafka._core.scan import BatchHeader, scan
from txnkafka._core.validate import read_batch
from txnkafka.model import CompletedTxn, ProducerStateEntry

NEVER = 2**62
LARGEST = 2**31 - 1

producer_ids = st.sampled_from([0, 1, 2, 3, 2**33, 2**63 - 1])
epochs = st.sampled_from([0, 0, 0, 1, 1, 2, -1, 32767])
timestamps = st.integers(1000, 1010)


def known_of(model: ProducerStateManager, producer_id: int) -> list[CachedBatch]:
    return model.entries[producer_id].batches if producer_id in model.entries else []


def known_by(table: ProducerTable, producer_id: int) -> list[CachedBatch]:
    return [
        CachedBatch(last_sequence, last_offset, last_offset - first_offset, timestamp)
        for _, last_sequence, first_offset, last_offset, timestamp in table.known_batches(producer_id)
    ]


def answer(checked: Checked) -> int | tuple[int, int, int]:
    if checked.is_duplicate:
        assert checked.code == 0
        return (checked.first_offset, checked.last_offset, checked.timestamp)
    return checked.code


def expected(found: int | CachedBatch) -> int | tuple[int, int, int]:
    if isinstance(found, CachedBatch):
        return (found.last_offset - found.offset_delta, found.last_offset, found.timestamp)
    return found


class Appends(RuleBasedStateMachine):
    """One partition with a few producers that mostly send valid sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.model = ProducerTable(), ProducerStateManager()
        self.log, self.end_offset, self.high_watermark = bytearray(), 0, 0

    def checked(self, batch: bytes, request: Request) -> Checked:
        origin, version, verified, lowest_sequence, bump = request
        return self.table.check(
            read_batch(batch), origin, version, verified=verified,
            lowest_sequence=lowest_sequence, supports_epoch_bump=bump,
        )  # fmt: skip

    def append(self, header: BatchHeader, request: Request) -> None:
        batch = encode([header])
        wanted = self.model.check(header, request)
        before = self.table.snapshot()
        found = self.checked(batch, request)
        if found.search_below >= 0:
            self.table.remember_older(scan(self.log), header.producer_id)
            found = self.checked(batch, request)
            assert found.search_below == -1 or self.table.misses_older(header.producer_id)
        assert self.table.snapshot() == before
        assert answer(found) == expected(wanted)
        assert bool(found.text) == (found.code != 0)
        if wanted == 0:
            self.log += batch
            self.end_offset += header.last_offset - header.base_offset + 1
            completed = len(self.model.completed)
            self.model.update(header)
            assert [self.table.append(read_batch(batch))] == (self.model.completed[completed:] or [None])

    @rule(
        producer_id=producer_ids, epoch=epochs, behind=st.integers(-1, 7), records=st.integers(1, 3),
        timestamp=timestamps, transactional=st.booleans(), verified=st.sampled_from([True, True, False]),
        pending=st.sampled_from([None, None, 0, 5]), bump=st.booleans(),
    )  # fmt: skip
    def produce(self, producer_id: int, epoch: int, behind: int, records: int, **more: Any) -> None:
        """Send a sequence that follows, repeats one of the last batches, or neither."""
        known = known_of(self.model, producer_id)
        sequence = (known[-1].last_sequence + 1) & LARGEST if known else 0
        if 0 < behind <= len(known):
            again = known[-behind]
            records, sequence = again.offset_delta + 1, (again.last_sequence - again.offset_delta) & LARGEST
        elif behind < 0:
            sequence = LARGEST - 1
        header = data(
            producer_id, epoch, self.end_offset, sequence=sequence, transactional=more["transactional"],
            last_offset=self.end_offset + records - 1, max_timestamp=more["timestamp"],
        )  # fmt: skip
        self.append(header, Request(CLIENT, -1, more["verified"], more["pending"], more["bump"]))

    @rule(producer_id=producer_ids, epoch=epochs, transactional=st.booleans())
    def commit_offsets(self, producer_id: int, epoch: int, transactional: bool) -> None:
        header = data(producer_id, epoch, self.end_offset, sequence=-1, transactional=transactional)
        self.append(header, Request(COORDINATOR))

    @rule(
        producer_id=producer_ids, epoch=epochs, kind=st.sampled_from([0, 1]), timestamp=timestamps,
        coordinator_epoch=st.integers(0, 2), version=st.sampled_from([-1, 0, 1, 2, 2]),
        origin=st.sampled_from([REPLICATION, COORDINATOR, COORDINATOR]),
    )  # fmt: skip
    def end_transaction(self, producer_id: int, epoch: int, kind: int, timestamp: int, **more: int) -> None:
        header = marker(
            producer_id, epoch, self.end_offset, kind, coordinator_epoch=more["coordinator_epoch"],
            max_timestamp=timestamp,
        )  # fmt: skip
        self.append(header, Request(more["origin"], more["version"]))

    @rule()
    def restart(self) -> None:
        """Restart; completed transactions are below the high watermark then."""
        self.table.load(self.table.snapshot(), now_ms=0, expiration_ms=NEVER)
        self.model.completed.clear()
        for entry in self.model.entries.values():
            # a snapshot has one timestamp for a producer and its last batch
            if entry.batches:
                entry.batches[-1] = entry.batches[-1]._replace(timestamp=entry.last_timestamp)

    @rule(by=st.integers(0, 5))
    def move_high_watermark(self, by: int) -> None:
        self.high_watermark = min(self.high_watermark + by, self.end_offset)
        self.table.on_high_watermark(self.high_watermark)

    @rule(now_ms=st.integers(1000, 1030))
    def expire(self, now_ms: int) -> None:
        idle = [each for each, entry in self.model.entries.items() if entry.current_txn_first_offset == -1]
        expired = [each for each in idle if now_ms - self.model.entries[each].last_timestamp >= 20]
        assert self.table.expire(now_ms, 20) == len(expired)
        self._forget(expired)

    @rule(most=st.integers(0, 4))
    def evict(self, most: int) -> None:
        idle = [each for each, entry in self.model.entries.items() if entry.current_txn_first_offset == -1]
        idle.sort(key=lambda each: (self.model.entries[each].last_timestamp, each))
        evicted = idle[: max(0, len(idle) - most)]
        assert self.table.evict(most) == len(evicted)
        self._forget(evicted)

    def _forget(self, producer_ids: list[int]) -> None:
        for producer_id in producer_ids:
            del self.model.entries[producer_id]
        # Batches of dropped producers must not be found in the log again: the model has no log.
        kept = [each for each in scan(self.log) if each.producer_id not in producer_ids]
        self.log = bytearray().join(self.log[each.position : each.position + each.size] for each in kept)

    @rule(first=st.sampled_from([10, 1000]), number=st.sampled_from([1, 30, 300]))
    def crowd(self, first: int, number: int) -> None:
        """Add many producers, so that the table grows and entries move."""
        headers = []
        for i in range(number):
            fields = {"sequence": 3, "transactional": i % 7 == 0, "max_timestamp": 999 + i % 3}
            header = data(first + i, 0, self.end_offset + i, **fields)
            if self.model.check(header, Request(CLIENT)) == 0:
                headers.append(header)
        batches = encode(headers)
        self.table.replay(scan(batches), 0, [])
        for header in headers:
            self.model.update(header)
        self.log += batches
        self.end_offset += number

    @invariant()
    def same_state(self) -> None:
        rows = self.model.rows()
        assert self.table.entries() == rows
        assert len(self.table) == len(rows)
        assert self.table.open_count == len(self.model.ongoing)
        opened = [each.current_txn_first_offset for each in self.table.open_transactions()]
        assert opened == sorted(self.model.ongoing)
        assert self.table.first_undecided_offset == (opened[0] if opened else None)
        assert self.table.first_unstable_offset == self.model.first_unstable_offset(self.high_watermark)
        assert self.table.snapshot() == write_snapshot(rows)

    @invariant()
    def same_batches(self) -> None:
        for producer_id in (0, 1, 2, 3, 2**33, 2**63 - 1, 10):
            wanted, found = known_of(self.model, producer_id), known_by(self.table, producer_id)
            assert found == wanted[len(wanted) - len(found) :]
            assert len(found) == len(wanted) or self.table.misses_older(producer_id)
            entry = self.table.entry(producer_id)
            assert self.table.epochs(producer_id) == (
                None
                if entry is None
                else (entry.producer_epoch, entry.coordinator_epoch, entry.has_open_transaction)
            )
            assert self.table.last_data_offset(producer_id) == (wanted[-1].last_offset if wanted else -1)
            assert self.table.is_active(producer_id) == (producer_id in self.model.entries)


TestAppends = Appends.TestCase
TestAppends.settings = settings(stateful_step_count=40)


@given(histories(), st.data())
def test_batches_that_were_emptied_open_nothing(batches: list[BatchHeader], drawn: st.DataObject) -> None:
    emptied = [
        each._replace(count=0) if each.control_type < 0 and drawn.draw(st.booleans()) else each
        for each in batches
    ]
    state, model = Replayed(*emptied), modelled(emptied)
    assert state.entries() == model.rows()
    assert state.completed == model.completed
    assert state.table.first_unstable_offset == model.first_unstable_offset(0)


@given(histories(), st.integers(0, 40))
def test_appends_give_what_a_replay_gives(batches: list[BatchHeader], start_offset: int) -> None:
    whole, one_by_one = ProducerTable(), ProducerTable()
    completed = list[CompletedTxn]()
    whole.replay(scan(encode(batches)), start_offset, completed)
    kept = [each for each in batches if each.last_offset >= start_offset]
    ended = [one_by_one.append(read_batch(encode([each]))) for each in kept]
    assert [each for each in ended if each is not None] == completed
    assert one_by_one.snapshot() == whole.snapshot()
    assert one_by_one.first_unstable_offset == whole.first_unstable_offset


@given(histories(), st.integers(0, 25), st.integers(0, 30))
def test_older_batches_are_found_in_any_pieces(batches: list[BatchHeader], cut: int, at: int) -> None:
    never_restarted, restarted = ProducerTable(), ProducerTable()
    never_restarted.replay(scan(encode(batches)), 0, [])
    before = ProducerTable()
    before.replay(scan(encode(batches[:cut])), 0, [])
    restarted.load(before.snapshot(), now_ms=0, expiration_ms=NEVER)
    restarted.replay(scan(encode(batches[cut:])), 0, [])
    for piece in (batches[at:], batches[:at]):
        for producer_id in range(4):
            restarted.remember_older(scan(encode(piece)), producer_id)
    for producer_id in range(4):
        wanted = [each[:4] for each in never_restarted.known_batches(producer_id)]
        assert [each[:4] for each in restarted.known_batches(producer_id)] == wanted


entries = st.builds(
    ProducerStateEntry,
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.sampled_from([-1, -1, 0, 7]) | st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**31 - 1),
)


@given(st.lists(entries, unique_by=lambda entry: entry.producer_id, max_size=300))
def test_a_snapshot_comes_back_sorted(written: list[ProducerStateEntry]) -> None:
    table = ProducerTable()
    table.load(write_snapshot(written), now_ms=0, expiration_ms=NEVER)
    assert table.entries() == sorted(written)
    assert table.snapshot() == write_snapshot(sorted(written))
    opened = [each.current_txn_first_offset for each in table.open_transactions()]
    assert opened == sorted(each.current_txn_first_offset for each in written if each.has_open_transaction)
