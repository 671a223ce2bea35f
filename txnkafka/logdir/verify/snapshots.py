"""Compares a producer snapshot with the replay of the log up to the snapshot's offset.

Legal differences are not reported: facts from batches below ``intact_from``, which were deleted or cleaned;
coordinator epochs that the broker dropped with an idle producer. Idle producers dropped altogether
(``producer.id.expiration.ms``) are a note unless their transaction is open. A batch emptied by the cleaner
opens no transaction here but may open one in Kafka; these batches are also below ``intact_from``.

Source: ProducerStateManager (KIP-98); the rules of removal come from Cleaner and log retention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from txnkafka.model import ProducerStateEntry

NONE = -1


class Replayed(NamedTuple):
    """The producers after replaying the log up to ``offset``, with the log's first offset and
    ``intact_from``."""

    offset: int
    producers: dict[int, ProducerStateEntry]
    first_offset: int
    intact_from: int


class SnapshotProblem(NamedTuple):
    """A wrong entry of a snapshot; ``lacking``: the snapshot only lacks a producer without open
    transaction."""

    text: str
    lacking: bool = False


def snapshot_problems(entries: Iterable[ProducerStateEntry], replayed: Replayed) -> Iterator[SnapshotProblem]:
    """Yield the contradictions between a snapshot's ``entries`` and the log."""
    known = set()
    for entry in entries:
        if entry.producer_id in replayed.producers:
            known.add(entry.producer_id)
        mine = replayed.producers.get(entry.producer_id)
        text = _impossible(entry, replayed.offset) or (
            _unknown(entry, replayed) if mine is None else _contradiction(entry, mine, replayed)
        )
        if text:
            yield SnapshotProblem(f"producer {entry.producer_id}: {text}")
    for producer_id, mine in sorted(replayed.producers.items()):
        if producer_id not in known:
            yield from _lacking(mine, replayed)


def _impossible(entry: ProducerStateEntry, offset: int) -> str:
    if max(entry.last_offset, entry.current_txn_first_offset) >= offset:
        return "its offsets are not below the snapshot's"
    return ""


def _unknown(entry: ProducerStateEntry, replayed: Replayed) -> str:
    """Return the problem of an entry whose producer is not in the log; empty without a problem."""
    if replayed.intact_from == 0 or entry.last_offset >= replayed.intact_from:
        return f"no batch of it is in the log, but the snapshot has its last offset {entry.last_offset}"
    if entry.current_txn_first_offset >= replayed.intact_from:
        return f"no transaction of it begins at offset {entry.current_txn_first_offset}"
    return ""


def _contradiction(entry: ProducerStateEntry, mine: ProducerStateEntry, replayed: Replayed) -> str:
    if replayed.intact_from == 0:
        fields = [name for name in entry._fields if _differs(name, entry, mine)]
        return ", ".join(f"{name} is {getattr(mine, name)}, not {getattr(entry, name)}" for name in fields)
    return _last_batch(entry, mine, replayed) or _transaction(entry, mine, replayed)


def _differs(name: str, entry: ProducerStateEntry, mine: ProducerStateEntry) -> bool:
    noted = getattr(entry, name)
    if name == "coordinator_epoch" and noted == NONE:
        return False
    return bool(noted != getattr(mine, name))


def _last_batch(entry: ProducerStateEntry, mine: ProducerStateEntry, replayed: Replayed) -> str:
    if entry.last_offset == mine.last_offset != NONE:
        noted = entry.producer_epoch, entry.last_sequence, entry.offset_delta
        found = mine.producer_epoch, mine.last_sequence, mine.offset_delta
        if noted != found:
            return f"epoch, last sequence and offset delta are {found}, not {noted}"
    elif entry.last_offset > mine.last_offset and entry.last_offset >= replayed.intact_from:
        return f"no batch of it ends with offset {entry.last_offset}"
    elif entry.last_offset < mine.last_offset >= replayed.first_offset and (
        entry.producer_epoch == mine.producer_epoch
    ):
        return f"its last offset is {mine.last_offset}, not {entry.last_offset}"
    return ""


def _transaction(entry: ProducerStateEntry, mine: ProducerStateEntry, replayed: Replayed) -> str:
    noted, found = entry.current_txn_first_offset, mine.current_txn_first_offset
    exact = max(replayed.intact_from, replayed.first_offset)
    if noted != found and (noted >= exact or (found >= exact and noted == NONE)):
        return f"its open transaction begins at {found}, not {noted}"
    return ""


def _lacking(mine: ProducerStateEntry, replayed: Replayed) -> Iterator[SnapshotProblem]:
    exact = max(replayed.intact_from, replayed.first_offset)
    if mine.current_txn_first_offset >= exact:
        text = f"its transaction open since offset {mine.current_txn_first_offset} is missing"
        yield SnapshotProblem(f"producer {mine.producer_id}: {text}")
    elif mine.last_offset >= exact:
        text = f"its last batch at offset {mine.last_offset} is missing"
        yield SnapshotProblem(f"producer {mine.producer_id}: {text}", lacking=True)
