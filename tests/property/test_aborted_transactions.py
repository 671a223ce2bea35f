"""The aborted transactions of every read from a log that was opened again, compared with those of the same
log once all index files were compared with the markers; derived files are missing or damaged."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.unit.storage.client import NOW, PATH, Log, opened
from txnkafka._core.producer_table import ProducerTable
from txnkafka.env import DataFiles
from txnkafka.errors import OutOfOrderSequenceError
from txnkafka.storage.cleaner.compaction import clean
from txnkafka.storage.formats.layout import file_name, parse_segment_file
from txnkafka.storage.formats.txn_index import ENTRY_SIZE
from txnkafka.storage.log.log_read import read
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.storage.log.truncation import truncate_to
from txnkafka.storage.recovery.log_loader import Start
from txnkafka.testing.memory_files import MemoryFiles

Steps = list[tuple[str, int]]
Sequences = dict[int, int]
SIZES = (1, 150, 1 << 20)
KINDS = [
    ("data", 1),
    ("data", 1),
    ("data", 2),
    ("abort", 1),
    ("abort", 2),
    ("commit", 1),
    ("plain", 0),
    ("roll", 0),
]
DAMAGE = (["kept"], ["removed"], ["kept", "removed", "cut"])


def perform(log: Log, sequences: Sequences, steps: Steps) -> None:
    for what, value in steps:
        if what == "plain":
            log.plain(1)
        elif what == "data":
            with suppress(OutOfOrderSequenceError):  # of a producer that was forgotten
                log.transactional(value, sequences[value], 1)
                sequences[value] += 1
        elif what == "roll":
            log.log.roll(NOW)
        elif sequences[value]:
            log.end(value, commit=what == "commit")
    log.log.flush()


def damage(files: DataFiles, kind: str, how: list[str]) -> None:
    """Remove files of a kind, or cut an entry off them, as ``how`` says for one after the other."""
    paths = [
        files.join(PATH, entry.name)
        for entry in files.list(PATH)
        if (parsed := parse_segment_file(entry.name)) and parsed.kind == kind
    ]
    for path, action in zip(paths, how, strict=False):
        if action == "removed":
            files.remove(path)
        elif action == "cut":
            file = files.open_to_write(path)
            file.truncate(max(0, file.size() - ENTRY_SIZE))


def forget(files: DataFiles, offsets: list[int]) -> None:
    """Replace all snapshots by those of a Kafka broker that finds none after a clean stop: at the bases of
    the last two segments and at the log end, without a producer."""
    damage(files, "snapshot", ["removed"] * 100)
    for offset in set(offsets[-3:]):
        files.create(files.join(PATH, file_name(offset, "snapshot"))).write(0, [ProducerTable().snapshot()])


def aborted(log: Log, offset: int, max_bytes: int) -> list[Any] | None:
    answer = read(log.log, offset, max_bytes=max_bytes)
    answer.records.release()
    return answer.aborted_transactions


@settings(max_examples=400 if LONG else 60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_every_read_is_told_of_what_a_whole_scan_finds(seed: int) -> None:
    """A seed makes the logs, so that most of them have transactions across several segments."""
    random = Random(seed)
    log, sequences = Log(index_interval_bytes=0), {1: 0, 2: 0}
    perform(log, sequences, random.choices(KINDS, k=random.randint(10, 40)))
    if random.random() < 0.3:
        clean(log.log, now_ms=NOW)
    log.log.close()
    files, point, end = log.log.files, log.log.recovery_point, log.log.log_end_offset
    assert isinstance(files, MemoryFiles)
    if random.random() < 0.3:
        forget(files, [*log.bases, end])
    else:
        damage(files, "txnindex", random.choices(random.choice(DAMAGE), k=40))
        damage(files, "snapshot", random.choices(random.choice(DAMAGE), k=40))
    disk, start = files.disk(), Start(random.random() < 0.7, point)
    bounded, whole = (Log(opened(MemoryFiles(base=disk), start, index_interval_bytes=0)) for _ in range(2))
    compare(bounded, whole, random)
    later = random.choices(KINDS, k=8)
    perform(bounded, dict(sequences), later)
    perform(whole, sequences, later)
    compare(bounded, whole, random)
    cut = random.randrange(end + 1)
    assert truncate_to(bounded.log, cut, now_ms=NOW) == truncate_to(whole.log, cut, now_ms=NOW)
    compare(bounded, whole, random)


def compare(bounded: Log, whole: Log, random: Random) -> None:
    for segment in whole.log.segments:
        transactions_of(whole.log, segment)
    reads = [(offset, size) for offset in range(bounded.log.log_end_offset) for size in SIZES]
    random.shuffle(reads)
    for offset, size in reads:
        assert aborted(bounded, offset, size) == aborted(whole, offset, size)
