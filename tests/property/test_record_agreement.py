"""The compiled reader and the independent one agree: on batches, on records, on refusals and their positions.

Batches have random values in all header fields; then bytes of their records are changed and the CRC is
corrected, so that only the walk over the records can detect the damage. Offsets grow from batch to batch:
their order is not checked by decoding.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.models.builder import Batch, PlainRecord, compress, encode_record, legacy_entry, legacy_wrapper
from tests.models.fetch_filter import decode_any, scan_log
from tests.models.record_batch import InvalidBatchError
from txnkafka._core.scan import scan
from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

WHOLE = 1
Outcome = tuple[list[tuple[Any, ...]], int | None]

small = st.integers(-100, 10_000)
blob = st.none() | st.binary(max_size=40) | st.binary(min_size=120, max_size=300)
header = st.tuples(
    st.text(max_size=5).map(str.encode) | st.binary(max_size=3), st.none() | st.binary(max_size=9)
)
plain_records = st.builds(
    PlainRecord,
    key=blob,
    value=blob,
    timestamp=st.one_of(small, st.integers(-(2**63), 2**63 - 1)),
    headers=st.lists(header, max_size=3),
)
changes = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3)


def with_changes(content: bytes, changed: list[tuple[int, int]]) -> bytes:
    edited = bytearray(content)
    for position, byte in changed:
        if edited:
            edited[position % len(edited)] = byte
    return bytes(edited)


@st.composite
def batch_at(draw: st.DrawFn, offset: int) -> bytes:
    records = draw(st.lists(plain_records, min_size=1, max_size=5))
    codec = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4]))
    encoded = [encode_record(each, base_timestamp=7, offset_delta=2 * i) for i, each in enumerate(records)]
    batch = Batch(
        payload=compress(codec, with_changes(b"".join(encoded), draw(changes))),
        base_offset=offset,
        partition_leader_epoch=draw(st.integers(-1, 9)),
        codec=codec,
        log_append_time=draw(st.none() | small),
        transactional=draw(st.booleans()),
        control=draw(st.booleans()),
        delete_horizon=draw(st.none() | small),
        producer_id=draw(st.integers(-1, 5)),
        base_sequence=draw(st.integers(-1, 5)),
        last_offset_delta=draw(st.integers(0, 12)),
        base_timestamp=draw(st.just(7) | st.integers(-(2**63), 2**63 - 1)),
        max_timestamp=draw(small),
        count=len(records),
    )
    return batch.encode()


@st.composite
def legacy_at(draw: st.DrawFn, offset: int) -> bytes:
    magic, codec = draw(st.sampled_from([0, 1])), draw(st.sampled_from([0, 1, 2, 3]))
    count = draw(st.integers(1, 4))
    attributes = draw(st.sampled_from([0, 8])) if magic == 1 else 0
    entries = [
        legacy_entry(
            i if magic == 1 and codec else offset + i,
            draw(blob),
            draw(blob),
            magic=magic,
            timestamp=draw(small),
            attributes=0 if codec else attributes,
        )
        for i in range(count)
    ]
    if codec == 0:
        return b"".join(entries)
    return legacy_wrapper(
        entries, offset + count - 1, codec=codec, magic=magic, timestamp=5, log_append_time=attributes > 0
    )


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    offset = draw(st.sampled_from([1, 2**31, 2**62]))
    numbers = range(draw(st.integers(0, 5)))
    return b"".join(draw(batch_at(offset + 1000 * i) | legacy_at(offset + 1000 * i)) for i in numbers)


def compiled(log: bytes, *, chunk_bytes: int) -> Outcome:
    """Return all records before the first damaged batch, and the position of that batch."""
    index, source, records = scan(log), memoryview(log), []
    selected = SelectedBatches(
        lambda at, size: source[at : at + size], index, bytearray([WHOLE]) * len(index)
    )
    try:
        for columns in ChunkDecoder(headers=True, chunk_bytes=chunk_bytes).chunks(selected):
            records.extend(tuple(record) for record in records_of(columns))
    except CorruptRecordError as error:
        return records, error.position
    return records, None


def modelled(log: bytes) -> Outcome:
    records: list[tuple[Any, ...]] = []
    for found in scan_log(log)[0]:
        try:
            records.extend(map(tuple, decode_any(log[found.position : found.position + found.size])))
        except InvalidBatchError:
            return records, found.position
    return records, None


@given(logs(), st.sampled_from([1, 200, 1 << 20]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_same_records_and_same_refusals(log: bytes, chunk_bytes: int) -> None:
    assert compiled(log, chunk_bytes=chunk_bytes) == modelled(log)


@given(logs(), changes, st.integers(0, 400), st.binary(max_size=30))
@settings(max_examples=EXAMPLES, deadline=None)
def test_same_batches_and_same_end(log: bytes, changed: list[tuple[int, int]], cut: int, tail: bytes) -> None:
    log = with_changes(log, changed)
    log = log[: max(0, len(log) - cut)] + tail
    index = scan(log)
    headers, stop, end = scan_log(log)
    assert [tuple(index[i]) for i in range(len(index))] == [tuple(each) for each in headers]
    assert (index.stop, index.end_position) == (stop, end)
