"""Copies the records that a mask selects from one set of columns to another.

The target has the form of the source (copies or views, with or without headers). Positions of views are
copied as they are: they refer to the decoded bytes of the source.
"""
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from txnkafka._core.atomic cimport drop
from txnkafka._core.columns cimport RecordColumns, clear_validity, record_sink


def filter_records(
    RecordColumns source not None, const uint8_t[::1] mask not None, RecordColumns target not None
):
    """Replace the records in ``target`` by those of ``source`` whose byte in ``mask`` is not 0.

    Raises ValueError for a mask or a target that does not fit, and BufferError while a column of ``target``
    is in use."""
    cdef Sizes sizes
    cdef const uint8_t[::1] chosen = bytes(mask)  # a copy, which cannot change between the two passes
    if source is target or source.views != target.views or source.with_headers != target.with_headers:
        raise ValueError("the target must be other columns of the same form")
    target.reset()
    source.hold()
    try:
        if chosen.shape[0] != <Py_ssize_t>source.sink.count:
            raise ValueError(f"a mask of {chosen.shape[0]} bytes for {source.sink.count} records")
        target.acquire()
        try:
            sizes = sizes_of(&source.sink, chosen, source.views, source.with_headers)
            target.reserve(sizes.records, data_bytes(sizes), source.runs.count)
            with nogil:
                copy_runs(source, chosen, target)
        finally:
            target.release()
    finally:
        drop(&source.users)


cdef struct Sizes:                  # of the selected records
    Py_ssize_t records
    Py_ssize_t headers
    Py_ssize_t key_bytes
    Py_ssize_t value_bytes
    Py_ssize_t header_key_bytes
    Py_ssize_t header_value_bytes


cdef Sizes sizes_of(
    const record_sink* source, const uint8_t[::1] mask, bint views, bint headers
) noexcept nogil:
    cdef Sizes sizes = Sizes(0, 0, 0, 0, 0, 0)
    cdef Py_ssize_t i
    cdef int32_t first, end
    for i in range(mask.shape[0]):
        if mask[i]:
            sizes.records += 1
            if not views:
                sizes.key_bytes += source.key_offsets[i + 1] - source.key_offsets[i]
                sizes.value_bytes += source.value_offsets[i + 1] - source.value_offsets[i]
            if headers:
                first, end = source.header_offsets[i], source.header_offsets[i + 1]
                sizes.headers += end - first
                sizes.header_key_bytes += source.header_key_offsets[end] - source.header_key_offsets[first]
                sizes.header_value_bytes += (
                    source.header_value_offsets[end] - source.header_value_offsets[first]
                )
    return sizes


cdef Py_ssize_t data_bytes(Sizes sizes) noexcept:
    """Return the number of bytes for which ``reserve`` makes room for all data and headers."""
    cdef Py_ssize_t header_bytes = max(sizes.header_key_bytes, sizes.header_value_bytes)
    return max(max(sizes.key_bytes, sizes.value_bytes), max(header_bytes, 2 * sizes.headers))


cdef void copy_runs(RecordColumns source, const uint8_t[::1] mask, RecordColumns target) noexcept nogil:
    cdef Py_ssize_t run, i = 0
    for run in range(source.runs.count):
        while i < source.runs.ends[run]:
            if mask[i]:
                copy_record(&source.sink, i, &target.sink, source.views, source.with_headers)
            i += 1
        target.end_run(source.runs.leader_epochs[run], source.runs.timestamp_types[run])


cdef inline void copy_record(const record_sink* source, Py_ssize_t i, record_sink* target, bint views,
                             bint headers) noexcept nogil:
    cdef size_t n = target.count
    cdef int32_t h
    target.offsets[n] = source.offsets[i]
    target.timestamps[n] = source.timestamps[i]
    if views:
        target.key_positions[n] = source.key_positions[i]
        target.key_lengths[n] = source.key_lengths[i]
        target.value_positions[n] = source.value_positions[i]
        target.value_lengths[n] = source.value_lengths[i]
    else:
        copy_bytes(source.key_data, source.key_offsets, i, target.key_data, target.key_offsets, n)
        copy_bytes(source.value_data, source.value_offsets, i, target.value_data, target.value_offsets, n)
        if is_null(source.key_validity, source.key_nulls, i):
            clear_validity(target.key_validity, target.record_capacity, &target.key_nulls, n)
        if is_null(source.value_validity, source.value_nulls, i):
            clear_validity(target.value_validity, target.record_capacity, &target.value_nulls, n)
    if headers:
        for h in range(source.header_offsets[i], source.header_offsets[i + 1]):
            copy_header(source, h, target)
        target.header_offsets[n + 1] = <int32_t>target.header_count
    target.count = n + 1


cdef inline void copy_header(const record_sink* source, Py_ssize_t h, record_sink* target) noexcept nogil:
    cdef size_t n = target.header_count
    copy_bytes(source.header_key_data, source.header_key_offsets, h,
               target.header_key_data, target.header_key_offsets, n)
    copy_bytes(source.header_value_data, source.header_value_offsets, h,
               target.header_value_data, target.header_value_offsets, n)
    if is_null(source.header_value_validity, source.header_value_nulls, h):
        clear_validity(target.header_value_validity, target.header_capacity, &target.header_value_nulls, n)
    target.header_count = n + 1


cdef inline void copy_bytes(const uint8_t* data, const int32_t* offsets, Py_ssize_t i,
                            uint8_t* target, int32_t* target_offsets, size_t n) noexcept nogil:
    cdef int32_t size = offsets[i + 1] - offsets[i]
    memcpy(target + target_offsets[n], data + offsets[i], <size_t>size)
    target_offsets[n + 1] = target_offsets[n] + size


cdef inline bint is_null(const uint8_t* validity, size_t nulls, Py_ssize_t i) noexcept nogil:
    return nulls != 0 and not validity[i >> 3] >> (i & 7) & 1
