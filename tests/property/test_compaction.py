"""Compaction keeps the last committed value of each key, the state of producers and the log end; also when
the log is opened again, with or without derived files. verify finds nothing in a compacted directory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, note
from hypothesis import strategies as st

from tests.unit.storage.cleaner.compacted import DIRECTORY, CompactedLog
from txnkafka import LogDir
from txnkafka.env import DataFiles
from txnkafka.logdir.verify import verify

KEYS = [b"", b"a", b"b", bytes(4), b"\0\0\0\1", b"k" * 40]
records = st.lists(
    st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.binary(max_size=40))), min_size=1, max_size=4
)
transactional = st.integers(1, 3)
step = st.one_of(
    st.tuples(st.just("data"), st.sampled_from([-1, 1, 2, 100]), records, st.sampled_from(["none", "lz4"])),
    st.tuples(st.just("data"), st.sampled_from([1, 2, 3]), records, st.just("none")),
    st.tuples(st.just("end"), transactional, st.booleans()),
    st.tuples(st.just("fence"), transactional),
    st.tuples(st.just("roll")),
    st.tuples(st.just("clean"), st.sampled_from([0, 600, 1000]), st.booleans()),
    st.tuples(st.just("reopen"), st.booleans()),
)


class Run:
    """Applies steps to a log; compares the log before and after each cleaning."""

    def __init__(self, segment_bytes: int) -> None:
        self.log = CompactedLog(segment_bytes=segment_bytes)
        self._epochs: dict[int, int] = {}
        self._dirty_from = 0

    def data(self, producer_id: int, records: list[tuple[bytes, bytes | None]], codec: str) -> None:
        self.log.data(producer_id, *records, epoch=self._epochs.get(producer_id, 0), codec=codec)

    def end(self, producer_id: int, commit: bool) -> None:
        self.log.end(producer_id, commit=commit, epoch=self._epochs.get(producer_id, 0))

    def fence(self, producer_id: int) -> None:
        self._epochs[producer_id] = self._epochs.get(producer_id, 0) + 1
        self.log.end(producer_id, commit=False, epoch=self._epochs[producer_id])

    def roll(self) -> None:
        self.log.roll()

    def reopen(self, clean: bool) -> None:
        self.log.reopen(clean=clean, snapshots=clean)

    def clean(self, after_ms: int, everything: bool) -> None:
        log = self.log
        before = log.view(), log.producers(), log.log.log_end_offset, log.records()
        stats = log.clean(after_ms=after_ms, dirty_from=0 if everything else self._dirty_from)
        self._dirty_from = stats.end_offset
        note(f"{stats}")
        assert (log.view(), log.producers(), log.log.log_end_offset) == before[:3]
        assert set(log.records()) <= set(before[3])
        self.check_stable()

    def check_stable(self) -> None:
        """A clean log stays as it is, except for tombstones past their retention."""
        left = [record for record in self.log.records() if record[2] is not None]
        self.log.clean()
        assert [record for record in self.log.records() if record[2] is not None] == left

    def check_restart(self, *, clean: bool) -> None:
        before = self.log.view(), self.log.producers(), self.log.log.log_end_offset
        self.log.reopen(clean=clean, snapshots=clean)
        assert (self.log.view(), self.log.producers(), self.log.log.log_end_offset) == before


@given(st.lists(step, max_size=60), st.sampled_from([400, 1000, 1 << 20]))
def test_nothing_that_counts_changes(steps: list[tuple[object, ...]], segment_bytes: int) -> None:
    run = Run(segment_bytes)
    for name, *arguments in steps:
        getattr(run, str(name))(*arguments)
    for after_ms in (0, 1000, 1000):
        run.roll()
        run.clean(after_ms, True)
        run.check_restart(clean=True)
    run.check_restart(clean=False)
    assert not run.log.names(".cleaned", ".swap")


@given(st.lists(step, min_size=20, max_size=60), st.sampled_from([400, 1 << 20]))
def test_a_compacted_directory_is_sound(steps: list[tuple[object, ...]], segment_bytes: int) -> None:
    run = Run(segment_bytes)
    for name, *arguments in steps:
        getattr(run, str(name))(*arguments)
    run.roll()
    run.clean(1000, True)
    run.log.log.local.remove_deleted(1 << 60)
    run.log.log.close()
    assert findings(run.log.files) == []


def findings(files: DataFiles) -> list[str]:
    """Return what ``verify`` finds in a partition, except for files that the test's directory does not
    have."""
    with tempfile.TemporaryDirectory() as path:
        target = Path(path, "t-0")
        target.mkdir()
        for entry in files.list(DIRECTORY):
            (target / entry.name).write_bytes(files.read(files.join(DIRECTORY, entry.name), 1 << 30))
        report = verify(LogDir(path), level="records")
    assert report.partitions == 1
    assert report.batches
    return [str(finding) for finding in report.findings]
