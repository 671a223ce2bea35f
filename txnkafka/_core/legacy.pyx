"""Decodes entries of magic 0 and 1 to columns: the formats that Kafka wrote before 0.11.

    i64 offset | i32 size | u32 crc | i8 magic | i8 attributes | [magic 1: i64 timestamp] |
    i32 keyLength, key | i32 valueLength, value

The CRC (CRC-32, not CRC-32C) covers everything from the magic byte on. A compressed set is one entry, the
wrapper, whose value is a compressed row of entries. The wrapper has the offset of its last inner entry;
inner offsets are absolute with magic 0 and count from any base with magic 1. A wrapper with LogAppendTime
gives its timestamp to all inner entries.

A wrapper is delivered whole or not at all, like a magic 2 batch; errors are those of ``decode_batches``. Two
cases that Kafka ignores are CorruptRecordError here, because bytes would be lost silently, or the format
would be a guess: a truncated inner row, and inner entries of another magic than the wrapper's.
Sources: org.apache.kafka.common.record.internal.LegacyRecord and AbstractLegacyRecordBatch.
"""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_LOG_APPEND_TIME,
    BASE_OFFSET,
    BATCH_LENGTH,
    LEGACY_ATTRIBUTES,
    LEGACY_CRC,
    LEGACY_KEY_0,
    LEGACY_KEY_1,
    LEGACY_TIMESTAMP,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_0,
    MAGIC_1,
    MIN_SIZE_0,
    MIN_SIZE_1,
)
from txnkafka._core.bytes cimport load_i32, load_i64, load_u32
from txnkafka._core.columns cimport RecordColumns, clear_validity, record_sink
from txnkafka._core.scan cimport BatchIndex, IndexHold

from txnkafka.errors import CorruptRecordError

cdef extern from *:
    const Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "legacy.h" nogil:
    void fill_crc32_table()
    uint32_t crc32_of(const uint8_t* data, size_t size)

cdef enum:
    ENOUGH_BYTES = 8 << 20          # decompressed in one call; the next call continues

cdef enum Fault:
    SOUND
    OUTSIDE
    BAD_SIZE
    BAD_MAGIC
    BAD_CRC
    BAD_FIELD
    NULL_WRAPPER
    EMPTY_WRAPPER
    INNER_END
    INNER_SIZE
    INNER_MAGIC
    INNER_CRC
    INNER_FIELD
    NESTED
    WRAPPER_OFFSET

cdef tuple _REASONS = (
    "",
    "the entry lies outside the bytes at hand",
    "the size of the entry is not the one it was indexed with, or too small for its format",
    "the entry is not of magic 0 or 1",
    "the CRC of the entry does not match its bytes",
    "key or value reach past the end of their entry",
    "a compressed wrapper has a null value",
    "a compressed wrapper holds no entries",
    "the entries inside a compressed wrapper break off",
    "an entry inside a compressed wrapper is too small for its format or reaches past the end",
    "an entry inside a compressed wrapper has another magic than the wrapper",
    "the CRC of an entry inside a compressed wrapper does not match its bytes",
    "key or value of an entry inside a compressed wrapper reach past the end of their entry",
    "an entry inside a compressed wrapper is itself compressed",
    "the offset of a compressed wrapper is smaller than the relative offset of its last entry",
)

cdef struct Entry:
    const uint8_t* key
    const uint8_t* value
    const uint8_t* end
    int64_t offset
    int64_t timestamp
    int32_t key_length              # -1: null
    int32_t value_length
    int8_t magic
    uint8_t attributes

cdef struct Row:                    # of entries inside a wrapper
    const uint8_t* begin
    const uint8_t* end
    Py_ssize_t count
    int64_t base_offset             # to add to the inner offsets

cdef struct Chunk:                  # the state of one call
    const uint8_t* source
    int64_t length
    int64_t position                # of source[0] in the file
    int64_t next_offset             # records below are skipped, as by a consumer at this position
    int64_t end_offset
    bint check_crc
    Py_ssize_t decompressed         # bytes so far
    Py_ssize_t piece_bytes          # a wrapper with more is divided

fill_crc32_table()


def decode_legacy(
    const uint8_t[::1] source not None,
    BatchIndex index not None,
    const uint8_t[::1] selection not None,
    Py_ssize_t start,
    Py_ssize_t stop,
    RecordColumns columns not None,
    object decompressor not None,
    *,
    int64_t position=0,
    int64_t start_offset=0,
    int64_t end_offset=0x7FFFFFFFFFFFFFFF,
    bint check_crc=True,
    list large=None,
    Py_ssize_t piece_bytes=0x7FFFFFFF,
):
    """Decode the selected ones of entries ``start`` to ``stop`` out of ``source``, which begins at byte
    ``position`` of the file.

    They must be of magic 0 or 1. ``decompressor`` (``record.compression.Decompressor``) is used for wrappers.
    With columns of views, positions are relative to ``decompressor.buffer`` for all records. Only records in
    [start_offset, end_offset) count, and none below those of the selected batch before ``start``.

    Returns the number of the entry to continue with: less than ``stop`` when much was decompressed, or when a
    damaged entry comes next; raises CorruptRecordError when that is the first selected one. Its ``offset`` is
    where reading can continue: ``start_offset``, or after the previous selected batch. With a list ``large``,
    a wrapper that decompresses to more than ``piece_bytes`` is checked and added to the list as
    ``WrapperPieces``, whose records follow those in the columns, and the call ends after it.
    """
    cdef IndexHold _held = index.hold()
    cdef Chunk chunk
    if not 0 <= start <= stop <= index.count or selection.shape[0] < stop:
        raise IndexError(f"entries {start} to {stop} of {index.count}, {selection.shape[0]} of them selected")
    chunk.source = &source[0] if source.shape[0] else NULL
    chunk.length = source.shape[0]
    chunk.position = position
    chunk.next_offset = max(start_offset, offset_behind(index, selection, start))
    chunk.end_offset = end_offset
    chunk.check_crc = check_crc
    chunk.decompressed = 0
    chunk.piece_bytes = piece_bytes if large is not None else PY_SSIZE_T_MAX
    decompressor.reset()
    columns.acquire()
    try:
        return decode_entries(&chunk, index, selection, start, stop, columns, source, decompressor, large)
    finally:
        columns.release()


cdef Py_ssize_t decode_entries(Chunk* chunk, BatchIndex index, const uint8_t[::1] selection, Py_ssize_t start,
                               Py_ssize_t stop, RecordColumns columns, const uint8_t[::1] source,
                               decompressor, list large) except -1:
    cdef Py_ssize_t i
    cdef bint decoded = False
    cdef WrapperPieces pieces
    for i in range(start, stop):
        if not selection[i]:
            continue
        if decoded and chunk.decompressed > ENOUGH_BYTES:
            return i
        try:
            pieces = decode_entry(chunk, &index.entries[i], columns, source, decompressor)
        except CorruptRecordError as error:
            if decoded:
                return i
            # not the entry's own offset, which in a wrapper is its last record's
            error.position, error.offset = index.entries[i].position, chunk.next_offset
            raise
        if pieces is not None:
            large.append(pieces)
            return i + 1
        decoded = True
    return stop


cdef int64_t offset_behind(BatchIndex index, const uint8_t[::1] selection, Py_ssize_t start):
    """Return the offset after the selected batch before ``start``, the position of a consumer."""
    while start > 0:
        start -= 1
        if selection[start]:
            return index.entries[start].last_offset + 1
    return 0


cdef WrapperPieces decode_entry(Chunk* chunk, BatchEntry* e, RecordColumns columns,
                                const uint8_t[::1] source, decompressor):
    """Decode one entry; a large one is returned instead, to be decoded in pieces."""
    cdef WrapperPieces pieces = None
    cdef Entry entry
    cdef int64_t at = e.position - chunk.position
    if at < 0 or e.size < LOG_OVERHEAD + MIN_SIZE_0 or at > chunk.length - e.size:
        raise CorruptRecordError(_REASONS[OUTSIDE])
    check(read_entry(chunk.source + at, chunk.source + at + e.size, chunk.check_crc, &entry))
    if entry.end != chunk.source + at + e.size:
        raise CorruptRecordError(_REASONS[BAD_SIZE])
    if entry.attributes & ATTRIBUTE_CODEC:
        pieces = decode_wrapper(chunk, &entry, columns, source, decompressor)
    elif columns.views:
        decode_copied(chunk, &entry, at, columns, source, decompressor)
    else:
        columns.reserve(1, e.size, 1)
        add_record(chunk, &entry, entry.offset, columns, NULL)
    columns.end_run(-1, timestamp_type_of(&entry))
    chunk.next_offset = max(chunk.next_offset, entry.offset + 1)
    return pieces


cdef WrapperPieces decode_wrapper(Chunk* chunk, Entry* wrapper, RecordColumns columns,
                                  const uint8_t[::1] source, decompressor):
    cdef Row row
    cdef const uint8_t[::1] inner
    cdef const uint8_t* buffer
    cdef Py_ssize_t value = wrapper.value - chunk.source
    cdef Py_ssize_t begin, end
    if wrapper.value_length < 0:
        raise CorruptRecordError(_REASONS[NULL_WRAPPER])
    if not columns.views:
        decompressor.reset()
    begin, end = decompressor.append(
        wrapper.attributes & ATTRIBUTE_CODEC,
        memoryview(source)[value:value + wrapper.value_length],
        magic=wrapper.magic,
    )
    inner = decompressor.buffer
    if not 0 <= begin <= end <= inner.shape[0]:
        raise ValueError(f"decompressed bytes {begin}..{end} lie outside a buffer of {inner.shape[0]}")
    if begin == end:
        raise CorruptRecordError(_REASONS[EMPTY_WRAPPER])
    buffer = &inner[0]
    row.begin = buffer + begin
    row.end = buffer + end
    chunk.decompressed += end - begin
    check(check_row(&row, wrapper, chunk.check_crc))
    if end - begin > chunk.piece_bytes:
        return wrapper_pieces(chunk, &row, wrapper, inner)
    columns.reserve(row.count, end - begin, 1)
    with nogil:
        add_row(chunk, &row, wrapper, columns, buffer)
    return None


cdef class WrapperPieces:
    """The entries of one sound wrapper, decoded piece by piece."""

    cdef const uint8_t[::1] buffer  # the decompressor's, which must not be reset before the end
    cdef Chunk chunk
    cdef Row row                    # begins where the next piece begins
    cdef Entry wrapper

    def decode(self, RecordColumns columns not None):
        """Add the records of the next piece to ``columns``; returns whether more follow."""
        cdef Row piece = self.row
        columns.acquire()
        try:
            cut_row(&piece, self.chunk.piece_bytes)
            columns.reserve(piece.count, piece.end - piece.begin, 1)
            with nogil:
                add_row(&self.chunk, &piece, &self.wrapper, columns, &self.buffer[0])
            columns.end_run(-1, timestamp_type_of(&self.wrapper))
        finally:
            columns.release()
        self.row.begin = piece.end
        return self.row.begin < self.row.end


cdef WrapperPieces wrapper_pieces(Chunk* chunk, const Row* row, const Entry* wrapper,
                                  const uint8_t[::1] buffer):
    cdef WrapperPieces self = WrapperPieces.__new__(WrapperPieces)
    self.buffer = buffer
    self.chunk = chunk[0]
    self.row = row[0]
    self.wrapper = wrapper[0]
    return self


cdef void cut_row(Row* row, Py_ssize_t piece_bytes) noexcept nogil:
    """Shorten ``row`` to about ``piece_bytes``; its entries were checked."""
    cdef Entry entry
    cdef const uint8_t* p = row.begin
    row.count = 0
    while p < row.end and p - row.begin < piece_bytes and read_entry(p, row.end, False, &entry) == SOUND:
        row.count += 1
        p = entry.end
    row.end = p


cdef inline int8_t timestamp_type_of(const Entry* entry) noexcept nogil:
    return -1 if entry.magic == MAGIC_0 else 1 if entry.attributes & ATTRIBUTE_LOG_APPEND_TIME else 0


cdef int decode_copied(Chunk* chunk, Entry* entry, Py_ssize_t at, RecordColumns columns,
                       const uint8_t[::1] source, decompressor) except -1:
    """Copy an uncompressed entry to the decompressor's buffer: in view form all positions are relative to
    it."""
    cdef Py_ssize_t begin, end
    cdef const uint8_t[::1] inner
    cdef const uint8_t* buffer
    cdef const uint8_t* start = chunk.source + at
    begin, end = decompressor.append(0, memoryview(source)[at:entry.end - chunk.source], magic=entry.magic)
    inner = decompressor.buffer
    if not 0 <= begin <= end <= inner.shape[0] or end - begin != entry.end - start:
        raise ValueError(f"copied bytes {begin}..{end} lie outside a buffer of {inner.shape[0]}")
    chunk.decompressed += end - begin
    buffer = &inner[0]
    entry.key = buffer + begin + (entry.key - start)
    entry.value = buffer + begin + (entry.value - start)
    columns.reserve(1, 0, 1)
    add_record(chunk, entry, entry.offset, columns, buffer)
    return 0


cdef int check(Fault fault) except -1:
    if fault != SOUND:
        raise CorruptRecordError(_REASONS[fault])
    return 0


cdef Fault read_entry(const uint8_t* p, const uint8_t* end, bint check_crc, Entry* entry) noexcept nogil:
    """Read the entry at ``p``, which must be before ``end``; bytes after its value are ignored, as by
    Kafka."""
    cdef int64_t size
    if end - p < LOG_OVERHEAD + MIN_SIZE_0:
        return BAD_SIZE
    size = load_i32(p + BATCH_LENGTH)
    entry.magic = <int8_t>p[MAGIC]
    if size < MIN_SIZE_0 or size > end - p - LOG_OVERHEAD or (entry.magic == MAGIC_1 and size < MIN_SIZE_1):
        return BAD_SIZE
    if entry.magic != MAGIC_0 and entry.magic != MAGIC_1:
        return BAD_MAGIC
    if check_crc and crc32_of(p + MAGIC, <size_t>(LOG_OVERHEAD + size - MAGIC)) != load_u32(p + LEGACY_CRC):
        return BAD_CRC
    entry.end = p + LOG_OVERHEAD + size
    entry.offset = load_i64(p + BASE_OFFSET)
    entry.attributes = p[LEGACY_ATTRIBUTES]
    entry.timestamp = load_i64(p + LEGACY_TIMESTAMP) if entry.magic == MAGIC_1 else -1
    p += LEGACY_KEY_1 if entry.magic == MAGIC_1 else LEGACY_KEY_0
    p = read_bytes(p, entry.end, &entry.key, &entry.key_length)
    if p != NULL:
        p = read_bytes(p, entry.end, &entry.value, &entry.value_length)
    return BAD_FIELD if p == NULL else SOUND


cdef const uint8_t* read_bytes(const uint8_t* p, const uint8_t* end, const uint8_t** data,
                               int32_t* length) noexcept nogil:
    """Read a length (negative: null) and that many bytes; returns the position after them, or NULL if they do
    not fit."""
    if end - p < 4:
        return NULL
    length[0] = max(load_i32(p), <int32_t>-1)
    data[0] = p + 4
    if length[0] < 0:
        return p + 4
    return p + 4 + length[0] if length[0] <= end - p - 4 else NULL


cdef Fault check_row(Row* row, const Entry* wrapper, bint check_crc) noexcept nogil:
    """Check all entries of a wrapper before one is delivered; compute their number and base offset."""
    cdef Entry entry
    cdef Fault fault
    cdef const uint8_t* p = row.begin
    row.count = 0
    while p < row.end:
        if row.end - p < LOG_OVERHEAD + MIN_SIZE_0:
            return INNER_END
        fault = read_entry(p, row.end, check_crc, &entry)
        if fault != SOUND:
            return inner_fault(fault)
        if entry.magic != wrapper.magic:
            return INNER_MAGIC
        if entry.attributes & ATTRIBUTE_CODEC:
            return NESTED
        row.count += 1
        p = entry.end
    row.base_offset = 0
    # Old librdkafka left the wrapper's offset 0.
    if wrapper.magic == MAGIC_1 and wrapper.offset != 0:
        if wrapper.offset < entry.offset:
            return WRAPPER_OFFSET
        row.base_offset = <int64_t>(<uint64_t>wrapper.offset - <uint64_t>entry.offset)
    return SOUND


cdef Fault inner_fault(Fault fault) noexcept nogil:
    if fault == BAD_SIZE:
        return INNER_SIZE
    if fault == BAD_MAGIC:
        return INNER_MAGIC
    if fault == BAD_CRC:
        return INNER_CRC
    return INNER_FIELD


cdef void add_row(Chunk* chunk, const Row* row, const Entry* wrapper, RecordColumns columns,
                  const uint8_t* buffer) noexcept nogil:
    cdef Entry entry
    cdef const uint8_t* p = row.begin
    cdef int64_t offset
    while p < row.end and read_entry(p, row.end, False, &entry) == SOUND:
        if wrapper.attributes & ATTRIBUTE_LOG_APPEND_TIME and wrapper.magic == MAGIC_1:
            entry.timestamp = wrapper.timestamp
        offset = <int64_t>(<uint64_t>row.base_offset + <uint64_t>entry.offset)
        add_record(chunk, &entry, offset, columns, buffer)
        p = entry.end


cdef void add_record(
    Chunk* chunk, const Entry* entry, int64_t offset, RecordColumns columns, const uint8_t* origin
) noexcept nogil:
    cdef record_sink* sink = &columns.sink
    cdef size_t n = sink.count
    if offset < chunk.next_offset or offset >= chunk.end_offset:
        return
    sink.offsets[n] = offset
    sink.timestamps[n] = entry.timestamp
    if columns.views:
        sink.key_positions[n] = <uint32_t>(entry.key - origin)
        sink.key_lengths[n] = entry.key_length
        sink.value_positions[n] = <uint32_t>(entry.value - origin)
        sink.value_lengths[n] = entry.value_length
    else:
        sink.key_offsets[n + 1] = sink.key_offsets[n] + max(entry.key_length, 0)
        sink.value_offsets[n + 1] = sink.value_offsets[n] + max(entry.value_length, 0)
        if entry.key_length < 0:
            clear_validity(sink.key_validity, sink.record_capacity, &sink.key_nulls, n)
        else:
            memcpy(sink.key_data + sink.key_offsets[n], entry.key, <size_t>entry.key_length)
        if entry.value_length < 0:
            clear_validity(sink.value_validity, sink.record_capacity, &sink.value_nulls, n)
        else:
            memcpy(sink.value_data + sink.value_offsets[n], entry.value, <size_t>entry.value_length)
    if columns.with_headers:
        sink.header_offsets[n + 1] = <int32_t>sink.header_count
    sink.count = n + 1
    chunk.next_offset = offset + 1
