"""A log as the consumer sees it: its batches, its aborted transactions, and the filter of CompletedFetch.

``scan_log`` walks over the batches; ``fetch`` returns the records in either isolation level; ``aborted_in``
derives the broker's list of aborted transactions from the markers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from tests.models.legacy import decode_entry, read_legacy_header
from tests.models.record_batch import (
    CONTROL,
    TRANSACTIONAL,
    BatchHeader,
    Record,
    decode_batch,
    read_header,
)

__all__ = [
    "AbortedTxn",
    "aborted_in",
    "collect_aborted",
    "decode_any",
    "fetch",
    "last_stable_offset",
    "read_txn_index",
    "scan_log",
]

_ABORT, _COMMIT = 0, 1
_MAX_OFFSET = (1 << 63) - 2
BAD_MAGIC = 127


class AbortedTxn(NamedTuple):
    """One entry of a ``.txnindex``."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def scan_log(data: bytes) -> tuple[list[BatchHeader], str, int]:
    """Return the headers, the reason why the walk stopped (``end``, ``torn``, ``zeros``, ``garbage``) and its
    position."""
    headers: list[BatchHeader] = []
    position = 0
    while position < len(data):
        stop = _stop(data, position)
        if stop is not None:
            return headers, stop, position
        headers.append(_header(data, position))
        position += headers[-1].size
    return headers, "end", position


def _stop(data: bytes, position: int) -> str | None:
    """Classify the bytes at ``position``; None for a whole batch."""
    rest = len(data) - position
    if rest < 17:
        return "torn" if any(data[position:]) else "zeros"
    (length,) = struct.unpack_from(">i", data, position + 8)
    magic = data[position + 16]
    if length < 14:
        return "garbage" if any(data[position:]) else "zeros"
    if magic == 2 and length < 49:
        return "garbage"
    if length + 12 > rest:
        return "torn"
    if magic == 1 and length < 22:
        return "garbage"
    if magic > 2 and (
        length < 49 or crc32c(data[position + 21 : position + 12 + length]) != _crc(data, position)
    ):
        return "garbage"
    header = _header(data, position)
    sound = 0 <= header.base_offset <= header.last_offset <= _MAX_OFFSET
    return None if sound else "garbage"


def _crc(data: bytes, position: int) -> int:
    return int.from_bytes(data[position + 17 : position + 21], "big")


def _header(data: bytes, position: int) -> BatchHeader:
    magic = data[position + 16]
    if magic < 2 and not _is_marker(data, position):
        return read_legacy_header(data, position)
    header = read_header(data, position)
    return header if magic == 2 else header._replace(magic=BAD_MAGIC)


def _is_marker(data: bytes, position: int) -> bool:
    """Whether the bytes are an end marker, whatever their magic byte says: size, checksum and attributes are
    those of one; LogAppendTime and a delete horizon may be set."""
    content = data[position : position + 78]
    is_one = content[8:12] == b"\0\0\0\x42" and int.from_bytes(content[21:23]) & ~0x48 == 0x30
    return is_one and crc32c(content[21:]) == _crc(data, position)


def decode_any(batch: bytes) -> list[Record]:
    """Return the records of one batch or legacy entry; raises ``InvalidBatchError``."""
    return decode_entry(batch) if batch[16] < 2 and not _is_marker(batch, 0) else decode_batch(batch)


def read_txn_index(content: bytes) -> list[AbortedTxn]:
    """Return the entries of a ``.txnindex`` file in file order, without an incomplete last one."""
    whole = len(content) // 34 * 34
    return [AbortedTxn(*entry[1:]) for entry in struct.iter_unpack(">hqqqq", content[:whole])]


def collect_aborted(entries: Iterable[AbortedTxn], fetch_offset: int, upper_bound: int) -> list[AbortedTxn]:
    """Return what the broker lists for a fetch of [fetch_offset, upper_bound).

    ``entries`` are those of the segment that is read and of the later segments; see
    TransactionIndex.collectAbortedTxns.
    """
    collected = []
    for entry in entries:
        if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
            collected.append(entry)
        if entry.last_stable_offset >= upper_bound:
            break
    return collected


def aborted_in(headers: Iterable[BatchHeader]) -> list[AbortedTxn]:
    """Return the aborted transactions with data, in the order of their markers."""
    first_offsets: dict[int, int] = {}
    aborted = []
    for header in headers:
        producer_id = header.producer_id
        if producer_id < 0 or not header.attributes & TRANSACTIONAL:
            continue
        if not header.attributes & CONTROL:
            first_offsets.setdefault(producer_id, header.base_offset)
        elif header.control_type in (_ABORT, _COMMIT) and producer_id in first_offsets:
            first_offset = first_offsets.pop(producer_id)
            if header.control_type == _ABORT:
                stable = min([*first_offsets.values(), header.last_offset + 1])
                aborted.append(AbortedTxn(producer_id, first_offset, header.last_offset, stable))
    return aborted


def last_stable_offset(headers: Iterable[BatchHeader], log_end_offset: int) -> int:
    """Return the first offset of the oldest open transaction, or the log end."""
    first_offsets: dict[int, int] = {}
    for header in headers:
        if header.producer_id < 0 or not header.attributes & TRANSACTIONAL:
            continue
        if not header.attributes & CONTROL:
            first_offsets.setdefault(header.producer_id, header.base_offset)
        elif header.control_type in (_ABORT, _COMMIT):
            first_offsets.pop(header.producer_id, None)
    return min([*first_offsets.values(), log_end_offset])


def fetch(
    data: bytes,
    headers: Iterable[BatchHeader],
    start_offset: int,
    end_offset: int,
    aborted: list[AbortedTxn] | None,
) -> Iterator[Record]:
    """Return the records that a consumer gets from ``start_offset`` when it is served up to ``end_offset``.

    ``aborted`` is the broker's answer in read_committed; None means read_uncommitted.
    """
    pending = sorted(aborted or [], key=lambda transaction: transaction.first_offset)
    aborted_producers: set[int] = set()
    position = start_offset
    for header in headers:
        if header.last_offset < position or header.base_offset >= end_offset:
            continue
        if aborted is not None and header.producer_id >= 0:
            while pending and pending[0].first_offset <= header.last_offset:
                aborted_producers.add(pending.pop(0).producer_id)
            if header.attributes & CONTROL and header.control_type == _ABORT:
                aborted_producers.discard(header.producer_id)
            elif header.attributes & TRANSACTIONAL and header.producer_id in aborted_producers:
                position = header.last_offset + 1
                continue
        for record in decode_any(data[header.position : header.position + header.size]):
            if position <= record.offset < end_offset and not header.attributes & CONTROL:
                position = record.offset + 1
                yield record
        position = header.last_offset + 1
