"""The targets for directories that are opened to be written: as their owner, and to be repaired.

``owner`` opens a changed directory in memory, appends to every log, rolls, compacts, closes and opens again.
Only KafkaError comes out; the second open finds nothing to repair; the reader gives the owner's answers.
``repair`` recovers the directory in full and gives up what is damaged: a second repair finds nothing to do,
and ``verify`` finds no error in what is left.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Iterator, Mapping

from tests.damage.image import ROOT
from tests.fuzz.directory import NOW_MS, mutate_directory, unpacked
from tests.fuzz.engine import Target, require
from txnkafka import KafkaError, LogDir, TopicPartition
from txnkafka._core.encode import end_txn_marker
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.verify import verify
from txnkafka.record.builder import build_batch
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats.partition_names import named_partitions
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Repair
from txnkafka.testing.memory_files import MemoryFiles

__all__ = ["CONFIGS", "OWNER", "REPAIR", "append_to", "stored"]

logging.getLogger("txnkafka").addHandler(logging.NullHandler())  # every input has something to repair
COMMITTED, ABORTED, PRODUCER_ID = b"committed by the fuzzer", b"aborted by the fuzzer", 1 << 40
CONFIG = {
    "index_interval_bytes": 100,
    "producer_id_expiration_ms": 2**63 - 1,
    "retention_ms": -1,
    "transaction_partition_verification_enable": False,
    "min_cleanable_dirty_ratio": 0.0,
}
CONFIGS = (
    LogConfig(**CONFIG),
    LogConfig(**CONFIG, cleanup_policy="compact", delete_retention_ms=0),
    LogConfig(**CONFIG, preallocate=True, segment_bytes=4000),
)
# what batches and snapshots say whose checksums hold, and segments that are lost: verify reports it, and its
# remedy is not a repair alone
NOT_REPAIRED = {
    "missing-segment", "corrupt-batch", "unknown-control-type", "snapshot-contradicts-log",
    "txnindex-wrong-entry",  # which covers the transaction
}  # fmt: skip
# of a log in front of its end, at which a start after a clean stop does not look: it goes by damaged headers
DAMAGE = {"corrupt-batch", "damaged-segment", "misplaced-batch"}
Offsets = tuple[int, int, int]  # log start, last stable offset, log end


def stored(files: Mapping[str, bytes]) -> MemoryFiles:
    """The files on a disk of their own, all durable."""
    made = MemoryFiles()
    for path, content in files.items():
        try:
            _make_above(made, path)
            made.create(path).write(0, [content])
        except (FileExistsError, NotADirectoryError):
            continue  # two names that cannot both be there
    if not made.exists(ROOT):
        made.make_directory(ROOT)
    return MemoryFiles(base=made.disk())


def _make_above(files: MemoryFiles, path: str) -> None:
    parent = posixpath.dirname(posixpath.normpath(path))
    if not files.exists(parent):
        _make_above(files, parent)
        files.make_directory(parent)


def check_owner(content: bytes) -> str:
    """Open, append, clean, close; and once more."""
    config = CONFIGS[sum(content[-64:]) % len(CONFIGS)]
    files = stored(unpacked(content))
    try:
        directory = _opened(files, config)
    except KafkaError as error:
        return f"refused: {_words(error)}"
    labels = {_words(error) for error in directory.data.refused.values()}
    written = {partition: set(append_to(log)) for partition, log in directory.logs.items()}
    labels.update(*written.values())
    while directory.clean(NOW_MS) is not None:
        pass
    labels |= {_words(error) for error in directory.uncleanable.values()}
    directory.maintain(NOW_MS)
    directory.flush()
    before = _offsets(directory)
    directory.close()
    if directory.data.was_clean:
        for partition in _damaged(stored(unpacked(content)), sorted(before)):
            del before[partition]
    _check_reader(files, before, {each for each, refused in written.items() if not refused})
    _check_next_owner(files, config, directory, before)
    return f"{'refused' if labels else 'accepted'}: {sorted(labels)[:4]}"


def _check_next_owner(
    files: MemoryFiles, config: LogConfig, directory: LogManager, before: Mapping[TopicPartition, Offsets]
) -> None:
    """Who opens what ``directory`` has closed finds the same in the partitions of ``before``."""
    has_copies = any(each.is_copy for each in named_partitions(files.list(ROOT)))
    is_settled = not directory.data.refused and (directory.data.was_clean or not has_copies)
    again = _opened(files, config)
    require(again.data.was_clean == is_settled, "a clean stop was not noticed")
    seen_again = directory.data.refused.keys() & again.logs.keys()
    require(directory.data.was_clean or not seen_again, f"refused only once: {seen_again}")
    for partition in seen_again:  # the marker of a clean stop is gone, and what is behind it a torn tail
        end, durable = again.logs[partition].log_end_offset, directory.data.recovered_from.get(partition, 0)
        require(end >= durable, f"{partition} was refused, and now ends at {end}: {durable} was durable")
    if not directory.data.refused:  # else everything is checked
        refused = again.data.refused.keys() & before.keys()
        require(not refused, f"stopped cleanly, and refused: {again.data.refused}")
        found = {each: offsets for each, offsets in _offsets(again).items() if each in before}
        require(found == before, f"{before} before, {found} when opened again")
        damaged = directory.logs.keys() - before.keys()
        repairs = [
            each for each in again.data.repairs if not each.startswith(tuple(f"{name}:" for name in damaged))
        ]
        require(not repairs, f"repaired although it was stopped cleanly: {repairs}")
    again.close()


def _opened(files: MemoryFiles, config: LogConfig) -> LogManager:
    return LogManager(DataDirectory(files, ROOT, lambda _: config, now_ms=NOW_MS))


def _words(error: object) -> str:
    return "".join(c for c in str(error)[:40] if not c.isdigit())


def _offsets(directory: LogManager) -> dict[TopicPartition, Offsets]:
    return {
        partition: (log.log_start_offset, log.last_stable_offset, log.log_end_offset)
        for partition, log in directory.logs.items()
    }


def append_to(log: PartitionLog) -> Iterator[str]:
    """A batch of nobody, a transaction that commits and one that aborts, a segment behind them; yields
    what was refused."""
    first = log.log_end_offset
    for number, commit in enumerate((None, True, False)):
        value = ABORTED if commit is False else COMMITTED
        sender = {} if commit is None else {"producer_id": PRODUCER_ID + number, "producer_epoch": 0}
        batch = build_batch(
            [(b"key", value, NOW_MS, [])],
            transactional=commit is not None,
            base_sequence=-1 if commit is None else 0,
            **sender,
        )
        try:
            log.append(batch, now_ms=NOW_MS)
            if commit is not None:
                log.append(
                    end_txn_marker(
                        base_offset=0, timestamp=NOW_MS, coordinator_epoch=0, commit=commit, **sender
                    ),
                    now_ms=NOW_MS,
                    origin=AppendOrigin.COORDINATOR,
                    transaction_version=0,
                )
        except KafkaError as error:
            yield _words(error)
    require(log.log_end_offset >= first, "the log end went back")
    log.roll(NOW_MS)


def _check_reader(
    files: MemoryFiles, expected: Mapping[TopicPartition, Offsets], written: set[TopicPartition]
) -> None:
    """The reader finds the offsets that the owner had, and what was appended."""
    log_dir = LogDir(ROOT, file_system=files)
    for partition, offsets in expected.items():
        view = log_dir.partition(*partition)
        found = (view.log_start_offset, view.last_stable_offset, view.log_end_offset)
        require(found == offsets, f"{partition}: the owner had {offsets}, the reader has {found}")
        if partition in written and offsets[1] == offsets[2]:
            start = max(offsets[0], offsets[2] - 5)
            values = [each.value for each in view.records(start_offset=start)]
            require(COMMITTED in values, f"{partition}: {values} at the end, nothing committed")
            require(ABORTED not in values, f"{partition}: an aborted record is shown")
        view.close()


def check_repair(content: bytes) -> str:
    """Recover everything, give up what is damaged; and once more."""
    files = stored(unpacked(content))
    try:
        first = _repaired(files)
    except KafkaError as error:
        return f"refused: {_words(error)}"
    second = _repaired(files)
    require(
        second.data.refused.keys() == first.data.refused.keys(),
        "another partition is refused the second time",
    )
    if not first.data.refused:
        require(not second.data.repairs, f"repaired, and the second time again: {second.data.repairs}")
    if _unrepaired(files, first):  # misled by a snapshot that contradicts its log, though its checksum holds?
        _remove_snapshots(files, first)
        _repaired(files)
        errors = _unrepaired(files, first)
        require(not errors, f"repaired, and verify finds {errors}")
    labels = {_words(repair) for repair in first.data.repairs} | set(map(_words, first.data.refused.values()))
    return f"{'refused' if labels else 'accepted'}: {sorted(labels)[:4]}"


def _damaged(files: MemoryFiles, partitions: list[TopicPartition]) -> set[TopicPartition]:
    """The partitions whose logs are damaged in front of their ends."""
    return {each for each in partitions if any(found.code in DAMAGE for found in _findings(files, [each]))}


def _unrepaired(files: MemoryFiles, directory: LogManager) -> list[str]:
    """The errors that a repair should have mended."""
    found = _findings(files, sorted(directory.logs))
    return [str(each) for each in found if each.severity == "error" and each.code not in NOT_REPAIRED]


def _remove_snapshots(files: MemoryFiles, directory: LogManager) -> None:
    for partition in directory.logs:
        path = posixpath.join(ROOT, str(partition))
        for entry in files.list(path):
            if entry.name.endswith(".snapshot"):
                files.remove(posixpath.join(path, entry.name))


def _findings(files: MemoryFiles, partitions: list[TopicPartition]) -> Iterator[Finding]:
    """What verify finds in these partitions and the directory around them."""
    if partitions:
        yield from verify(LogDir(ROOT, file_system=files), partitions, level="crc").findings


def _repaired(files: MemoryFiles) -> LogManager:
    directory = LogManager(
        DataDirectory(
            files, ROOT, lambda _: CONFIGS[0], now_ms=NOW_MS, repair=Repair(full=True, truncate_corrupt=True)
        )
    )
    directory.close()
    return directory


OWNER = Target("owner", check_owner, mutate_directory, iterations=150, corpus="directory")
REPAIR = Target("repair", check_repair, mutate_directory, iterations=150, corpus="directory")
