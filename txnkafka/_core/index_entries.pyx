"""Entries of the two sparse indexes of a segment for many batches at once: what ``LogSegment.note`` does for
one of them.

Source: ``LogSegment.append``, ``OffsetIndex``, ``TimeIndex``.
"""
from libc.stdint cimport INT32_MAX, int64_t, uint8_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.bytes cimport store_i32, store_i64
from txnkafka._core.scan cimport BatchIndex, IndexHold

cdef enum:
    OFFSET_ENTRY = 8
    TIME_ENTRY = 12


def index_entries(
    BatchIndex batches not None,
    *,
    int64_t base_offset,
    int64_t interval_bytes,
    int64_t bytes_since_entry,
    int64_t max_timestamp,
    int64_t max_timestamp_offset,
    int64_t newest_entry,
):
    """The new entries, as the files have them, and what to go on with behind these batches:
    (offset index, time index, bytes since entry, max timestamp, its offset).

    ``bytes_since_entry`` of log lie between the last batch with an entry and the first of these,
    ``newest_entry`` is the last timestamp of the time index, -1 when it is empty. Raises OverflowError for a
    batch whose last offset lies below the segment's base or too far above it, with an entry or without.
    """
    cdef IndexHold _held = batches.hold()
    cdef bytearray offsets = bytearray(batches.count * OFFSET_ENTRY)
    cdef bytearray times = bytearray(batches.count * TIME_ENTRY)
    cdef uint8_t* o = <uint8_t*><char*>offsets
    cdef uint8_t* t = <uint8_t*><char*>times
    cdef BatchEntry* e
    cdef Py_ssize_t i, offset_count = 0, time_count = 0
    for i in range(batches.count):
        e = &batches.entries[i]
        if (
            e.last_offset < base_offset
            or e.last_offset - base_offset > INT32_MAX      # no overflow: no base is negative
            or e.position > INT32_MAX
        ):
            raise OverflowError(f"offset {e.last_offset} at {e.position} has no place in an index")
        if e.max_timestamp > max_timestamp:
            max_timestamp, max_timestamp_offset = e.max_timestamp, e.last_offset
        if bytes_since_entry > interval_bytes:
            store_i32(o + offset_count * OFFSET_ENTRY, <int>(e.last_offset - base_offset))
            store_i32(o + offset_count * OFFSET_ENTRY + 4, <int>e.position)
            offset_count += 1
            if max_timestamp > newest_entry:
                store_i64(t + time_count * TIME_ENTRY, max_timestamp)
                store_i32(t + time_count * TIME_ENTRY + 8, <int>(max_timestamp_offset - base_offset))
                time_count += 1
                newest_entry = max_timestamp
            bytes_since_entry = 0
        bytes_since_entry += e.size
    del offsets[offset_count * OFFSET_ENTRY :]
    del times[time_count * TIME_ENTRY :]
    return offsets, times, bytes_since_entry, max_timestamp, max_timestamp_offset
