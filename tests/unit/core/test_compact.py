"""The compiled part of compaction, compared with the model's reader and a plain dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.record_batch import Record, decode_batch, read_header
from txnkafka._core.compact import note_keys, survivors
from txnkafka._core.encode import encode_batch, set_max_timestamp
from txnkafka._core.offset_map import OffsetMap
from txnkafka.errors import CorruptRecordError

if TYPE_CHECKING:
    from txnkafka._core.record_input import InputRecord

NOW = 1_700_000_000_000
LIKELY = [b"", b"a", b"\0", b"\0\0", b"k" * 31, b"k" * 32, b"k" * 33]
keys = st.one_of(st.none(), st.sampled_from(LIKELY), st.binary())
headers = st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2)
times = st.integers(NOW - 10**9, NOW + 10**9)
batches = st.lists(st.tuples(keys, st.one_of(st.none(), st.binary(max_size=80)), times, headers), min_size=1)


def halves(batch: bytes | bytearray) -> tuple[memoryview, memoryview]:
    view = memoryview(batch)
    return view[:61], view[61:]


def survive(record: Record, last: dict[bytes, int], latest: int, *, keep_tombstones: bool) -> bool:
    if record.offset > latest:
        return True
    if record.key is None or record.offset < last.get(record.key, -1):
        return False
    return keep_tombstones or record.value is not None


@given(st.lists(batches, min_size=1, max_size=4), st.data(), st.booleans(), st.booleans())
def test_the_last_record_of_each_key_survives(
    lists: list[list[InputRecord]], draw: st.DataObject, keep_tombstones: bool, append_time: bool
) -> None:
    encoded, base = [], 7
    for each in lists:
        batch = encode_batch(each, base_offset=base, producer_id=3, producer_epoch=1, base_sequence=base)
        if append_time:
            set_max_timestamp(batch, timestamp_type=1, max_timestamp=NOW + 17)
        encoded.append(batch)
        base += len(each) + 2
    looked_at = draw.draw(st.integers(0, len(lists)))
    found, last = OffsetMap(1 << 16), {}
    for batch in encoded[:looked_at]:
        assert note_keys(found, *halves(batch))
        last.update({each.key: each.offset for each in decode_batch(bytes(batch)) if each.key is not None})
        found.latest_offset = read_header(bytes(batch), 0).last_offset
    assert len(found) == len(last)
    horizon = draw.draw(st.one_of(st.none(), st.just(NOW + 5)))
    for batch in encoded:
        before = decode_batch(bytes(batch))
        kept = [r for r in before if survive(r, last, found.latest_offset, keep_tombstones=keep_tombstones)]
        chosen = survivors(*halves(batch), found, keep_tombstones=keep_tombstones)
        assert (chosen.kept, chosen.dropped) == (len(kept), len(before) - len(kept))
        assert chosen.has_tombstone == any(record.value is None for record in kept)
        if kept:
            assert (chosen.first_offset, chosen.last_offset) == (kept[0].offset, kept[-1].offset)
            built = bytes(chosen.build(delete_horizon=horizon))
            assert decode_batch(built) == kept
            check_header(bytes(batch), built, kept, horizon, append_time=append_time)


def check_header(
    batch: bytes, built: bytes, kept: list[Record], horizon: int | None, *, append_time: bool
) -> None:
    old, new = read_header(batch, 0), read_header(built, 0)
    assert new.base_timestamp == (kept[0].timestamp if horizon is None else horizon)
    assert new.max_timestamp == (old.max_timestamp if append_time else max(each.timestamp for each in kept))
    assert new.attributes == old.attributes | (0 if horizon is None else 0x40)
    changed = {"size", "count", "base_timestamp", "max_timestamp", "attributes", "crc"}
    for name, before, after in zip(old._fields, old, new, strict=True):
        assert name in changed or before == after, name


def test_what_all_survive_is_what_the_encoder_writes() -> None:
    batch = encode_batch([(b"a", b"x", NOW), (None, None, NOW - 3, [("h", None)])], base_offset=9)
    assert survivors(*halves(batch)).build() == batch


def test_a_batch_may_begin_and_end_elsewhere() -> None:
    """A magic 2 batch that replaces one of magic 1 has its offsets."""
    batch = encode_batch([(b"a", b"x", NOW), (b"b", b"x", NOW), (b"a", b"y", NOW)], base_offset=9)
    found = OffsetMap(1000)
    found.put(b"a", 99)
    found.latest_offset = 99
    chosen = survivors(*halves(batch), found)
    built = chosen.build(base_offset=chosen.first_offset, last_offset=chosen.last_offset)
    header = read_header(bytes(built), 0)
    assert (header.base_offset, header.last_offset) == (10, 10)
    assert [record.offset for record in decode_batch(bytes(built))] == [10]


RECORD = b"\x0e\0\0\0\1\1"


@pytest.mark.parametrize("damage", [b"", b"\x7f", RECORD, RECORD + b"\0" + RECORD + b"\0!"])
def test_records_that_do_not_hold_are_refused(damage: bytes) -> None:
    batch = encode_batch([(None, None, NOW), (None, None, NOW)])
    header, _ = halves(batch)
    for ask in (lambda: note_keys(OffsetMap(1000), header, damage), lambda: survivors(header, damage)):
        with pytest.raises(CorruptRecordError):
            ask()
    with pytest.raises(ValueError, match="61 bytes"):
        survivors(header[:60], damage)


PUTS = st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 2**62)), max_size=400)


@given(PUTS, st.integers(80, 9000))
def test_a_map_is_a_dictionary_with_an_end(puts: list[tuple[bytes, int]], memory: int) -> None:
    found, model = OffsetMap(memory), dict[bytes, int]()
    most = min(max(int(memory // 40 * 0.9), 1), memory // 40 - 1)
    assert found.capacity == most
    for key, offset in puts:
        fits = key in model or len(model) < most
        assert found.put(key, offset) == fits
        if fits:
            model[key] = offset
        assert found.get(key) == model.get(key, -1)
    assert len(found) == len(model)
    assert all(found.get(key) == offset for key, offset in model.items())


def test_memory_is_taken_as_keys_come() -> None:
    found = OffsetMap(1 << 30)
    assert found.__sizeof__() < 50_000
    for number in range(10_000):
        found.put(b"%d" % number, number)
    assert found.__sizeof__() < 1_000_000
    assert all(found.get(b"%d" % number) == number for number in range(10_000))


def test_a_key_too_many_ends_the_batch() -> None:
    batch = encode_batch([(key, b"x", NOW) for key in (b"a", b"b", b"a", b"c", b"d")], base_offset=5)
    found = OffsetMap(3 * 40)
    assert not note_keys(found, *halves(batch))
    assert (found.latest_offset, found.get(b"a"), found.get(b"b"), found.get(b"c")) == (7, 7, 6, -1)


@pytest.mark.parametrize(("memory", "factor"), [(79, 0.9), (1000, 0), (1000, 1.5)])
def test_a_map_without_room_is_refused(memory: int, factor: float) -> None:
    with pytest.raises(ValueError, match="dedupe"):
        OffsetMap(memory, factor)
    with pytest.raises(ValueError, match="no offset"):
        OffsetMap(1000).put(b"a", -1)
