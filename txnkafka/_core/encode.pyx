"""Encodes record batches of magic 2 from records, and changes the headers of finished batches in place.

The output is, byte for byte, what Kafka's MemoryRecordsBuilder writes for the same records without
compression. The base timestamp is that of the first record (or the delete horizon), the largest timestamp
the maximum of all records. Sizes are computed first, so that a batch is allocated once.

Changes in place use ``header_change.pxd``, which corrects the CRC without reading the payload.
Source: org.apache.kafka.common.record.internal.DefaultRecordBatch, MemoryRecordsBuilder.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport (
    PyByteArray_AS_STRING,
    PyByteArray_FromStringAndSize,
    PyByteArray_Resize,
)
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

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
    CRC,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_2,
    MAX_TIMESTAMP,
    PARTITION_LEADER_EPOCH,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
)
from txnkafka._core.bytes cimport (
    load_i16,
    store_i16,
    store_i32,
    store_i64,
    store_u32,
)
from txnkafka._core.crc32c cimport crc32c_of, crc_initialize
from txnkafka._core.header_change cimport (
    batch_size,
    correct_crc,
    crc_fill_shifts,
    put_max_timestamp,
    put_place,
)
from txnkafka._core.gil cimport LARGE, MANY
from txnkafka._core.record_input cimport InputColumns, InputRecords, RecordInput, encode_input

from txnkafka.errors import InvalidRecordError, MessageTooLargeError

cdef extern from "encode.h" nogil:
    enum:
        ENCODE_OK
        ENCODE_SIZE
        MAX_BATCH_SIZE
        ENCODE_SLACK

    ctypedef struct encode_result "struct encode_result":
        int64_t size
        int64_t max_timestamp
        int64_t last_offset_delta
        int64_t failed

    void choose_blocks()
    int records_size(const encode_input* input, encode_result* result)
    int put_records(uint8_t* p, const encode_input* input, encode_result* result, int64_t slack)

crc_initialize()
crc_fill_shifts()
choose_blocks()

cdef enum:
    MARKER_SIZE = HEADER_SIZE + 17  # header, and a record with a key of 4 bytes and a value of 6

cdef struct Header:                 # without length, magic and CRC
    int64_t base_offset
    int32_t partition_leader_epoch
    int16_t attributes
    int32_t last_offset_delta
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int16_t producer_epoch
    int32_t base_sequence
    int32_t count


cdef void put_header(uint8_t* p, const Header* header, int32_t size) noexcept nogil:
    """Write the header of a batch of ``size`` bytes, whose records are already after it."""
    store_i64(p + BASE_OFFSET, header.base_offset)
    store_i32(p + BATCH_LENGTH, size - LOG_OVERHEAD)
    store_i32(p + PARTITION_LEADER_EPOCH, header.partition_leader_epoch)
    p[MAGIC] = MAGIC_2
    store_i16(p + ATTRIBUTES, header.attributes)
    store_i32(p + LAST_OFFSET_DELTA, header.last_offset_delta)
    store_i64(p + BASE_TIMESTAMP, header.base_timestamp)
    store_i64(p + MAX_TIMESTAMP, header.max_timestamp)
    store_i64(p + PRODUCER_ID, header.producer_id)
    store_i16(p + PRODUCER_EPOCH, header.producer_epoch)
    store_i32(p + BASE_SEQUENCE, header.base_sequence)
    store_i32(p + RECORDS_COUNT, header.count)
    store_u32(p + CRC, crc32c_of(p + ATTRIBUTES, <size_t>(size - ATTRIBUTES)))


cdef int16_t flags(object log_append_time, bint transactional, bint control, object delete_horizon) except -1:
    cdef int16_t attributes = 0
    if log_append_time is not None:
        attributes |= ATTRIBUTE_LOG_APPEND_TIME
    if transactional:
        attributes |= ATTRIBUTE_TRANSACTIONAL
    if control:
        attributes |= ATTRIBUTE_CONTROL
    if delete_horizon is not None:
        attributes |= ATTRIBUTE_DELETE_HORIZON
    return attributes


cdef int check_producer(const Header* header) except -1:
    """Check a producer's fields like Kafka's builder. Raises ValueError."""
    if header.producer_id < 0:
        if header.attributes & ATTRIBUTE_TRANSACTIONAL:
            raise ValueError("a transactional batch needs a producer id")
        return 0
    if header.producer_epoch < 0:
        raise ValueError(f"producer {header.producer_id} needs an epoch, {header.producer_epoch} is none")
    if header.base_sequence < 0 and not header.attributes & ATTRIBUTE_CONTROL:
        raise ValueError(f"producer {header.producer_id} needs a sequence, {header.base_sequence} is none")
    return 0


def encode_batch(
    records,
    *,
    Py_ssize_t start=0,
    stop=None,
    int64_t base_offset=0,
    int32_t partition_leader_epoch=-1,
    int64_t producer_id=-1,
    int16_t producer_epoch=-1,
    int32_t base_sequence=-1,
    bint transactional=False,
    bint control=False,
    log_append_time=None,
    delete_horizon=None,
    last_offset=None,
):
    """Encode one uncompressed batch of records ``start`` to ``stop``; its records begin at byte 61.

    ``records`` are InputColumns (the interpreter's lock is released), or an iterable of tuples for
    InputRecords. Without records the result is empty. ``log_append_time`` is the time of all records;
    ``delete_horizon`` replaces the base timestamp. ``last_offset`` is the last offset of the batch if it
    differs from that of the last record, as after compaction.

    Raises ValueError for input that Kafka's builder refuses, MessageTooLargeError for more bytes than a batch
    can have.
    """
    cdef RecordInput source = records if isinstance(records, RecordInput) else InputRecords(records)
    cdef encode_input input = source.input
    cdef Header header
    header.base_offset = input.base_offset = base_offset
    header.partition_leader_epoch = partition_leader_epoch
    header.attributes = flags(log_append_time, transactional, control, delete_horizon)
    header.producer_id, header.producer_epoch = producer_id, producer_epoch
    header.base_sequence = base_sequence
    check_producer(&header)
    input.start, input.stop = start, source.count if stop is None else stop
    if not 0 <= input.start <= input.stop <= source.count:
        raise IndexError(f"records {start} to {stop} of {source.count}")
    if input.start == input.stop:
        return bytearray()
    if input.stop - input.start > 0x7FFFFFFF or base_offset < 0:
        raise ValueError(f"a batch cannot hold {input.stop - input.start} records from {base_offset} on")
    header.count = <int32_t>(input.stop - input.start)
    header.base_timestamp = input.timestamps[start] if delete_horizon is None else delete_horizon
    input.base_timestamp = header.base_timestamp = max(header.base_timestamp, -1)
    return batch_of(source, &input, &header, log_append_time, last_offset)


cdef bytearray batch_of(
    RecordInput source, encode_input* input, Header* header, object log_append_time, object last_offset
):
    cdef encode_result result
    cdef int error = measure(source, input, &result)
    if error == ENCODE_OK and result.size + HEADER_SIZE > MAX_BATCH_SIZE:
        error, result.failed = ENCODE_SIZE, input.stop - 1
    if error == ENCODE_SIZE:
        raise MessageTooLargeError(source.explain(error, result.failed))
    if error != ENCODE_OK:
        raise ValueError(source.explain(error, result.failed))
    cdef int32_t size = <int32_t>result.size + HEADER_SIZE
    # a little more, so that the fast path writes the last records, too
    cdef int64_t slack = ENCODE_SLACK if 8 * ENCODE_SLACK < size < MAX_BATCH_SIZE - ENCODE_SLACK else 0
    cdef bytearray batch = PyByteArray_FromStringAndSize(NULL, size + slack)
    cdef uint8_t* p = <uint8_t*>PyByteArray_AS_STRING(batch)
    header.max_timestamp = -1 if log_append_time is None else log_append_time
    header.last_offset_delta = -1
    if last_offset is not None:
        if last_offset < header.base_offset:
            raise ValueError(f"the last offset {last_offset} is below the base offset {header.base_offset}")
        header.last_offset_delta = last_offset - header.base_offset
    if size < LARGE or not isinstance(source, InputColumns):
        error = write(p, input, &result, header, size, slack)
    else:
        with nogil:
            error = write(p, input, &result, header, size, slack)
    if slack:
        PyByteArray_Resize(batch, size)     # only its size changes
    if error != ENCODE_OK:
        raise ValueError(source.explain(error, -1))
    if header.last_offset_delta < result.last_offset_delta:
        raise ValueError(f"the last offset {last_offset} is below that of the last record")
    return batch


cdef int measure(RecordInput source, const encode_input* input, encode_result* result) noexcept:
    cdef int error
    if input.stop - input.start < MANY or not isinstance(source, InputColumns):
        return records_size(input, result)
    with nogil:
        error = records_size(input, result)
    return error


cdef int write(
    uint8_t* p, const encode_input* input, encode_result* result, Header* header, int32_t size, int64_t slack
) noexcept nogil:
    cdef int error = put_records(p + HEADER_SIZE, input, result, slack)
    if error == ENCODE_OK:
        if not header.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            header.max_timestamp = result.max_timestamp
        if header.last_offset_delta < 0:
            header.last_offset_delta = <int32_t>result.last_offset_delta
        put_header(p, header, size)
    return error


def replace_payload(batch not None, payload not None, *, int codec):
    """Build a batch with the header of ``batch`` and another payload: its records, compressed by ``codec``
    (0 to 4)."""
    cdef Py_buffer old, new
    cdef bytearray result
    cdef uint8_t* p
    if not 0 <= codec <= 4:
        raise ValueError(f"unknown codec {codec}: Kafka has 0 to 4")
    cdef const uint8_t* header = open_batch(&old, batch, 0, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(payload, &new, PyBUF_SIMPLE)
        try:
            if new.len > MAX_BATCH_SIZE - HEADER_SIZE:
                raise MessageTooLargeError(f"a batch cannot hold {new.len} bytes; write several batches")
            result = PyByteArray_FromStringAndSize(NULL, HEADER_SIZE + new.len)
            p = <uint8_t*>PyByteArray_AS_STRING(result)
            memcpy(p, header, HEADER_SIZE)
            memcpy(p + HEADER_SIZE, new.buf, <size_t>new.len)
        finally:
            PyBuffer_Release(&new)
    finally:
        PyBuffer_Release(&old)
    store_i32(p + BATCH_LENGTH, <int32_t>len(result) - LOG_OVERHEAD)
    store_i16(p + ATTRIBUTES, (load_i16(p + ATTRIBUTES) & ~<int16_t>ATTRIBUTE_CODEC) | <int16_t>codec)
    store_u32(p + CRC, crc32c_of(p + ATTRIBUTES, <size_t>(len(result) - ATTRIBUTES)))
    return result


cdef uint8_t* open_batch(Py_buffer* view, object batch, Py_ssize_t position, int kind) except NULL:
    """Return the first byte of the whole magic 2 batch at ``position``; the caller releases the view."""
    cdef uint8_t* p
    PyObject_GetBuffer(batch, view, kind)
    if 0 <= position <= view.len - HEADER_SIZE:
        p = <uint8_t*>view.buf + position
        if p[MAGIC] == MAGIC_2 and HEADER_SIZE <= batch_size(p) <= view.len - position:
            return p
    length = view.len
    PyBuffer_Release(view)
    raise InvalidRecordError(f"there is no whole batch of magic 2 at byte {position} of {length}")


def assign(batch not None, Py_ssize_t position=0, *, int64_t base_offset, int32_t partition_leader_epoch):
    """Set the offset and the leader epoch of the batch at ``position``; the CRC covers neither field.

    ``batch`` is a writable buffer. Raises InvalidRecordError when there is no whole magic 2 batch, like all
    functions that change a batch in place.
    """
    cdef Py_buffer view
    cdef uint8_t* p = open_batch(&view, batch, position, PyBUF_WRITABLE)
    put_place(p, base_offset, partition_leader_epoch)
    PyBuffer_Release(&view)


def set_producer(
    batch not None,
    Py_ssize_t position=0,
    *,
    int64_t producer_id,
    int16_t producer_epoch,
    int32_t base_sequence,
    transactional=None,
):
    """Change the producer of the batch at ``position``, and whether it is transactional (None: unchanged).

    Raises ValueError for fields that Kafka's builder refuses.
    """
    cdef Py_buffer view
    cdef Header header
    cdef uint8_t[HEADER_SIZE] before
    cdef uint8_t* p = open_batch(&view, batch, position, PyBUF_WRITABLE)
    try:
        memcpy(before, p, HEADER_SIZE)
        header.attributes = load_i16(p + ATTRIBUTES)
        if transactional is not None:
            header.attributes &= ~<int16_t>ATTRIBUTE_TRANSACTIONAL
            header.attributes |= ATTRIBUTE_TRANSACTIONAL if transactional else 0
        header.producer_id, header.producer_epoch = producer_id, producer_epoch
        header.base_sequence = base_sequence
        check_producer(&header)
        store_i16(p + ATTRIBUTES, header.attributes)
        store_i64(p + PRODUCER_ID, producer_id)
        store_i16(p + PRODUCER_EPOCH, producer_epoch)
        store_i32(p + BASE_SEQUENCE, base_sequence)
        correct_crc(p, before)
    finally:
        PyBuffer_Release(&view)


def set_max_timestamp(batch not None, Py_ssize_t position=0, *, int timestamp_type, int64_t max_timestamp):
    """Set the timestamp type (0 CreateTime, 1 LogAppendTime) and the largest timestamp of the batch.

    With LogAppendTime, that is the time of all its records. As in Kafka, any change clears undefined
    attribute bits.
    """
    cdef Py_buffer view
    if timestamp_type != 0 and timestamp_type != 1:
        raise ValueError(f"{timestamp_type} is not a timestamp type: 0 is CreateTime, 1 LogAppendTime")
    cdef uint8_t* p = open_batch(&view, batch, position, PyBUF_WRITABLE)
    put_max_timestamp(p, timestamp_type == 1, max_timestamp)
    PyBuffer_Release(&view)


def end_txn_marker(
    *,
    int64_t base_offset,
    int64_t timestamp,
    int64_t producer_id,
    int16_t producer_epoch,
    int32_t coordinator_epoch,
    bint commit,
    int32_t partition_leader_epoch=-1,
):
    """Return the batch of 78 bytes that commits or aborts a transaction of a producer."""
    cdef Header header
    cdef uint8_t[MARKER_SIZE] batch
    cdef uint8_t* record = batch + HEADER_SIZE
    memset(batch, 0, MARKER_SIZE)
    header.base_offset, header.partition_leader_epoch = base_offset, partition_leader_epoch
    header.attributes = ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL
    header.base_timestamp = header.max_timestamp = timestamp
    header.producer_id, header.producer_epoch, header.base_sequence = producer_id, producer_epoch, -1
    header.last_offset_delta, header.count = 0, 1
    check_producer(&header)
    record[0] = 2 * 16              # the length, then attributes and deltas, all 0
    record[4] = 2 * 4               # key: version 0, type
    record[8] = commit
    record[9] = 2 * 6               # value: version 0, coordinator epoch; no headers
    store_i32(record + 12, coordinator_epoch)
    put_header(batch, &header, MARKER_SIZE)
    return <bytes>batch[:MARKER_SIZE]


def empty_batch(
    *,
    int64_t base_offset,
    int64_t last_offset,
    int64_t max_timestamp,
    int timestamp_type=0,
    int32_t partition_leader_epoch=-1,
    int64_t producer_id=-1,
    int16_t producer_epoch=-1,
    int32_t base_sequence=-1,
    bint transactional=False,
    bint control=False,
):
    """Return the 61 bytes that compaction keeps of a batch without records, so that the last sequence of its
    producer remains known."""
    cdef Header header
    cdef uint8_t[HEADER_SIZE] batch
    if not 0 <= last_offset - base_offset <= 0x7FFFFFFF:
        raise ValueError(f"a batch cannot reach from offset {base_offset} to {last_offset}")
    header.base_offset, header.partition_leader_epoch = base_offset, partition_leader_epoch
    header.attributes = flags(timestamp_type or None, transactional, control, None)
    header.last_offset_delta, header.count = <int32_t>(last_offset - base_offset), 0
    header.base_timestamp, header.max_timestamp = -1, max_timestamp
    header.producer_id, header.producer_epoch = producer_id, producer_epoch
    header.base_sequence = base_sequence
    put_header(batch, &header, HEADER_SIZE)
    return <bytes>batch[:HEADER_SIZE]
