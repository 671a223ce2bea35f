# The header of one batch, and functions that read it. A module that uses these calls crc_initialize() when it
# is loaded.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_LENGTH,
    CONTROL_ABORT,
    CONTROL_COMMIT,
    CRC,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEGACY_ATTRIBUTES,
    LEGACY_CRC,
    LEGACY_TIMESTAMP,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_0,
    MAGIC_1,
    MAGIC_2,
    MAX_TIMESTAMP,
    MIN_FRAME,
    MIN_SIZE_0,
    MIN_SIZE_1,
    MIN_SIZE_2,
    NO_CONTROL_TYPE,
    PARTITION_LEADER_EPOCH,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    UNKNOWN_MAGIC,
)
from txnkafka._core.bytes cimport load_i16, load_i32, load_i64, load_u32, read_varint, read_varlong
from txnkafka._core.crc32c cimport crc32c_of

cdef enum:
    MAX_SIZE = 0x7FFFFFFF - LOG_OVERHEAD    # of the length field: the size must also be an int32
    # set in the markers of a topic with LogAppendTime, and by the cleaner
    MAY_BE_IN_MARKER = ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_DELETE_HORIZON
    MARKER_SIZE = 78                        # of the batch of an end transaction marker (EndTransactionMarker)

cdef extern from * nogil:
    """
    #define MAX_OFFSET INT64_C(0x7FFFFFFFFFFFFFFE)  /* the next offset must be a number, too */
    """
    int64_t MAX_OFFSET

cdef enum Stop:                 # where the walk over batches ended
    AT_END
    TORN
    ZEROS
    GARBAGE
    NO_MEMORY

cdef struct BatchEntry:
    int64_t position            # of the batch's first byte in the file
    int64_t base_offset         # magic 0 and 1: of the wrapper, equal to its last record's
    int64_t last_offset
    int64_t base_timestamp      # with the delete horizon bit: the horizon
    int64_t max_timestamp
    int64_t producer_id
    int32_t size                # whole batch, with offset and length fields
    int32_t count               # magic 0 and 1: 1, or -1 for a compressed wrapper
    int32_t base_sequence
    int32_t partition_leader_epoch
    uint32_t crc
    int32_t coordinator_epoch   # of an end transaction marker, else -1
    int16_t producer_epoch
    int16_t attributes
    int16_t control_type
    int8_t magic
    int8_t crc_wrong            # of a control batch, or what may be one; others are checked when decoded


cdef inline bint all_zero(const uint8_t* p, const uint8_t* end) noexcept nogil:
    while p < end:
        if p[0]:
            return False
        p += 1
    return True


cdef inline Stop read_legacy(const uint8_t* p, int64_t size, BatchEntry* e) noexcept nogil:
    """Magic 0 and 1: entry by entry; a compressed wrapper is one entry with the offset of its last
    record."""
    e.base_offset = e.last_offset = load_i64(p + BASE_OFFSET)
    if e.base_offset < 0 or e.base_offset > MAX_OFFSET or size > MAX_SIZE:
        return GARBAGE
    e.size = <int32_t>(size + LOG_OVERHEAD)
    e.crc = load_u32(p + LEGACY_CRC)
    e.attributes = <int16_t>p[LEGACY_ATTRIBUTES]
    e.base_timestamp = e.max_timestamp = load_i64(p + LEGACY_TIMESTAMP) if e.magic == MAGIC_1 else -1
    e.count = -1 if e.attributes & ATTRIBUTE_CODEC else 1
    e.producer_id = -1
    e.producer_epoch = -1
    e.base_sequence = -1
    e.partition_leader_epoch = -1
    e.control_type = NO_CONTROL_TYPE
    e.coordinator_epoch = -1
    e.crc_wrong = 0
    # Only magic 2 has the other bits.
    e.attributes &= ATTRIBUTE_CODEC | ATTRIBUTE_LOG_APPEND_TIME
    return AT_END


cdef inline void read_control(const uint8_t* p, const uint8_t* end, BatchEntry* e) noexcept nogil:
    """The first record of a control batch: key i16 version, i16 type; value of a marker i16 version, i32
    coordinator epoch."""
    cdef int32_t length = 0
    cdef int64_t timestamp_delta
    p = read_varint(p, end, &length)
    if p == NULL or p >= end:
        return
    p = read_varlong(p + 1, end, &timestamp_delta)
    if p != NULL:
        p = read_varint(p, end, &length)
    if p != NULL:
        p = read_varint(p, end, &length)
    if p == NULL or length < 4 or length > end - p or load_i16(p) < 0:
        return
    e.control_type = load_i16(p + 2)
    if e.control_type != CONTROL_ABORT and e.control_type != CONTROL_COMMIT:
        return                      # only end transaction markers have a coordinator epoch
    p = read_varint(p + length, end, &length)
    if p != NULL and 6 <= length <= end - p and load_i16(p) >= 0:
        e.coordinator_epoch = load_i32(p + 2)


cdef inline uint32_t batch_crc(const uint8_t* p, int64_t size) noexcept nogil:
    """Compute the CRC of a magic 2 batch of ``size`` bytes."""
    return crc32c_of(p + ATTRIBUTES, <size_t>(size - ATTRIBUTES))


cdef inline int32_t last_offset_delta(const BatchEntry* e) noexcept nogil:
    """Return the field itself, which may be negative until ``read_header`` has refused that."""
    return <int32_t>(<uint64_t>e.last_offset - <uint64_t>e.base_offset)


cdef inline void read_fields(const uint8_t* p, BatchEntry* e) noexcept nogil:
    """Read the 61 header bytes of magic 2 except size and magic byte, without checks."""
    cdef int64_t delta = load_i32(p + LAST_OFFSET_DELTA)
    e.base_offset = load_i64(p + BASE_OFFSET)
    e.last_offset = <int64_t>(<uint64_t>e.base_offset + <uint64_t>delta)
    e.partition_leader_epoch = load_i32(p + PARTITION_LEADER_EPOCH)
    e.crc = load_u32(p + CRC)
    e.attributes = load_i16(p + ATTRIBUTES)
    e.base_timestamp = load_i64(p + BASE_TIMESTAMP)
    e.max_timestamp = load_i64(p + MAX_TIMESTAMP)
    e.producer_id = load_i64(p + PRODUCER_ID)
    e.producer_epoch = load_i16(p + PRODUCER_EPOCH)
    e.base_sequence = load_i32(p + BASE_SEQUENCE)
    e.count = load_i32(p + RECORDS_COUNT)
    e.control_type = NO_CONTROL_TYPE
    e.coordinator_epoch = -1
    e.crc_wrong = 0


cdef inline Stop read_header(const uint8_t* p, int64_t size, BatchEntry* e) noexcept nogil:
    cdef int32_t delta
    read_fields(p, e)
    e.size = <int32_t>(size + LOG_OVERHEAD)
    delta = last_offset_delta(e)
    if e.base_offset < 0 or delta < 0 or e.base_offset > MAX_OFFSET - delta:
        return GARBAGE
    if e.attributes & ATTRIBUTE_CONTROL or may_be_marker(e):
        # A wrong control bit would hide data or a marker, a wrong type would turn a commit into an abort.
        if batch_crc(p, e.size) != e.crc:
            e.crc_wrong = 1
        elif e.attributes & ATTRIBUTE_CONTROL and not e.attributes & ATTRIBUTE_CODEC and e.count > 0:
            read_control(p + HEADER_SIZE, p + e.size, e)
    return AT_END


cdef inline bint may_be_marker(const BatchEntry* e) noexcept nogil:
    """Return whether a data batch looks like an end marker whose control bit is damaged: transactional,
    without a sequence, and of the size of a marker."""
    return (
        e.size == MARKER_SIZE and e.base_sequence < 0 and e.attributes & ATTRIBUTE_TRANSACTIONAL != 0
    )


cdef inline Stop read_entry(const uint8_t* p, const uint8_t* end, BatchEntry* e) noexcept nogil:
    cdef int64_t remaining = end - p
    cdef int64_t size
    cdef bint is_legacy
    if remaining < MIN_FRAME:
        return ZEROS if all_zero(p, end) else TORN
    size = <int64_t>load_i32(p + BATCH_LENGTH)
    e.magic = <int8_t>p[MAGIC]
    if size < MIN_SIZE_0:
        return ZEROS if all_zero(p, end) else GARBAGE
    if e.magic == MAGIC_2:
        if size < MIN_SIZE_2:
            return GARBAGE
        if size + LOG_OVERHEAD > remaining:
            return TORN
        if size > MAX_SIZE:
            return GARBAGE
        return read_header(p, size, e)
    if size + LOG_OVERHEAD > remaining:
        return TORN
    is_legacy = e.magic == MAGIC_0 or (e.magic == MAGIC_1 and size >= MIN_SIZE_1)
    if is_legacy and (
        size + LOG_OVERHEAD != MARKER_SIZE
        or load_i16(p + ATTRIBUTES) & ~MAY_BE_IN_MARKER != (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL)
    ):
        return read_legacy(p, size, e)
    # The magic byte is outside the CRC: a batch that is otherwise whole keeps its place, and reading it
    # fails there. An end marker that passed for a legacy message would leave its transaction to the next one.
    if MIN_SIZE_2 <= size <= MAX_SIZE and batch_crc(p, size + LOG_OVERHEAD) == load_u32(p + CRC):
        e.magic = UNKNOWN_MAGIC
        return read_header(p, size, e)
    return read_legacy(p, size, e) if is_legacy else GARBAGE
