"""The compiled encoder writes the same bytes as the model, the reader returns the input, and a change in
place gives the same bytes as encoding the changed batch."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.models.builder import Batch, PlainRecord
from tests.models.columns import columns_of
from tests.models.record_batch import Record, decode_batch
from txnkafka._core.encode import assign, encode_batch, replace_payload, set_max_timestamp, set_producer
from txnkafka._core.record_input import InputColumns
from txnkafka.record.builder import build_batch
from txnkafka.record.compression import CompressionType

I32, I64 = 2**31 - 1, 2**63 - 1
small_times = st.integers(1_700_000_000_000, 1_700_000_000_200)
times = small_times | st.integers(-1, 20) | st.integers(-1, I64)
sizes = st.integers(0, 200) | st.sampled_from([63, 64, 127, 128, 2047, 2048, 4100])
blobs = st.binary(max_size=40) | sizes.map(lambda size: bytes(i * 7 & 255 for i in range(size)))
maybe = st.none() | blobs
header = st.tuples(st.text(max_size=9).map(str.encode), st.none() | st.binary(max_size=140))
rich = st.builds(
    PlainRecord,
    key=maybe,
    value=maybe,
    timestamp=times,
    headers=st.just([]) | st.lists(header, max_size=4),
    offset_delta=st.none(),
)
plain = st.builds(
    PlainRecord,
    key=st.binary(max_size=70),
    value=blobs,
    timestamp=small_times,
    headers=st.just([]),
    offset_delta=st.none(),
)
rows = st.lists(rich, min_size=1, max_size=9) | st.lists(plain, min_size=1, max_size=25)
fields = st.fixed_dictionaries(
    {
        "base_offset": st.sampled_from([0, 5, I64 - 10_000]),
        "partition_leader_epoch": st.integers(-1, I32),
        "transactional": st.booleans(),
        "control": st.booleans(),
        "producer_id": st.integers(0, I64),
        "producer_epoch": st.integers(0, 2**15 - 1),
        "base_sequence": st.integers(0, I32),
        "log_append_time": st.none() | times,
        "delete_horizon": st.none() | times,
    }
)


def as_tuples(records: list[PlainRecord]) -> list[Any]:
    """Convert to tuples, with and without headers; header names become text where they can."""
    return [
        (each.key, each.value, each.timestamp, [(name.decode(), value) for name, value in each.headers])
        if each.headers
        else (each.key, each.value, each.timestamp)
        for each in records
    ]


@given(rows, fields)
def test_tuples_are_written_as_the_model_writes_them(
    records: list[PlainRecord], header: dict[str, Any]
) -> None:
    assert encode_batch(as_tuples(records), **header) == Batch(records=records, **header).encode()


@given(rows, fields, st.sampled_from("iq"), st.sampled_from([b"", b"x" * 7, b"y" * 300]))
def test_columns_are_written_as_the_model_writes_them(
    records: list[PlainRecord], header: dict[str, Any], typecode: str, junk: bytes
) -> None:
    columns = InputColumns(**columns_of(records, typecode=typecode, junk=junk))
    assert encode_batch(columns, **header) == Batch(records=records, **header).encode()


@given(rows, st.data())
def test_a_part_of_the_columns_is_the_batch_of_that_part(
    records: list[PlainRecord], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(records) - 1))
    stop = data.draw(st.integers(start + 1, len(records)))
    expected = Batch(records=records[start:stop]).encode()
    assert encode_batch(InputColumns(**columns_of(records)), start=start, stop=stop) == expected
    assert encode_batch(as_tuples(records), start=start, stop=stop) == expected


@given(rows, st.lists(st.integers(1, 100_000), min_size=25, max_size=25), st.integers(0, 9))
def test_gaps_between_offsets_are_kept(records: list[PlainRecord], steps: list[int], behind: int) -> None:
    deltas = [sum(steps[:i]) for i in range(len(records))]
    expected = Batch(
        records=[each._replace(offset_delta=delta) for each, delta in zip(records, deltas, strict=True)],
        base_offset=100,
        last_offset_delta=deltas[-1] + behind,
    )
    columns = InputColumns(**columns_of(records, offsets=[100 + delta for delta in deltas]))
    last_offset = 100 + deltas[-1] + behind if behind else None
    assert encode_batch(columns, base_offset=100, last_offset=last_offset) == expected.encode()


@given(rows, fields, st.sampled_from(list(CompressionType)))
def test_the_reader_gives_back_what_was_built(
    records: list[PlainRecord], header: dict[str, Any], codec: CompressionType
) -> None:
    fields = {**header, "delete_horizon": None}
    append_time, epoch = fields["log_append_time"], fields["partition_leader_epoch"]
    batch = build_batch(as_tuples(records), compression=codec, **fields)
    assert decode_batch(bytes(batch)) == [
        Record(
            fields["base_offset"] + i,
            each.timestamp if append_time is None else append_time,
            0 if append_time is None else 1,
            each.key,
            each.value,
            [(name.decode(), value) for name, value in each.headers],
            None if epoch < 0 else epoch,
        )
        for i, each in enumerate(records)
    ]


@given(rows, fields, fields, st.binary(max_size=9), st.binary(max_size=9))
def test_changes_in_place_are_what_would_have_been_written(
    records: list[PlainRecord], old: dict[str, Any], new: dict[str, Any], before: bytes, behind: bytes
) -> None:
    new = {**new, "control": old["control"], "delete_horizon": old["delete_horizon"]}
    log = bytearray(before + Batch(records=records, **old).encode() + behind)
    at = len(before)
    assign(log, at, base_offset=new["base_offset"], partition_leader_epoch=new["partition_leader_epoch"])
    producer = {name: new[name] for name in ("producer_id", "producer_epoch", "base_sequence")}
    set_producer(log, at, transactional=new["transactional"], **producer)
    largest = max(record.timestamp for record in records)
    append_time = new["log_append_time"]
    set_max_timestamp(
        log,
        at,
        timestamp_type=0 if append_time is None else 1,
        max_timestamp=largest if append_time is None else append_time,
    )
    assert log == before + Batch(records=records, **new).encode() + behind


@given(rows, st.integers(0, 4), st.binary(max_size=200))
def test_a_replaced_payload_stands_behind_the_same_header(
    records: list[PlainRecord], codec: int, payload: bytes
) -> None:
    batch = Batch(records=records, more_attributes=4).encode()
    expected = Batch(records=records, codec=codec, payload=payload).encode()
    assert replace_payload(batch, payload, codec=codec) == expected
