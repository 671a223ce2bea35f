"""The target for compaction: any bytes as the log of a compacted topic.

Each batch goes through the compiled filter in memory that ends where its bytes end; what survives is held
against the independent decoder. Then the whole log is recovered, cleaned, opened again without its derived
files and cleaned again: the last committed value of each key, producers and the log end stay what they were.
"""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.engine import Target, require
from tests.fuzz.guard import guarded
from tests.fuzz.log_mutations import mutate_log
from tests.models.fetch_filter import decode_any
from tests.models.record_batch import InvalidBatchError
from tests.unit.storage.cleaner.compacted import DIRECTORY, NOW, CompactedLog
from txnkafka import KafkaError
from txnkafka._core.compact import note_keys, survivors
from txnkafka._core.offset_map import OffsetMap
from txnkafka._core.scan import scan
from txnkafka.testing.memory_files import MemoryFiles

__all__ = ["COMPACT"]

HEADER_SIZE = 61
EXPIRATION_MS = 1 << 60
CODEC_BITS = 7
State = tuple[dict[bytes, bytes], list[tuple[int, ...]], int]


def check_compact(content: bytes) -> str:
    """Batch by batch, then as a log."""
    _filter(content)
    if min(scan(content).max_timestamp, default=0) < NOW - EXPIRATION_MS:
        return "refused: so old that its producer expires at once"
    files = MemoryFiles()
    for path in ("/data", DIRECTORY):
        files.make_directory(path)
    files.create(f"{DIRECTORY}/{0:020}.log").write(0, [content])
    try:
        # the header of a marker may have another time than its record, which the cleaner goes by
        log = CompactedLog(files, producer_id_expiration_ms=EXPIRATION_MS)
        log.data(-1, (b"the fuzzer's", b"value"))
        log.roll()
    except KafkaError as error:
        return f"refused: opening, {_words(error)}"
    before = _state(log)
    try:
        stats = log.clean(after_ms=2000)
    except KafkaError as error:
        require(_state(log) == before, "a pass that failed has changed what a consumer gets")
        return f"refused: cleaning, {_words(error)}"
    _require_same(before, _state(log), "cleaned")
    log.reopen(clean=False, snapshots=False)
    # without snapshots fewer transactions are aborted: their damage is met now
    if (again := _state(log)) is None:
        before = None
    _require_same(before, again, "opened again")
    with suppress(KafkaError):
        log.clean(after_ms=2000)
    _require_same(before, _state(log), "cleaned twice")
    kept, dropped = stats.records_kept.bit_length(), stats.records_dropped.bit_length()
    return f"accepted: {kept} and {dropped} bits of records, {stats.segments_before}"


def _words(error: object) -> str:
    return "".join(c for c in str(error)[:60] if not c.isdigit())


def _state(log: CompactedLog) -> State | None:
    """None where the independent decoder finds no records in what the log holds."""
    try:
        return log.view(), log.producers(), log.log.log_end_offset
    except InvalidBatchError:
        return None


def _require_same(before: State | None, after: State | None, when: str) -> None:
    if before is not None:
        require(after == before, f"{when}: {before} has become {after}")


def _filter(content: bytes) -> None:
    """All records survive where no key is known; where all are, the last one of each key."""
    log = guarded(content)
    index = scan(log)
    for position, size, magic in zip(index.position, index.size, index.magic, strict=True):
        if magic != 2 or log[position + 22] & CODEC_BITS:
            continue
        header = guarded(log[position : position + HEADER_SIZE])
        records = guarded(log[position + HEADER_SIZE : position + size])
        keys = OffsetMap(1 << 16)
        try:
            note_keys(keys, header, records)
            everything, chosen = survivors(header, records), survivors(header, records, keys)
            built = bytes(everything.build())
        except KafkaError:
            continue
        require(everything.dropped == 0, "a record is lost")
        require(chosen.kept <= everything.kept, "more survives than there is")
        _compare(bytes(log[position : position + size]), built)


def _compare(batch: bytes, built: bytes) -> None:
    """The same records to the independent decoder, if it takes the batch."""
    try:
        expected = decode_any(batch)
    except InvalidBatchError:
        return
    found = decode_any(built)
    require([each[:1] + each[2:] for each in found] == [each[:1] + each[2:] for each in expected], "changed")


COMPACT = Target("compact", check_compact, mutate_log, iterations=600, corpus="batch")
