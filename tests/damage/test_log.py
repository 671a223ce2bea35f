"""Damage to a segment is never silent.

Whatever bit of a ``.log`` is flipped, wherever it is truncated: nothing crashes; no record has another key,
value, time or header than it was written with; no aborted or undecided record becomes visible to
read_committed; and when a record is missing or moved, that is reported. The exceptions are damages that no
reader can detect; ``_cannot_be_seen`` defines them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import pytest

from tests.conftest import sampled
from tests.damage.image import (
    LAST_STABLE_OFFSET,
    LOG_END_OFFSET,
    MODES,
    PARTITION,
    SEGMENTS,
    UNDECIDED_OR_ABORTED,
    Piece,
    image,
    log,
)
from tests.damage.mutations import EVERYTHING, SPARSER, Cut, Flip, mutations
from tests.damage.observation import LEVELS, Observation, observe
from tests.models.fetch_filter import aborted_in, fetch, last_stable_offset, scan_log
from txnkafka.record.batch import Record

CLEANED, LAST = min(SEGMENTS), max(SEGMENTS)
SAMPLE = 23 * SPARSER
SHOWN = 25


@functools.cache
def intact(mode: str) -> Observation:
    return observe(image(mode), "stop")


@pytest.mark.parametrize("mode", MODES)
def test_the_intact_image_reads_as_the_model_does(mode: str) -> None:
    whole = b"".join(map(log, SEGMENTS))
    headers, stop, _ = scan_log(whole)
    assert (stop, last_stable_offset(headers, LOG_END_OFFSET)) == ("end", LAST_STABLE_OFFSET)
    seen = intact(mode)
    assert (seen.last_stable_offset, seen.log_end_offset) == (LAST_STABLE_OFFSET, LOG_END_OFFSET)
    committed = fetch(whole, headers, 0, LAST_STABLE_OFFSET, aborted_in(headers))
    assert seen.records["read_committed"] == list(map(tuple, committed))
    assert seen.records["read_uncommitted"] == list(
        map(tuple, fetch(whole, headers, 0, LOG_END_OFFSET, None))
    )
    assert len({record.value for record in seen.records["read_uncommitted"]}) == 36


def _piece(base_offset: int, position: int) -> tuple[Piece, Piece | None, Piece | None]:
    """Return the batch at a position, and its neighbours in the segment."""
    pieces = SEGMENTS[base_offset]
    i = next(i for i, piece in enumerate(pieces) if position < piece.end)
    return pieces[i], (pieces[i - 1] if i else None), (pieces[i + 1] if i + 1 < len(pieces) else None)


def _cannot_be_seen(base_offset: int, mutation: Flip | Cut) -> bool:
    """Return whether the damaged file looks like one that Kafka may have written."""
    if isinstance(mutation, Cut):
        # A log that was always shorter, or a cleaned segment whose end the cleaner removed.
        at_boundary = mutation.length in {piece.position for piece in SEGMENTS[base_offset]}
        return at_boundary and base_offset in (CLEANED, LAST)
    piece, before, behind = _piece(base_offset, mutation.position)
    field = mutation.position - piece.position
    if field >= 8:
        return False
    # No CRC covers the base offset; the neighbours reveal damage, unless there is a gap between them.
    shift = int.from_bytes(mutation.of(log(base_offset))[piece.position :][:8], "big") - int.from_bytes(
        piece.content[:8], "big"
    )
    lowest = before.last_offset + 1 if before else base_offset
    # The header of a wrapper of format 0 or 1 has only its last offset.
    first = piece.last_offset if piece.content[16] < 2 else piece.base_offset
    following = [each for each in sorted(SEGMENTS) if each > base_offset]
    end = following[0] if following else 1 << 63
    if behind:
        end = behind.last_offset if behind.content[16] < 2 else behind.base_offset
    return lowest <= first + shift and piece.last_offset + shift < end


def _is_leader_epoch(base_offset: int, mutation: Flip | Cut) -> bool:
    """Return whether the damage is in the leader epoch, which no CRC covers: a broker overwrites it, and
    accepts any."""
    if isinstance(mutation, Cut):
        return False
    piece, _, _ = _piece(base_offset, mutation.position)
    return 12 <= mutation.position - piece.position < 16 and piece.content[16] == 2


def _without_place(record: Record) -> Record:
    return record._replace(offset=-1, leader_epoch=None)


def faults(seen: Observation, whole: Observation, *, unseen: bool, leader_epoch: bool) -> list[str]:
    """Return what is wrong with an observation; ``unseen``: no reader can detect the damage."""
    found = []
    reported = unseen or any(each not in whole.reports for each in seen.reports)
    written = {_without_place(record).value: record for record in whole.records["read_uncommitted"]}
    for level in LEVELS:
        expected = {record.value for record in whole.records[level]}
        delivered = seen.records.get(level, [])
        for record in delivered:
            original = written.get(record.value)
            if original is None or _without_place(record) != _without_place(original):
                found.append(f"{level}: never written: {record}")
            elif level == "read_committed" and original.offset in UNDECIDED_OR_ABORTED:
                found.append(f"{level}: not committed: {record}")
            elif record.leader_epoch != original.leader_epoch and not leader_epoch:
                found.append(f"{level}: leader epoch {record.leader_epoch}: {original}")
            elif record.offset != original.offset and not reported:
                found.append(f"{level}: moved silently: {record.offset} for {original.offset}")
        lost = expected - {record.value for record in delivered}
        if lost and not reported:
            found.append(f"{level}: missing silently: {sorted(lost, key=str)}")
        offsets = [record.offset for record in delivered]
        if any(following <= before for before, following in itertools.pairwise(offsets)):
            found.append(f"{level}: offsets go back: {offsets}")
    return found


def check(mode: str, on_corrupt: str, base_offset: int, chosen: Iterable[Flip | Cut]) -> int:
    """Read one segment with each of the damages; returns their number."""
    name = f"{PARTITION}/{base_offset:020}.log"
    files = image(mode)
    content = files[name]
    wrong, count = [], 0
    for mutation in chosen:
        count += 1
        seen = observe(files | {name: mutation.of(content)}, on_corrupt)
        unseen = _cannot_be_seen(base_offset, mutation)
        leader_epoch = _is_leader_epoch(base_offset, mutation)
        found = faults(seen, intact(mode), unseen=unseen, leader_epoch=leader_epoch)
        wrong += [f"{mutation}: {fault}" for fault in found]
    if wrong:
        pytest.fail("\n".join([f"{len(wrong)} in {count} damages:", *wrong[:SHOWN]]), pytrace=False)
    return count


each_policy = pytest.mark.parametrize("on_corrupt", ["stop", "skip"])
each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.mark.parametrize("base_offset", SEGMENTS)
@each_policy
@each_mode
def test_no_bit_and_no_length_is_silently_wrong(mode: str, on_corrupt: str, base_offset: int) -> None:
    size = len(log(base_offset))
    first = 5 * MODES.index(mode) + 3 * len(on_corrupt)
    count = check(mode, on_corrupt, base_offset, mutations(log(base_offset), SAMPLE, first))
    assert count >= (9 * size if EVERYTHING else 9 * size // SAMPLE - 2)


@each_policy
@pytest.mark.parametrize("mode", sampled(["clean", "bare"], every=2))
def test_no_bit_of_an_end_marker_is_silently_wrong(mode: str, on_corrupt: str) -> None:
    """A few bytes decide about many records: each of their bits is tested."""
    for base_offset, pieces in SEGMENTS.items():
        covered = [(piece.position + 16, piece.end) for piece in pieces if piece.kind != "data"]
        flips = [Flip(at, bit) for begin, end in covered for at in range(begin, end) for bit in range(8)]
        check(mode, on_corrupt, base_offset, flips)


def test_a_planted_fault_is_found() -> None:
    """Tests the judge: a record that differs, one too many, one too few, each without a report."""
    whole = intact("clean")
    for level, records in whole.records.items():
        for changed in (
            [records[0]._replace(key=b"other"), *records[1:]],
            [records[0]._replace(leader_epoch=9), *records[1:]],
            [records[0]._replace(offset=1000), *records[1:]],
            records[:-1],
            [*records, records[0]],
        ):
            seen = Observation({**whole.records, level: changed})
            assert faults(seen, whole, unseen=False, leader_epoch=False)
    everything = whole.records["read_uncommitted"]
    seen = Observation({**whole.records, "read_committed": everything}, reports=["something"])
    assert len(faults(seen, whole, unseen=False, leader_epoch=False)) == len(UNDECIDED_OR_ABORTED)
