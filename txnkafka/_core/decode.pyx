"""Decodes magic 2 batches into columns: CRC, then one walk over the records, for a whole chunk of batches
with the GIL released.

Batches come from a BatchIndex, and the treatment of each from a selection by ``read_committed.select``:
SKIP, WHOLE or BOUNDED (only records inside the wanted offsets). Records are either in the segment itself
(``decode_batches``) or, for compressed batches, in a buffer into which the caller has decompressed them
(``decode_regions``); the walk is the same (``record.h``).

A batch is delivered whole or not at all. When a batch is damaged, the batches before it are delivered and
the call returns; the next call begins with the damaged one and raises CorruptRecordError with its position.
"""
from array import array

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from txnkafka._core.batch_entry cimport BatchEntry, batch_crc
from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    MAGIC_2,
    UNKNOWN_MAGIC,
)
from txnkafka._core.columns cimport RecordColumns, record_sink
from txnkafka._core.crc32c cimport crc_initialize
from txnkafka._core.record cimport (
    MIN_RECORD_SIZE,
    RECORD_COUNT,
    RECORD_FIELD,
    RECORD_HEADER_KEY,
    RECORD_HEADERS,
    RECORD_LENGTH,
    RECORD_MANY_HEADERS,
    RECORD_OK,
    RECORD_SIZE,
    RECORD_TRAILING,
)
from txnkafka._core.read_committed cimport BOUNDED, SKIP
from txnkafka._core.scan cimport BatchIndex, IndexHold

from txnkafka.bounds import MAX_RECORD_HEADERS
from txnkafka.errors import CorruptRecordError

cdef extern from "record.h" nogil:
    ctypedef struct record_batch "struct record_batch":
        const uint8_t* records
        const uint8_t* end
        const uint8_t* source
        const uint8_t* limit
        int64_t base_offset
        int64_t base_timestamp
        int64_t append_time
        int has_append_time
        int32_t count
        Py_ssize_t ahead
        int64_t start_offset
        int64_t end_offset

    ctypedef struct record_cut "struct record_cut":
        Py_ssize_t size
        int32_t count

    int cut_records(const record_batch* batch, Py_ssize_t piece, int32_t max_headers, record_cut* cuts,
                    size_t* cut_count)
    int walk_batch(const record_batch* batch, record_sink* sink, int views, int headers, int bounded)

crc_initialize()

cdef enum:
    LARGE_BATCH = 32 << 10          # larger batches are prefetched in pieces during their walk
    PIECE = 4 << 10                 # instead of during the decoding of the previous one

cdef enum:
    # additional to the reasons in record.h
    BAD_CRC = 100
    WRONG_MAGIC = 101
    OUTSIDE = 102
    NOT_PLAIN = 103

_REASONS = {
    RECORD_LENGTH: "a record's length is negative or reaches past the end of its batch",
    RECORD_FIELD: "a field of a record does not fit into the record",
    RECORD_HEADERS: "a record's header count is negative or larger than the record",
    RECORD_HEADER_KEY: "a header key has a negative length",
    RECORD_SIZE: "a record is longer than its fields",
    RECORD_COUNT: "the batch holds fewer records than its header says",
    RECORD_TRAILING: "bytes are left after the last record of the batch",
    RECORD_MANY_HEADERS: f"a record has more than {MAX_RECORD_HEADERS} headers, the most that are decoded",
    BAD_CRC: "the CRC of the batch does not match its bytes",
    WRONG_MAGIC: "the magic byte of the batch is not 0, 1 or 2",
    OUTSIDE: "the batch lies outside the bytes at hand",
    NOT_PLAIN: "the batch is compressed or of an old format, and its records were not prepared",
}


cdef struct Chunk:
    # the state of one call
    const uint8_t* source
    int64_t length
    int64_t position                # of source[0] in the file
    const uint8_t* selection
    int64_t start_offset
    int64_t end_offset
    bint check_crc


def decode_batches(
    const uint8_t[::1] source not None,
    BatchIndex index not None,
    const uint8_t[::1] selection not None,
    Py_ssize_t start,
    Py_ssize_t stop,
    RecordColumns columns not None,
    *,
    int64_t position=0,
    int64_t start_offset=0,
    int64_t end_offset=0x7FFFFFFFFFFFFFFF,
    bint check_crc=True,
):
    """Decode the selected ones of batches ``start`` to ``stop`` out of ``source``, whose first byte is
    byte ``position`` of the file.

    They must be uncompressed and of magic 2. Returns the number of the batch to continue with, which is less
    than ``stop`` when a damaged batch comes next; raises CorruptRecordError when that is the first
    selected one.
    """
    cdef IndexHold _held = index.hold()
    cdef Chunk chunk
    cdef int error = RECORD_OK
    cdef Py_ssize_t i
    check_range(index, selection, start, stop)
    cdef bytes chosen = own_copy(selection, stop)
    open_chunk(&chunk, source, chosen, position, start_offset, end_offset, check_crc)
    columns.acquire()
    try:
        reserve_for(columns, index, chunk.selection, start, stop)
        with nogil:
            i = decode_run(&chunk, index.entries, start, stop, columns, &error)
    finally:
        columns.release()
    if error != RECORD_OK and nothing_selected(selection, start, i):
        raise corrupt(error, &index.entries[i])
    return i


def decode_regions(
    const uint8_t[::1] source not None,
    const int64_t[::1] regions not None,
    BatchIndex index not None,
    const uint8_t[::1] selection not None,
    Py_ssize_t start,
    Py_ssize_t stop,
    RecordColumns columns not None,
    *,
    int64_t start_offset=0,
    int64_t end_offset=0x7FFFFFFFFFFFFFFF,
):
    """Decode batches whose records were decompressed, like ``decode_batches``: those of batch ``start + k``
    are ``source[regions[2 * k]:regions[2 * k + 1]]``. The caller checks the CRCs (``check_crcs``)."""
    cdef IndexHold _held = index.hold()
    cdef Chunk chunk
    cdef int error = RECORD_OK
    cdef Py_ssize_t i, k, records = 0, runs = 0, data = 0
    cdef int64_t begin, end
    check_range(index, selection, start, stop)
    if regions.shape[0] < 2 * (stop - start):
        raise ValueError("decode_regions needs a begin and an end for each batch")
    cdef bytes chosen = own_copy(selection, stop)
    cdef bytes places = own_copy(regions, 2 * (stop - start))
    cdef const int64_t* first = <const int64_t*>PyBytes_AS_STRING(places)
    open_chunk(&chunk, source, chosen, 0, start_offset, end_offset, False)
    for k in range(stop - start):
        begin, end = first[2 * k], first[2 * k + 1]
        if chunk.selection[start + k] == SKIP:
            continue
        if not 0 <= begin <= end <= source.shape[0]:
            raise ValueError(f"region {begin}..{end} lies outside the {source.shape[0]} decompressed bytes")
        records += plausible_count(&index.entries[start + k], end - begin)
        data += end - begin
        runs += 1
    columns.acquire()
    try:
        columns.reserve(records, data, runs)
        with nogil:
            i = decode_regions_run(&chunk, first, index.entries, start, stop, columns, &error)
    finally:
        columns.release()
    if error != RECORD_OK and nothing_selected(selection, start, i):
        raise corrupt(error, &index.entries[i])
    return i


def divide_batch(
    const uint8_t[::1] source not None,
    BatchIndex index not None,
    Py_ssize_t i,
    Py_ssize_t piece_bytes,
    *,
    int64_t begin=-1,
    int64_t end=-1,
    int64_t position=0,
    int32_t max_headers=0x7FFFFFFF,
):
    """Check every record of batch ``i`` and divide the batch into pieces of about ``piece_bytes``.

    Its records are ``source[begin:end]``; without these it is uncompressed, its CRC is checked too, and
    ``source`` begins at byte ``position`` of the file. Returns (index, regions): an entry of the index is the
    batch with as many records as a piece has, and ``decode_regions`` decodes it from the region of the same
    number. Raises CorruptRecordError, also for a record with more than ``max_headers`` headers.
    """
    cdef BatchIndex pieces = BatchIndex()
    cdef Chunk chunk
    cdef BatchEntry* e
    cdef int error = RECORD_OK
    cdef IndexHold _held = index.hold()
    check_range(index, None, i, i + 1)
    e = &index.entries[i]
    open_chunk(&chunk, source, None, position, 0, 0, True)
    if begin < 0:
        error = check_batch(&chunk, e)
        begin = e.position - position + HEADER_SIZE
        end = e.position - position + e.size
    elif not begin <= end <= source.shape[0]:
        raise ValueError(f"region {begin}..{end} lies outside the {source.shape[0]} decompressed bytes")
    if error == RECORD_OK and e.count < 0:
        error = RECORD_COUNT
    if error != RECORD_OK:
        raise corrupt(error, e)
    if e.count == 0:
        return pieces, array("q")   # as in Kafka: the records of an empty batch are not read
    return pieces, cut_batch(&chunk, e, begin, end, max(piece_bytes, 1), max_headers, pieces)


cdef object cut_batch(Chunk* chunk, BatchEntry* e, int64_t begin, int64_t end, Py_ssize_t piece_bytes,
                      int32_t max_headers, BatchIndex pieces):
    cdef record_batch batch
    cdef size_t count = 0, k
    cdef int error
    cdef int32_t records = 0
    cdef record_cut* cuts = <record_cut*>malloc(((end - begin) // piece_bytes + 1) * sizeof(record_cut))
    if cuts == NULL:
        raise MemoryError("no memory for the pieces of a batch")
    try:
        memset(&batch, 0, sizeof(batch))
        batch.records, batch.end = chunk.source + begin, chunk.source + end
        batch.source, batch.limit, batch.count = chunk.source, chunk.source + chunk.length, e.count
        with nogil:
            error = cut_records(&batch, piece_bytes, max_headers, cuts, &count)
        if error != RECORD_OK:
            raise corrupt(error, e)
        pieces.room_for(<Py_ssize_t>count)
        regions = array("q")
        for k in range(count):
            pieces.entries[k] = e[0]
            pieces.entries[k].count = cuts[k].count - records
            pieces.count += 1
            regions.extend((begin + (cuts[k - 1].size if k else 0), begin + cuts[k].size))
            records = cuts[k].count
        return regions
    finally:
        free(cuts)


def check_crcs(
    const uint8_t[::1] source not None,
    BatchIndex index not None,
    Py_ssize_t start,
    Py_ssize_t stop,
    const uint8_t[::1] selection=None,
    *,
    int64_t position=0,
):
    """Return the number of the first batch of ``start`` to ``stop`` (of the selected ones, if a selection is
    given) whose CRC is wrong; ``stop`` when all are right. Batches of magic 0 and 1 are skipped."""
    cdef IndexHold _held = index.hold()
    cdef Chunk chunk
    cdef Py_ssize_t i
    check_range(index, selection, start, stop)
    cdef bytes chosen = None if selection is None else own_copy(selection, stop)
    open_chunk(&chunk, source, chosen, position, 0, 0, True)
    with nogil:
        i = start
        while i < stop:
            if (chunk.selection == NULL or chunk.selection[i] != SKIP) and index.entries[i].magic >= MAGIC_2:
                if check_batch(&chunk, &index.entries[i]) != RECORD_OK:
                    break
            i += 1
    return i


def corrupt_batch(BatchIndex index not None, Py_ssize_t i, str reason=None):
    """Return the CorruptRecordError for batch ``i``; without a reason, the one for a CRC mismatch. Raises
    IndexError when the index has no such batch."""
    cdef IndexHold _held = index.hold()
    if not 0 <= i < index.count:
        raise IndexError(f"batch {i} of {index.count}")
    cdef BatchEntry* e = &index.entries[i]
    if reason is None:
        return corrupt(BAD_CRC, e)
    return CorruptRecordError(reason, position=e.position, offset=e.base_offset)


ctypedef fused numbers:
    const uint8_t
    const int64_t


cdef bytes own_copy(numbers[::1] given, Py_ssize_t count):
    """Copy the first ``count`` numbers, so that no other thread can change them between a check and their use
    without the GIL."""
    if count == 0:
        return b""
    return PyBytes_FromStringAndSize(<const char*>&given[0], count * <Py_ssize_t>sizeof(numbers))


cdef void open_chunk(Chunk* chunk, const uint8_t[::1] source, bytes selection, int64_t position,
                     int64_t start_offset, int64_t end_offset, bint check_crc):
    chunk.source = &source[0] if source.shape[0] else NULL
    chunk.length = source.shape[0]
    chunk.position = position
    chunk.selection = <const uint8_t*>PyBytes_AS_STRING(selection) if selection is not None else NULL
    chunk.start_offset = start_offset
    chunk.end_offset = end_offset
    chunk.check_crc = check_crc


cdef int check_range(
    BatchIndex index, const uint8_t[::1] selection, Py_ssize_t start, Py_ssize_t stop
) except -1:
    if not 0 <= start <= stop <= index.count:
        raise IndexError(f"batches {start} to {stop} of {index.count}")
    if selection is not None and selection.shape[0] < stop:
        raise ValueError(f"the selection covers {selection.shape[0]} batches, not {stop}")
    return 0


cdef int64_t plausible_count(BatchEntry* e, int64_t size) noexcept nogil:
    """Return the number of records to reserve for a batch: for a count that its bytes cannot contain nothing
    is allocated, since the walk will report the error."""
    if e.count < 0:
        return 0
    return min(<int64_t>e.count, size // MIN_RECORD_SIZE + 1)


cdef int reserve_for(
    RecordColumns columns, BatchIndex index, const uint8_t* selection, Py_ssize_t start, Py_ssize_t stop
) except -1:
    cdef int64_t records = 0, data = 0, runs = 0
    cdef Py_ssize_t i
    for i in range(start, stop):
        if selection[i] != SKIP:
            records += plausible_count(&index.entries[i], index.entries[i].size - HEADER_SIZE)
            data += index.entries[i].size
            runs += 1
    return columns.reserve(records, data, runs)


cdef bint nothing_selected(const uint8_t[::1] selection, Py_ssize_t start, Py_ssize_t stop):
    cdef Py_ssize_t i
    for i in range(start, stop):
        if selection[i] != SKIP:
            return False
    return True


cdef object corrupt(int error, BatchEntry* e):
    return CorruptRecordError(_REASONS[error], position=e.position, offset=e.base_offset)


cdef int check_batch(Chunk* chunk, BatchEntry* e) noexcept nogil:
    cdef int64_t at = e.position - chunk.position
    if at < 0 or e.size < HEADER_SIZE or at > chunk.length - e.size:
        return OUTSIDE
    if e.magic == UNKNOWN_MAGIC:
        return WRONG_MAGIC
    if batch_crc(chunk.source + at, e.size) != e.crc:
        return BAD_CRC
    return RECORD_OK


cdef int decode_one(
    Chunk* chunk,
    BatchEntry* e,
    const uint8_t* records,
    const uint8_t* end,
    uint8_t selected,
    Py_ssize_t ahead,
    RecordColumns columns,
) noexcept nogil:
    cdef record_batch batch
    cdef int error
    if e.count == 0:
        return RECORD_OK            # as in Kafka: the records of an empty batch are not read
    if e.count < 0 or e.count > (end - records) // MIN_RECORD_SIZE:
        return RECORD_COUNT
    batch.records = records
    batch.end = end
    batch.source = chunk.source
    batch.limit = chunk.source + chunk.length
    batch.base_offset = e.base_offset
    batch.base_timestamp = e.base_timestamp
    batch.append_time = e.max_timestamp
    batch.has_append_time = e.attributes & ATTRIBUTE_LOG_APPEND_TIME
    batch.count = e.count
    batch.ahead = ahead if end - records < LARGE_BATCH else PIECE
    batch.start_offset = chunk.start_offset
    if selected == BOUNDED and columns.sink.count:
        # a batch that overlaps its predecessor: a consumer would not go back
        batch.start_offset = max(batch.start_offset, columns.sink.offsets[columns.sink.count - 1] + 1)
    batch.end_offset = chunk.end_offset
    error = walk_batch(&batch, &columns.sink, columns.views, columns.with_headers, selected == BOUNDED)
    if error == RECORD_OK:
        columns.end_run(e.partition_leader_epoch, 1 if batch.has_append_time else 0)
    return error


cdef Py_ssize_t next_selected(Chunk* chunk, Py_ssize_t i, Py_ssize_t stop) noexcept nogil:
    """Return the batch that is decoded after number ``i``; ``i`` itself when there is none."""
    cdef Py_ssize_t following = i + 1
    while following < stop:
        if chunk.selection[following] != SKIP:
            return following
        following += 1
    return i


cdef Py_ssize_t decode_run(
    Chunk* chunk, BatchEntry* entries, Py_ssize_t start, Py_ssize_t stop, RecordColumns columns, int* error
) noexcept nogil:
    cdef Py_ssize_t i
    cdef BatchEntry* e
    cdef const uint8_t* p
    cdef Py_ssize_t ahead
    for i in range(start, stop):
        if chunk.selection[i] == SKIP:
            continue
        e = &entries[i]
        if e.magic == MAGIC_2 and e.attributes & ATTRIBUTE_CODEC or e.magic < MAGIC_2:
            error[0] = NOT_PLAIN
            return i
        if chunk.check_crc or e.magic != MAGIC_2:
            error[0] = check_batch(chunk, e)
        elif e.position < chunk.position or e.position - chunk.position > chunk.length - e.size:
            error[0] = OUTSIDE
        if error[0] == RECORD_OK:
            p = chunk.source + (e.position - chunk.position)
            ahead = entries[next_selected(chunk, i, stop)].position - e.position
            error[0] = decode_one(chunk, e, p + HEADER_SIZE, p + e.size, chunk.selection[i], ahead, columns)
        if error[0] != RECORD_OK:
            return i
    return stop


cdef Py_ssize_t decode_regions_run(
    Chunk* chunk,
    const int64_t* regions,
    BatchEntry* entries,
    Py_ssize_t start,
    Py_ssize_t stop,
    RecordColumns columns,
    int* error,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef const int64_t* region
    cdef const uint8_t* records
    cdef const uint8_t* end
    cdef Py_ssize_t ahead
    for i in range(start, stop):
        if chunk.selection[i] == SKIP:
            continue
        region = regions + 2 * (i - start)
        records, end = chunk.source + region[0], chunk.source + region[1]
        ahead = regions[2 * (next_selected(chunk, i, stop) - start)] - region[0]
        error[0] = decode_one(chunk, &entries[i], records, end, chunk.selection[i], ahead, columns)
        if error[0] != RECORD_OK:
            return i
    return stop
