"""A plan that resumes from a checkpoint is the rest of the plan of the whole log, wherever it resumes."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.producer_state import write_snapshot
from txnkafka.logdir import (
    CannotResumeError,
    LogDir,
    PartitionView,
    PlanCheckpoint,
    ReadRequest,
    ResumablePlan,
    resumable_plan,
)
from txnkafka.model import IsolationLevel

NO_TRANSACTION = -1


class Step(NamedTuple):
    """``data`` of a producer, its ``commit`` or ``abort``, ``roll``: a new segment, ``gap``: missing offsets
    as after compaction, ``hole``: a missing segment, ``moved``: data whose base offset is damaged by
    ``count``, ``flipped``: data with a wrong CRC."""

    kind: str
    producer_id: int = NO_TRANSACTION
    count: int = 1
    epoch: int = 0


data_steps = st.builds(
    Step, st.just("data"), st.integers(-1, 2), st.integers(1, 3), epoch=st.sampled_from((0, 0, 0, 1))
)
end_steps = st.builds(
    Step, st.sampled_from(["commit", "abort"]), st.integers(0, 2), epoch=st.sampled_from((0, 0, 1))
)
sound_steps = data_steps | data_steps | end_steps | st.just(Step("roll"))
compacted_steps = sound_steps | st.just(Step("gap"))
damaged_steps = (
    compacted_steps
    | st.just(Step("hole"))
    | st.builds(Step, st.just("moved"), st.just(-1), st.sampled_from((-6, -1, 2, 7)))
    | st.just(Step("flipped"))
)


def written(steps: list[Step]) -> list[dict[int, bytes]]:
    """Return the segments of the log after every step that changes it, by base offset."""
    segments, offset, base = {0: b""}, 0, 0
    states = [dict(segments)]
    for step in steps:
        if step.kind == "gap":
            offset += 2
            continue
        if step.kind in ("roll", "hole"):
            offset += 5 * (step.kind == "hole")
            if offset == base:
                continue
            base = offset
            segments[base] = b""
        else:
            data, count = batch_of(step, offset)
            segments[base] += data
            offset += count
        states.append(dict(segments))
    return states


def batch_of(step: Step, offset: int) -> tuple[bytes, int]:
    if step.kind in ("commit", "abort"):
        outcome = int(step.kind == "commit")
        fields: dict[str, Any] = {"producer_id": step.producer_id, "producer_epoch": step.epoch}
        return end_marker(outcome, base_offset=offset, **fields), 1
    records = [PlainRecord(b"k", b"%d" % (offset + i), 1000 + offset + i) for i in range(step.count)]
    if step.kind == "moved":
        return Batch(records=records[:1], base_offset=max(0, offset + step.count)).encode(), 1
    fields = {}
    if step.producer_id != NO_TRANSACTION:
        fields = {"producer_id": step.producer_id, "producer_epoch": step.epoch, "transactional": True}
    data = bytearray(Batch(records=records, base_offset=offset, **fields).encode())
    if step.kind == "flipped":
        data[-1] ^= 1
    return bytes(data), step.count


class Disk:
    """A log directory with partition t-0."""

    def __init__(self, root: str) -> None:
        self.root = Path(root)
        self.folder = self.root / "t-0"
        self.folder.mkdir()
        self.clean = False
        self.snapshots: dict[int, bytes] = {}

    def take_snapshot(self, base_offset: int) -> None:
        """Take a snapshot of the producers at the beginning of a segment."""
        found = LogDir(str(self.root)).partition("t", 0).producers(now_ms=2000)
        self.snapshots[base_offset] = write_snapshot(tuple(entry) for entry in found)

    def note_cleaning(self) -> None:
        """Mark all offsets as cleaned, also later ones."""
        (self.root / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 1000000\n")

    def hold(self, segments: dict[int, bytes]) -> None:
        """Replace the segments, with the snapshots that were written at their beginnings."""
        names = {f"{base:020}.log": content for base, content in segments.items()}
        names |= {f"{base:020}.snapshot": self.snapshots[base] for base in segments if base in self.snapshots}
        for path in self.folder.iterdir():
            if path.name not in names:
                path.unlink()
        for name, content in names.items():
            (self.folder / name).write_bytes(content)

    def plan(
        self, request: ReadRequest, checkpoint: PlanCheckpoint | None = None, unit_bytes: int = 1
    ) -> ResumablePlan:
        """Plan with a checkpoint from another process."""
        marker = self.root / ".kafka_cleanshutdown"
        marker.unlink(missing_ok=True)
        if self.clean:
            marker.write_bytes(b'{"version":0,"brokerEpoch":1}')
        source = LogDir(str(self.root)).partition("t", 0).source
        view = PartitionView(source, pickle.loads(pickle.dumps(checkpoint)))
        try:
            return resumable_plan(view, request, unit_bytes=unit_bytes)
        finally:
            view.close()


def pieces(plans: list[ResumablePlan]) -> dict[tuple[str, int, int], tuple[Any, ...]]:
    """Return what the plans read of each batch; with units of one byte every batch has its own units."""
    found: dict[tuple[str, int, int], tuple[set[int], set[Any], set[Any]]] = {}
    for unit in (unit for plan in plans for unit in plan.units):
        key = (unit.path, unit.start_position, unit.end_position)
        offsets, hidden, damage = found.setdefault(key, (set(), set(), set()))
        new = set(range(unit.start_offset, unit.end_offset))
        assert not new & offsets
        offsets |= new
        hidden |= set(unit.hidden)
        damage |= {each for each in unit.damage if each.wanted}
    return found


def assert_same(plans: list[ResumablePlan], whole: ResumablePlan) -> None:
    """Consecutive plans together are the plan of the whole log."""
    assert pieces(plans) == pieces([whole])
    assert [transaction for plan in plans for transaction in plan.transactions] == whole.transactions
    assert {finding for plan in plans for finding in plan.findings} == set(whole.findings)
    assert plans[-1].last_stable_offset == whole.last_stable_offset
    last, expected = plans[-1].checkpoint, whole.checkpoint
    assert last.next_offset == expected.next_offset
    assert last.seen == expected.seen
    if last.planned is not None and expected.planned is not None:
        # a pass that read later data may know of gaps above the point
        assert last.planned._replace(has_gaps=True) == expected.planned._replace(has_gaps=True)


def torn(state: dict[int, bytes], following: dict[int, bytes]) -> dict[int, bytes]:
    """The broker is in the middle of an append: a part of the next batch is in the file."""
    last = max(state)
    return state | {last: following[last][: len(state[last]) + 30]}


def check_cuts(
    steps: list[Step], level: str, *, clean: bool, sound: bool, with_snapshots: bool = False
) -> None:
    request = ReadRequest(isolation_level=IsolationLevel.of(level))
    states = written(steps)
    with tempfile.TemporaryDirectory() as root:
        disk = Disk(root)
        disk.clean = clean
        if sound:
            disk.note_cleaning()
        prefixes = []
        for state, following in zip(states, states[1:] + states[-1:], strict=True):
            disk.hold(state)
            if with_snapshots and max(following) > max(state):
                disk.take_snapshot(max(following))
            disk.hold(torn(state, following) if not clean else state)
            prefixes.append(disk.plan(request))
        whole = prefixes[-1]
        for prefix in prefixes:
            try:
                rest = disk.plan(request, prefix.checkpoint)
            except CannotResumeError:
                assert not sound
                continue
            assert_same([prefix, rest], whole)
        chained = prefixes[:1]
        for state in states[1:] if sound else ():
            disk.hold(state)
            chained.append(disk.plan(request, chained[-1].checkpoint))
        assert_same(chained if sound else [whole], whole)


LEVELS = st.sampled_from([level.value for level in IsolationLevel])


@given(st.lists(sound_steps, max_size=14), LEVELS, st.booleans(), st.booleans())
@settings(max_examples=400 if LONG else 60, deadline=None)
def test_a_sound_log_is_planned_on(
    steps: list[Step], level: str, clean: bool, with_snapshots: bool
) -> None:
    check_cuts(steps, level, clean=clean, sound=True, with_snapshots=with_snapshots)


@given(st.lists(compacted_steps, max_size=14), LEVELS, st.booleans())
@settings(max_examples=400 if LONG else 60, deadline=None)
def test_a_log_with_gaps_is_planned_on(steps: list[Step], level: str, clean: bool) -> None:
    check_cuts(steps, level, clean=clean, sound=True)


DAMAGE_BETWEEN_OFFSETS = [Step("data", 0), Step("roll"), Step("moved", count=-6), Step("moved", count=-1)]


@given(st.lists(damaged_steps, max_size=14), LEVELS)
@example(DAMAGE_BETWEEN_OFFSETS, "read_uncommitted")
@settings(max_examples=600 if LONG else 120, deadline=None)
def test_a_damaged_log_is_planned_on_or_refused(steps: list[Step], level: str) -> None:
    check_cuts(steps, level, clean=True, sound=False)
