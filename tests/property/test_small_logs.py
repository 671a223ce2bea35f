"""Every small log: all interleavings of a few producers, and all offsets at which a reader begins and stops.

The visible records follow the consumer's rules (tests/models/fetch_filter.py). The last stable offset and the
producers follow from the whole log (tests/models/producer_state.py), whichever snapshots exist and however
much of the log was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise, product
from typing import NamedTuple

import pytest

from tests.conftest import LONG
from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.fetch_filter import AbortedTxn, aborted_in, fetch, last_stable_offset, scan_log
from tests.models.producer_state import ProducerStateManager, write_snapshot
from tests.models.record_batch import BatchHeader
from txnkafka._core.read_committed import HiddenRanges, TransactionScan, contained, select
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.logdir import HiddenRange, LogDir, PartitionView
from txnkafka.testing.memory_files import MemoryFiles

PLAIN = -1
WHOLE, BOUNDED = 1, 2


class Step(NamedTuple):
    """A batch of a producer (PLAIN: without one): data (``commit`` None) or an end marker."""

    producer: int
    commit: bool | None = None


def logs(length: int, producers: int, so_far: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Generate all logs of up to ``length`` batches; producers are numbered in the order of their first
    batches, and only transactions with data end."""
    if so_far:
        yield so_far
    if len(so_far) == length:
        return
    known = {step.producer for step in so_far if step.producer != PLAIN}
    following = [Step(PLAIN), *(Step(each) for each in range(min(len(known) + 1, producers)))]
    for producer in sorted(known):
        last = next(step for step in reversed(so_far) if step.producer == producer)
        if last.commit is None:
            following += [Step(producer, True), Step(producer, False)]
    for step in following:
        yield from logs(length, producers, (*so_far, step))


@cache
def encoded(step: Step, offset: int, count: int, sequence: int) -> bytes:
    common = {"base_offset": offset, "producer_id": step.producer, "producer_epoch": 0}
    if step.commit is not None:
        return end_marker(int(step.commit), timestamp=1000 + offset, **common)
    if step.producer == PLAIN:
        common = {"base_offset": offset}
    else:
        common |= {"transactional": True, "base_sequence": sequence}
    records = [PlainRecord(b"k", b"v", 1000 + offset + i) for i in range(count)]
    return Batch(records=records, **common).encode()  # type: ignore[arg-type]


def batches_of(steps: tuple[Step, ...], longer: int) -> list[bytes]:
    """Encode the steps as batches of one and two records in turn; ``longer`` is 0 or 1 and selects which
    comes first."""
    found, offset, sequences = list[bytes](), 0, dict[int, int]()
    for i, step in enumerate(steps):
        count = 1 if step.commit is not None else 1 + (i + longer) % 2
        sequence = sequences.get(step.producer, 0)
        found.append(encoded(step, offset, count, sequence))
        if step.commit is None:
            sequences[step.producer] = sequence + count
        offset += count
    return found


def undecided(headers: list[BatchHeader]) -> list[AbortedTxn]:
    """Return open transactions as if they were aborted at the log end: their records are invisible, too."""
    first: dict[int, int] = {}
    for header in headers:
        if header.producer_id >= 0 and header.control_type in (0, 1):
            first.pop(header.producer_id, None)
        elif header.producer_id >= 0:
            first.setdefault(header.producer_id, header.base_offset)
    return [AbortedTxn(producer, offset, 1 << 60, 0) for producer, offset in first.items()]


def selected(index: BatchIndex, selection: bytearray, start: int, end: int) -> list[int]:
    """Return the offsets that a decoder returns for the selection."""
    found: list[int] = []
    for i, kind in enumerate(selection):
        offsets = range(index.base_offset[i], index.last_offset[i] + 1)
        if kind == WHOLE:
            found += offsets
        elif kind == BOUNDED:
            found += [offset for offset in offsets if start <= offset < end]
    return found


@pytest.mark.parametrize("longer", [0, 1])
@pytest.mark.parametrize(("length", "producers"), [(6 if LONG else 5, 2), (6 if LONG else 5, 3)])
def test_what_is_visible_in_every_range(length: int, producers: int, longer: int) -> None:
    seen = 0
    for steps in logs(length, producers):
        data = b"".join(batches_of(steps, longer))
        headers, _, _ = scan_log(data)
        index, transactions = scan(data), TransactionScan()
        transactions.feed(index)
        open_ones = transactions.open_transactions()
        hidden = HiddenRanges(
            HiddenRange(each.producer_id, each.first_offset, each.last_offset)
            for each in [*transactions.ended, *open_ones]
            if each.outcome != "committed"
        )
        end = headers[-1].last_offset + 1
        stable = min([each.first_offset for each in open_ones], default=end)
        assert stable == last_stable_offset(headers, end)
        everything = [each.offset for each in fetch(data, headers, 0, end, None)]
        aborted = [*aborted_in(headers), *undecided(headers)]
        committed = [each.offset for each in fetch(data, headers, 0, end, aborted)]
        for start in range(end + 1):
            for stop in range(start, end + 1):
                for ranges, expected in ((hidden, committed), ((), everything)):
                    selection = select(index, ranges, start_offset=start, end_offset=stop)
                    found = selected(index, selection, start, stop)
                    assert found == [each for each in expected if start <= each < stop], (steps, start, stop)
        _check_contained(index, hidden, everything, committed)
        seen += 1
    assert seen > 700


def _check_contained(
    index: BatchIndex, hidden: HiddenRanges, everything: list[int], committed: list[int]
) -> None:
    missing = {*everything} - {*committed}
    expected = [offset in missing for offset in index.base_offset]
    assert list(map(bool, contained(index, hidden))) == expected


# Snapshots


class Deleted(NamedTuple):
    """The rest of a log: offsets below ``log_start`` are deleted, and segments below ``first``."""

    first: int
    log_start: int


def state_below(headers: list[BatchHeader], offset: int) -> ProducerStateManager:
    state = ProducerStateManager()
    for header in headers:
        if header.last_offset < offset:
            state.update(header)
    return state


def view_of(
    batches: list[bytes],
    headers: list[BatchHeader],
    splits: tuple[int, ...],
    left: Deleted,
    snapshots: dict[int, bytes],
) -> PartitionView:
    """Open a log whose segments begin with batch 0 and with the batches ``splits``, with these snapshot
    files."""
    files = MemoryFiles()
    files.make_directory("/data")
    files.make_directory("/data/t-0")
    content = {f"{offset:020}.snapshot": data for offset, data in snapshots.items()}
    for first, end in pairwise(sorted({0, *splits, len(batches)})):
        if headers[first].base_offset >= left.first:
            content[f"{headers[first].base_offset:020}.log"] = b"".join(batches[first:end])
    for name, data in content.items():
        files.create(f"/data/t-0/{name}").write(0, [data])
    for name, data in (
        (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":1}'),
        ("log-start-offset-checkpoint", b"0\n1\nt 0 %d\n" % left.log_start),
    ):
        files.create(f"/data/{name}").write(0, [data])
    return LogDir("/data", file_system=files).partition("t", 0)


def check(
    view: PartitionView, headers: list[BatchHeader], left: Deleted, told: object, *, known_from: int = 0
) -> None:
    """Compare with the state that follows from the log above offset ``known_from``. A transaction whose first
    data is deleted begins at the log start, or at the batch that contains it."""
    end = headers[-1].last_offset + 1
    ongoing = state_below([header for header in headers if header.base_offset >= known_from], end).ongoing
    expected = sorted((max(first, left.log_start), producer) for first, producer in ongoing.items())
    stable = min([first for first, _ in expected], default=end)
    if stable <= left.log_start:
        bases = [each.base_offset for each in headers if each.base_offset <= stable <= each.last_offset]
        stable = min(bases, default=stable)
    found = sorted((each.first_offset, each.producer_id) for each in view.open_transactions)
    assert (found, view.last_stable_offset) == (expected, stable), told


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.slow
@pytest.mark.parametrize("longer", [0, 1])
def test_the_last_stable_offset_with_every_snapshot(longer: int) -> None:
    """Tests snapshots at every offset between batches, below and above the log start; alone, with an older
    one, and with a newer one that is damaged."""
    seen = 0
    for steps in logs(5 if LONG else 4, 2):
        batches = batches_of(steps, longer)
        headers, _, _ = scan_log(b"".join(batches))
        end = headers[-1].last_offset + 1
        offsets = [each.base_offset for each in headers] + [end]
        files = {offset: write_snapshot(state_below(headers, offset).rows()) for offset in offsets}
        split = len(batches) // 2
        second = headers[split].base_offset
        for log_start in range(end):
            kept = [offset for offset in offsets if offset >= log_start]
            left = Deleted(0, log_start)
            # a broker without a snapshot begins with the segment of the log start
            known_from = second if log_start >= second else 0
            unknown = [{}, *({each: files[each]} for each in offsets if each < log_start)]
            unknown += [{each: damaged(files[each])} for each in kept]
            for snapshots in unknown:
                view = view_of(batches, headers, (split,), left, snapshots)
                check(view, headers, left, (steps, left, list(snapshots)), known_from=known_from)
            sets = [{each: files[each]} for each in kept]
            sets += [{older: files[older], newer: files[newer]} for older, newer in pairwise(kept)]
            sets += [{older: files[older], newer: damaged(files[newer])} for older, newer in pairwise(kept)]
            for snapshots in sets:
                view = view_of(batches, headers, (split,), left, snapshots)
                check(view, headers, left, (steps, left, list(snapshots)))
                seen += 1
        if split:
            for offset in (each for each in offsets if each >= second):
                left = Deleted(second, second)
                view = view_of(batches, headers, (split,), left, {offset: files[offset]})
                check(view, headers, left, (steps, left, offset))
    assert seen > 1000


def test_the_producers_with_every_snapshot() -> None:
    """The state after the snapshot is replayed from the log, across any number of segments."""
    for steps in logs(5 if LONG else 4, 2):
        batches = batches_of(steps, 1)
        headers, _, _ = scan_log(b"".join(batches))
        end = headers[-1].last_offset + 1
        expected = state_below(headers, end).rows()
        offsets = [header.base_offset for header in headers] + [end]
        segments = [*combinations(range(1, len(batches)), 1), *combinations(range(1, len(batches)), 2)]
        for splits, offset in product(segments, offsets):
            content = write_snapshot(state_below(headers, offset).rows())
            view = view_of(batches, headers, splits, Deleted(0, 0), {offset: content})
            found = [tuple(entry) for entry in view.producer_state().entries()]
            assert found == expected, (steps, splits, offset)
