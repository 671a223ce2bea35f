"""The target for whole directories: whatever lies there, only KafkaError comes out, and answers fit together.

An input is the files of a small log directory one after the other. Logs, indexes, snapshots and checkpoints
are changed as in their own targets, and files are renamed, left out and exchanged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random

from tests.damage.image import ROOT
from tests.damage.memory import MappedMemory, MemoryFile, MemoryFileSystem
from tests.fuzz.derived_files import mutate_lines, mutate_snapshot, mutate_table
from tests.fuzz.engine import Target
from tests.fuzz.guard import guarded
from tests.fuzz.log_mutations import mutate_log
from tests.fuzz.mutations import resize_bytes
from txnkafka import KafkaError, LogDir
from txnkafka.logdir import PartitionView
from txnkafka.logdir.lso import explanation_of
from txnkafka.logdir.verdict import Circumstances
from txnkafka.logdir.verify import verify
from txnkafka.record.batch import Record

__all__ = ["DIRECTORY", "NOW_MS", "check_partition", "mutate_directory", "packed", "unpacked"]

NOW_MS = 1_700_000_000_000
Files = dict[str, bytes]

MUTATE: Mapping[str, Callable[[Random, bytes, Sequence[bytes]], bytes]] = {
    "log": mutate_log,
    "index": partial(mutate_table, 8),
    "timeindex": partial(mutate_table, 12),
    "txnindex": partial(mutate_table, 34),
    "snapshot": mutate_snapshot,
}


def packed(files: Mapping[str, bytes]) -> bytes:
    """An input."""
    return b"".join(
        struct.pack(">HI", len(raw := name.encode("utf-8", "surrogateescape")), len(content)) + raw + content
        for name, content in files.items()
    )


def unpacked(content: bytes) -> Files:
    """The files of an input, as far as it goes."""
    files = {}
    position = 0
    while position + 6 <= len(content):
        name_size, size = struct.unpack_from(">HI", content, position)
        position += 6
        name = content[position : position + name_size].decode("utf-8", "surrogateescape")
        position += name_size
        files[name] = content[position : position + size]
        position += size
    return files


def mutate_directory(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Mostly the content of one file, by its kind."""
    files = unpacked(content)
    if not files:
        return random.choice(pool)
    name = random.choice(list(files))
    kind = random.random()
    if kind < 0.08:
        files[_other_name(random, name)] = files.pop(name)
    elif kind < 0.14:
        del files[name]
    elif kind < 0.2:
        other = unpacked(random.choice(pool))
        files[name] = other.get(name, b"")
    else:
        alike = [each for other, each in files.items() if other.rpartition(".")[2] == name.rpartition(".")[2]]
        mutate = MUTATE.get(name.rpartition(".")[2], mutate_lines)
        files[name] = mutate(random, files[name], alike)
    return packed(files)


def _other_name(random: Random, name: str) -> str:
    folder, _, plain = name.rpartition("/")
    base, _, kind = plain.partition(".")
    resized = resize_bytes(random, plain.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")
    choices = (
        plain + random.choice((".deleted", ".cleaned", ".swap")),
        f"{random.choice((0, 1, 19, 21, 38, 49, 1 << 62, (1 << 63) - 1)):020}.{kind}",
        f"{base}.{random.choice(('log', 'index', 'timeindex', 'txnindex', 'snapshot'))}",
        resized.replace("/", "-") or "x",
    )
    changed = random.choice(choices)
    if random.random() < 0.1:
        names = ("t-1", "t-0.abc-future", "__transaction_state-0", "__consumer_offsets-7")
        folder = random.choice((*(f"{ROOT}/{each}" for each in names), ROOT))
    return f"{folder}/{changed}"


class GuardedFileSystem(MemoryFileSystem):
    """Mapped files end where their bytes end; a file's content is asked for once at most."""

    def open(self, path: str) -> MemoryFile:
        return GuardedFile(self.read(path, 1 << 62))


class GuardedFile(MemoryFile):
    """A mapping is exactly as long as it should be."""

    def map(self, size: int) -> MappedMemory:
        return MappedMemory(guarded(super().map(size).read(0, size)))


def check_directory(content: bytes) -> str:
    """Ask for everything."""
    labels = set()
    for io in ("mmap", "pread"):
        try:
            log_dir = LogDir(ROOT, io=io, file_system=GuardedFileSystem(unpacked(content)))
            topics = log_dir.topics
        except KafkaError as error:
            return f"refused: {_words(error)}"
        for topic_partition in log_dir.topic_partitions:
            assert topic_partition.partition in topics[topic_partition.topic].partitions
            try:
                labels |= check_partition(log_dir, log_dir.partition(*topic_partition))
            except KafkaError as error:
                labels.add(_words(error))
        try:
            log_dir.transactional_ids()
            log_dir.committed_offsets()
        except KafkaError as error:
            labels.add(_words(error))
        labels |= _check_verified(log_dir, sorted(labels))
    return f"{'refused' if labels else 'accepted'}: {sorted(labels)[:4]}"


def _check_verified(log_dir: LogDir, complaints: list[str]) -> set[str]:
    """What reading complained of does not pass for sound; returns the codes of what was found."""
    report = verify(log_dir, level="records")
    assert not (report.is_sound and complaints), f"verify finds nothing, but reading said {complaints}"
    return {finding.code for finding in report.findings if finding.severity != "note"}


def _words(error: object) -> str:
    return "".join(c for c in str(error)[:40] if not c.isdigit())


def check_partition(log_dir: LogDir, view: PartitionView) -> set[str]:
    """What the partition answers, and whether its answers fit together; returns what it complained of."""
    findings = [*view.findings]
    start, stable, end = view.log_start_offset, view.last_stable_offset, view.log_end_offset
    assert start <= end >= stable, (start, stable, end)
    assert view.high_watermark is None or start <= view.high_watermark <= end
    for each in view.transactions():
        assert each.first_offset <= each.last_offset
    view.producers(now_ms=NOW_MS)
    report = explanation_of(view, log_dir.coordinator, Circumstances(now_ms=NOW_MS))
    assert report.last_stable_offset == stable
    view.offset_for_timestamp(NOW_MS, "read_uncommitted")
    view.plan(isolation_level="read_uncommitted", findings=findings)
    errors: set[str] = set()
    everything = _records(view, "read_uncommitted", errors)
    committed = _records(view, "read_committed", errors)
    if _is_in_order(view, everything):
        seen = {record.offset for record in everything}
        assert all(record.offset in seen for record in committed), "read_committed returns what is not there"
        assert all(record.offset < stable for record in committed), "a record behind the last stable offset"
    view.close()
    return errors | {finding.code for finding in findings}


def _is_in_order(view: PartitionView, records: Sequence[Record]) -> bool:
    """Whether batches and their records have the offsets that a log has; else much is reported, but what is
    read between the reports depends on where one begins and ends."""
    batches = [header for segment in view.segments for header in segment.scan()]
    if any(before.last_offset >= each.base_offset for before, each in pairwise(batches)):
        return False
    within = (
        any(each.base_offset <= record.offset <= each.last_offset for each in batches) for record in records
    )
    return all(within) and all(before.offset < record.offset for before, record in pairwise(records))


def _records(view: PartitionView, isolation_level: str, errors: set[str]) -> list[Record]:
    """What can be read of the partition; whoever stops at damage has read the beginning of that."""
    stopped: list[Record] = []
    try:
        for record in view.records(isolation_level=isolation_level):
            stopped.append(record)
    except KafkaError as error:
        errors.add(_words(error))
    skipped = list(view.records(isolation_level=isolation_level, on_corrupt="skip"))
    assert stopped == skipped[: len(stopped)]
    return skipped


DIRECTORY = Target("directory", check_directory, mutate_directory, iterations=80)
