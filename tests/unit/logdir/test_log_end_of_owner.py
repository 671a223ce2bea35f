"""The end of the same log after a crash, for a reader and for the owner of the directory.

They agree except for two kinds of damage above the recovery point, which docs/recovery.md names. The reader's
answer is that of Kafka's broker, which accepts these batches; the owner truncates the log before them,
because batches appended after them could not be read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch
from txnkafka import LogDir
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.errors import CorruptRecordError
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory

NOW = 1_700_000_000_000
SIZE = len(batch(0))
COUNT, DAMAGED = 6, 3  # batches of two records; the number of the damaged one

Damage = Callable[[bytearray], object]


def put(at: int, content: bytes) -> Damage:
    """Return a damage that overwrites bytes of the damaged batch."""

    def change(log: bytearray) -> None:
        log[DAMAGED * SIZE + at : DAMAGED * SIZE + at + len(content)] = content

    return change


AGREED: dict[str, tuple[Damage, int]] = {
    "none": (lambda log: None, 12),
    "a torn tail": (lambda log: log.__delitem__(slice(-5, None)), 10),
    "zeros behind": (lambda log: log.extend(bytes(100)), 12),
    "garbage behind": (lambda log: log.extend(b"\xff" * 100), 12),
    "a wrong CRC": (put(17, b"\0\0\0\1"), 6),
    "a batch twice": (lambda log: log.extend(log[-SIZE:]), 12),
}
DIFFERENT: dict[str, Damage] = {
    "an unknown magic": put(16, b"\7"),
    "a flipped base offset": put(6, b"\x40"),
}


def crashed(path: Path, damage: Damage) -> None:
    """Write the directory of a crashed broker without a recovery point."""
    log = bytearray().join(batch(2 * number) for number in range(COUNT))
    damage(log)
    (path / "t-0").mkdir()
    (path / "t-0" / f"{0:020}.log").write_bytes(log)
    (path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 0\n")


def ends(path: Path) -> tuple[int, int]:
    """Return the log end for a reader, and then for an owner."""
    reader = LogDir(str(path)).partition("t", 0).log_end_offset
    owned = DataDirectory(LocalDataFiles(), str(path), lambda _: LogConfig(), now_ms=NOW)
    owner = owned.logs[TopicPartition("t", 0)].log_end_offset
    owned.close()
    return reader, owner


@pytest.mark.parametrize("name", AGREED)
def test_both_come_to_the_same_end(tmp_path: Path, name: str) -> None:
    damage, end = AGREED[name]
    crashed(tmp_path, damage)
    assert ends(tmp_path) == (end, end)


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_owner_cuts_what_the_reader_only_stops_at(tmp_path: Path, name: str) -> None:
    crashed(tmp_path, DIFFERENT[name])
    assert ends(tmp_path) == (2 * COUNT, 2 * DAMAGED)
    view = LogDir(str(tmp_path)).partition("t", 0)  # as the owner left it
    assert [record.offset for record in view.records()] == list(range(2 * DAMAGED))


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_reader_delivers_what_the_owner_keeps_and_says_where_it_stops(tmp_path: Path, name: str) -> None:
    crashed(tmp_path, DIFFERENT[name])
    records = LogDir(str(tmp_path)).partition("t", 0).records()
    assert [next(records).offset for _ in range(2 * DAMAGED)] == list(range(2 * DAMAGED))
    with pytest.raises(CorruptRecordError):
        next(records)
