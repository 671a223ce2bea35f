"""Finds runs of selected batches that can be decoded in one call: of one kind and small enough."""
from libc.stdint cimport int64_t, uint8_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.batch_header cimport ATTRIBUTE_CODEC, MAGIC_2
from txnkafka._core.read_committed cimport SKIP
from txnkafka._core.scan cimport BatchIndex, IndexHold

cdef enum:
    EXPANSION = 4                   # a compressed byte counts as this many, about its decompressed size


def next_run(
    BatchIndex index not None,
    const uint8_t[::1] selection not None,
    Py_ssize_t start,
    Py_ssize_t stop,
    int64_t max_bytes,
):
    """Return (first, end, kind) of the next selected batches that can be decoded in one call, within
    ``start`` to ``stop``.

    Kind 0: uncompressed, for ``decode_batches``; 1: compressed, for ``decode_regions``; 2: magic 0 or 1.
    The run has at most ``max_bytes`` of selected batches, or a quarter of that in compressed ones, but at
    least one batch; (stop, stop, 0) when no more batch is selected.
    """
    cdef IndexHold _held = index.hold()
    cdef Py_ssize_t i = start, first = -1
    cdef int kind = 0
    cdef int64_t size = 0
    if not 0 <= start <= stop <= index.count:
        raise IndexError(f"batches {start} to {stop} of {index.count}")
    if selection.shape[0] < stop:
        raise ValueError(f"the selection covers {selection.shape[0]} batches, not {stop}")
    while i < stop:
        if selection[i] != SKIP:
            if first < 0:
                first = i
                kind = run_kind(&index.entries[i])
                if kind == 1:
                    max_bytes //= EXPANSION
            elif run_kind(&index.entries[i]) != kind or size + index.entries[i].size > max_bytes:
                break
            elif index.entries[i].position - index.entries[first].position > 4 * max_bytes:
                break               # too many unselected bytes in between
            size += index.entries[i].size
        i += 1
    if first < 0:
        return stop, stop, 0
    return first, i, kind


cdef int run_kind(BatchEntry* e) noexcept nogil:
    if e.magic < MAGIC_2:
        return 2
    return 1 if e.magic == MAGIC_2 and e.attributes & ATTRIBUTE_CODEC else 0
