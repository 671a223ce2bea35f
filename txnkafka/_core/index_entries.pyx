"""Computes the entries of the two sparse indexes of a segment for many batches at once, like
``LogSegment.note`` for a single batch.

Source: ``LogSegment.append``, ``OffsetIndex``, ``TimeIndex``.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, int64_t, uint8_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.bytes cimport load_i32, load_i64, store_i32, store_i64
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
    int64_t last_entry,
):
    """Return the new entries as stored, and the state after these batches: (offset index, time index, bytes
    since entry, max timestamp, its offset).

    ``bytes_since_entry`` counts from the last batch with an entry to the first of these, ``newest_entry`` is
    the last timestamp of the time index, -1 when it is empty, ``last_entry`` the last offset of the offset
    index: a batch that is there twice has one entry. Raises OverflowError for a batch whose last offset is
    below the segment's base or too far above it, also for one without an entry.
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
        # no overflow: no base is negative
        if e.last_offset < base_offset or e.last_offset - base_offset > INT32_MAX or e.position > INT32_MAX:
            raise OverflowError(f"offset {e.last_offset} at {e.position} has no place in an index")
        if e.max_timestamp > max_timestamp:
            max_timestamp, max_timestamp_offset = e.max_timestamp, e.last_offset
        if bytes_since_entry > interval_bytes and e.last_offset > last_entry:
            last_entry = e.last_offset
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


def count_not_above(entries, *, Py_ssize_t count, Py_ssize_t entry_size, int64_t value, bint second=False):
    """Count the entries, among the first ``count`` of an index, whose first field (or ``second`` field) is at
    most ``value``; they must be sorted by it. Entries of 8 bytes have two fields of 4, those of 12 bytes one
    of 8 and one of 4. Raises ValueError when ``entries`` has fewer than ``count``."""
    cdef Py_buffer view
    check_entry_size(entry_size)
    PyObject_GetBuffer(entries, &view, PyBUF_SIMPLE)
    try:
        check_count(&view, count, entry_size)
        return not_above(<const uint8_t*>view.buf, count, entry_size, value, second)
    finally:
        PyBuffer_Release(&view)


def last_not_above(entries, *, Py_ssize_t count, Py_ssize_t entry_size, int64_t value):
    """Return both fields of the last entry whose first field is at most ``value``; None when there is none.
    Parameters and errors are those of ``count_not_above``."""
    cdef Py_buffer view
    cdef const uint8_t* p
    cdef Py_ssize_t found
    check_entry_size(entry_size)
    PyObject_GetBuffer(entries, &view, PyBUF_SIMPLE)
    try:
        check_count(&view, count, entry_size)
        found = not_above(<const uint8_t*>view.buf, count, entry_size, value, False)
        if found == 0:
            return None
        p = <const uint8_t*>view.buf + (found - 1) * entry_size
        return load_i32(p) if entry_size == OFFSET_ENTRY else load_i64(p), load_i32(p + entry_size - 4)
    finally:
        PyBuffer_Release(&view)


cdef int check_entry_size(Py_ssize_t entry_size) except -1:
    if entry_size != OFFSET_ENTRY and entry_size != TIME_ENTRY:
        raise ValueError(f"no index has entries of {entry_size} bytes")
    return 0


cdef int check_count(const Py_buffer* view, Py_ssize_t count, Py_ssize_t entry_size) except -1:
    if count < 0 or count > view.len // entry_size:
        raise ValueError(f"{view.len} bytes are not {count} entries")
    return 0


cdef Py_ssize_t not_above(
    const uint8_t* entries, Py_ssize_t count, Py_ssize_t entry_size, int64_t value, bint second
) noexcept nogil:
    cdef Py_ssize_t low = 0, high = count, middle
    cdef const uint8_t* p
    cdef bint is_long = entry_size == TIME_ENTRY and not second
    if second:
        entries += entry_size - 4
    while low < high:
        middle = (low + high) // 2
        p = entries + middle * entry_size
        if (load_i64(p) if is_long else load_i32(p)) <= value:
            low = middle + 1
        else:
            high = middle
    return low
