"""The targets for files that are derived from a log: indexes, transaction index, snapshot, checkpoints.

They hold each parser against the obvious reading of the bytes; what is refused is refused with
CorruptFileError, and nothing else comes out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from crc32c import crc32c

from tests.fuzz.engine import Target, require
from tests.fuzz.guard import guarded
from tests.fuzz.mutations import put_number, resize_bytes, splice
from txnkafka._core.crc32c import crc32c as compiled_crc32c
from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptFileError
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.formats import (
    OffsetIndex,
    TimeIndex,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_producer_snapshot,
    parse_txn_index,
)

__all__ = ["CHECKPOINT", "INDEX", "SNAPSHOT", "TIME_INDEX", "TXN_INDEX"]

BASE_OFFSET = 20
MOST_PROBLEMS = 101
SNAPSHOT_ENTRY = 46
WORDS = (
    b"\n", b"\r\n", b" ", b"0", b"1", b"-1", b"+1", b"2147483648",
    b"9223372036854775807", b"9223372036854775808",
    b"t 0 5\n", b"99999999999999999999999", b"\xc3", "٣".encode(), b"\0", b"\x0c", b"_", b"\x1c", b"\x85",
    b"version=1", b"\\u00e9", b"\\", b"=", b"topic_id: ", b'{"version":', b"[" * 50, b"1e400", b"NaN",
)  # fmt: skip


def mutate_table(size: int, random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Entries of ``size`` bytes: numbers in them, entries repeated, moved, left out."""
    kind = random.random()
    if kind < 0.2:
        return resize_bytes(random, content)
    if kind < 0.3:
        return splice(random, content, pool)
    if kind < 0.4:
        return content + bytes(size * random.choice((1, 2, 20)))
    if kind < 0.5 and content:
        at = random.randrange(len(content) // size + 1) * size
        return content[:at] + content[at : at + size] * random.randrange(3) + content[at + size :]
    if not content:
        return random.randbytes(size)
    return put_number(random, content, (random.randrange(len(content)) & ~1, random.choice((2, 4, 8))))


def _entries(layout: str, content: bytes) -> list[tuple[Any, ...]]:
    size = struct.calcsize(layout)
    return list(struct.iter_unpack(layout, content[: len(content) // size * size]))


def check_index(layout: str, kind: Callable[..., Any], content: bytes) -> str:
    """Reading never raises; an index without problems has every entry in order and answers like a search."""
    index = kind(guarded(content), BASE_OFFSET)
    everything = [_absolute(layout, entry) for entry in _entries(layout, content)]
    found = [tuple(entry) for entry in index]
    assert found == everything[: len(found)]
    assert [tuple(index[i]) for i in range(len(index))] == found
    problems = index.problems(1 << 31) if kind is OffsetIndex else index.problems()
    assert len(problems) <= MOST_PROBLEMS
    probes = [entry[0] + step for entry in found[:20] for step in (-1, 0, 1)]
    answers = [tuple(index.lookup(probe)) for probe in probes]
    if problems:
        return f"refused: {problems[0].text.split()[0]}, {len(problems).bit_length()}"
    assert all(sum(entry) == BASE_OFFSET * (sum(entry) > 0) for entry in everything[len(found) :])
    for probe, answer in zip(probes, answers, strict=True):
        below = [entry for entry in found if entry[0] <= probe]
        assert answer == (below[-1] if below else _nothing(kind))
    return f"accepted: {len(found).bit_length()} bits of entries"


def _absolute(layout: str, entry: tuple[int, int]) -> tuple[int, int]:
    first, second = entry
    return (first + BASE_OFFSET, second) if layout == ">ii" else (first, second + BASE_OFFSET)


def _nothing(kind: object) -> tuple[int, int]:
    return (BASE_OFFSET, 0) if kind is OffsetIndex else (-1, BASE_OFFSET)


def check_txn_index(content: bytes) -> str:
    """Sound entries and problems are all there is, and what is called sound is."""
    entries, problems = parse_txn_index(guarded(content), BASE_OFFSET)
    raw = [entry[1:] for entry in _entries(">hqqqq", content)]
    assert len(problems) <= MOST_PROBLEMS
    position = 0
    for entry in entries:
        position = raw.index(tuple(entry[1:]), position) + 1
        assert entry.version == 0 <= entry.producer_id
        assert 0 <= entry.first_offset <= entry.last_offset >= BASE_OFFSET
        assert 0 <= entry.last_stable_offset <= entry.last_offset + 1
    ends = [entry.last_offset for entry in entries]
    assert ends == sorted(set(ends))
    if problems:
        return f"refused: {problems[0].text[:12]}, {len(problems).bit_length()}"
    assert len(entries) * 34 == len(content)
    return f"accepted: {len(entries).bit_length()} bits of entries"


def mutate_snapshot(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """As a table behind its head; count and checksum are made right, mostly."""
    body = mutate_table(SNAPSHOT_ENTRY, random, content[10:], [each[10:] for each in pool])
    count = len(body) // SNAPSHOT_ENTRY if random.random() < 0.9 else random.choice((-1, 0, 1, 1 << 31))
    head = content[:2].ljust(2, b"\0")
    if random.random() < 0.05:
        head = random.randbytes(2)
    covered = struct.pack(">I", count & 0xFFFFFFFF) + body
    crc = compiled_crc32c(covered) ^ (random.random() < 0.05)
    return head + struct.pack(">I", crc) + covered


def check_snapshot(content: bytes) -> str:
    """Refused, or exactly the entries that stand there."""
    try:
        entries = parse_producer_snapshot(guarded(content))
    except CorruptFileError as error:
        of_content = "values" in error.reason or "twice" in error.reason
        require(of_content or _snapshot_fault(content), error.reason)
        require(isinstance(_loaded(content), str), "the producer table takes it")
        return f"refused: {error.reason[-30:]}"
    assert not _snapshot_fault(content)
    raw = struct.iter_unpack(">qhiqiqiq", content[10:])
    found = [
        (
            entry.producer_id, entry.producer_epoch, entry.last_sequence, entry.last_offset,
            entry.offset_delta, entry.last_timestamp, entry.coordinator_epoch, entry.current_txn_first_offset,
        )
        for entry in entries
    ]  # fmt: skip
    assert found == list(raw)
    assert len({entry.producer_id for entry in entries}) == len(entries)
    assert _loaded(content) == sorted(map(_as_loaded, entries))
    return f"accepted: {len(entries).bit_length()} bits of producers"


def _as_loaded(entry: ProducerStateEntry) -> ProducerStateEntry:
    """Without a last offset there is no last batch."""
    return entry if entry.last_offset >= 0 else entry._replace(last_sequence=-1, offset_delta=0)


def _loaded(content: bytes) -> list[ProducerStateEntry] | str:
    """What the producer table makes of it: entries, or why it is refused."""
    table = ProducerTable()
    try:
        table.load(guarded(content), now_ms=-(1 << 63), expiration_ms=1)
    except CorruptFileError as error:
        assert len(table) == 0
        return error.reason
    return table.entries()


def _snapshot_fault(content: bytes) -> bool:
    if len(content) < 10:
        return True
    version, crc, count = struct.unpack_from(">hIi", content)
    return (version, crc, 10 + count * SNAPSHOT_ENTRY) != (1, crc32c(content[6:]), len(content))


def mutate_lines(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Words that mean something to some parser, among the lines."""
    kind = random.random()
    if kind < 0.2:
        return resize_bytes(random, content)
    if kind < 0.3:
        return splice(random, content, pool)
    position = random.randint(0, len(content))
    removed = random.choice((0, 0, 1, 3))
    return content[:position] + random.choice(WORDS) + content[position + removed :]


def check_checkpoint(content: bytes) -> str:
    """Every small text file, by each of the parsers: CorruptFileError, or values that can be."""
    labels = []
    for parse, is_possible in CHECKPOINTS.items():
        try:
            value = parse(content)
        except CorruptFileError as error:
            require(str(error), "an error without words")
            labels.append("-")
        else:
            assert is_possible(value, content), f"{parse.__name__} reads {value}"
            labels.append("+")
    return f"{'accepted' if '+' in labels else 'refused'}: {''.join(labels)}"


def _possible_offsets(offsets: Any, content: bytes) -> bool:
    numbers = all(0 <= each.partition < 2**31 and 0 <= offset < 2**63 for each, offset in offsets.items())
    return numbers and len(offsets) <= max(0, len(content.splitlines()) - 2)


def _possible_epochs(epochs: Any, content: bytes) -> bool:
    columns = list(zip(*epochs, strict=True))
    ascending = all(list(column) == sorted(set(column)) for column in columns)
    return ascending and (not epochs or int(content.splitlines()[1]) == len(epochs))


def _possible_metadata(metadata: Any, content: bytes) -> bool:
    return len(metadata.topic_id) == 22 and 0 <= metadata.version < 2**31


def _possible_properties(properties: Any, content: bytes) -> bool:
    has_cluster = properties.version == 0 or properties.cluster_id is not None
    return properties.version in (0, 1) and properties.node_id is not None and has_cluster


def _possible_shutdown(shutdown: Any, content: bytes) -> bool:
    return (shutdown.broker_epoch is None) == (not content)


CHECKPOINTS: dict[Callable[[bytes], Any], Callable[[Any, bytes], bool]] = {
    parse_offset_checkpoint: _possible_offsets,
    parse_leader_epoch_checkpoint: _possible_epochs,
    parse_partition_metadata: _possible_metadata,
    parse_clean_shutdown: _possible_shutdown,
    parse_meta_properties: _possible_properties,
}

INDEX = Target(
    "index",
    partial(check_index, ">ii", OffsetIndex),
    partial(mutate_table, 8),
    iterations=2000,
)
TIME_INDEX = Target(
    "timeindex", partial(check_index, ">qi", TimeIndex), partial(mutate_table, 12), iterations=2000
)
TXN_INDEX = Target("txnindex", check_txn_index, partial(mutate_table, 34), iterations=2000)
SNAPSHOT = Target("snapshot", check_snapshot, mutate_snapshot, iterations=1000)
CHECKPOINT = Target("checkpoint", check_checkpoint, mutate_lines, iterations=4000)
