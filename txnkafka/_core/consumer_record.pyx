"""ConsumerRecord, and the records of decoded columns as such objects.

Creating an object for each record costs more than decoding, so this is one loop in C: numbers stay C numbers
until they are read, and records of plain bytes are not tracked by the garbage collector, like tuples of
bytes.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cython cimport final
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from txnkafka._core.atomic cimport drop
from txnkafka._core.columns cimport RecordColumns, RunColumns, record_sink

from txnkafka.errors import DecodeError
from txnkafka.model import TimestampType

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void* op)

cdef tuple TYPES = (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME, TimestampType.NO_TIMESTAMP_TYPE)
cdef tuple NO_HEADERS = ()


@final
cdef class ConsumerRecord:
    """One record that a consumer returns.

    ``key`` and ``value`` are bytes or None, or the results of the consumer's deserializers. ``timestamp`` is
    in milliseconds (-1: none). ``headers`` has (key, value) pairs, in order and with duplicates.
    ``leader_epoch`` is None if the batch has none.
    """

    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int64_t offset, timestamp
    cdef readonly object key, value
    cdef readonly tuple headers
    cdef int32_t epoch
    cdef int8_t kind

    def __init__(
        self,
        str topic not None,
        int32_t partition,
        int64_t offset,
        *,
        key=None,
        value=None,
        int64_t timestamp=-1,
        int timestamp_type=0,
        headers=(),
        leader_epoch=None,
    ):
        self.topic, self.partition, self.offset = topic, partition, offset
        self.key, self.value, self.headers = key, value, tuple(headers)
        self.timestamp, self.kind = timestamp, int(TimestampType(timestamp_type))
        self.epoch = -1 if leader_epoch is None else leader_epoch

    @property
    def timestamp_type(self):
        """The source of the timestamp."""
        return TYPES[self.kind if self.kind >= 0 else 2]

    @property
    def leader_epoch(self):
        """The epoch of the leader that appended the record; None if it is unknown."""
        return None if self.epoch < 0 else self.epoch

    cdef tuple fields(self):
        return (
            self.topic, self.partition, self.offset, self.timestamp, self.timestamp_type, self.key,
            self.value, self.headers, self.leader_epoch,
        )

    def __eq__(self, other):
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return self.fields() == (<ConsumerRecord>other).fields()

    def __hash__(self):
        return hash((self.topic, self.partition, self.offset))

    def __reduce__(self):
        return rebuilt, self.fields()

    def __repr__(self):
        shown = (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}"
        )
        return shown + (f", headers={self.headers!r})" if self.headers else ")")


def rebuilt(topic, partition, offset, timestamp, timestamp_type, key, value, headers, leader_epoch):
    """Return a record that was pickled."""
    return ConsumerRecord(
        topic, partition, offset, key=key, value=value, timestamp=timestamp, timestamp_type=timestamp_type,
        headers=headers, leader_epoch=leader_epoch,
    )


def consumer_records(
    RecordColumns columns not None,
    str topic not None,
    int32_t partition,
    Py_ssize_t begin,
    Py_ssize_t end,
    *,
    header_key,
    key_deserializer=None,
    value_deserializer=None,
):
    """Return the records ``begin`` to ``end`` of columns that contain copies and headers.

    Deserializers are called with the bytes of a key or value that is not None. When one raises, the list ends
    before that record; for the first one, DecodeError is raised instead. ``header_key`` decodes header keys
    that are not valid UTF-8.
    """
    if not (0 <= begin <= end <= <Py_ssize_t>columns.sink.count):
        raise IndexError(f"records {begin} to {end} of {columns.sink.count}")
    columns.need(not columns.views and columns.with_headers, "columns with copies and headers are needed")
    columns.hold()
    try:
        records = build(columns, topic, partition, begin, end, header_key)
    finally:
        drop(&columns.users)
    if key_deserializer is not None or value_deserializer is not None:
        return deserialized(records, key_deserializer, value_deserializer)
    return records


cdef list build(
    RecordColumns columns, str topic, int32_t partition, Py_ssize_t begin, Py_ssize_t end, object header_key
):
    cdef record_sink* sink = &columns.sink
    cdef RunColumns* runs = &columns.runs
    cdef Py_ssize_t i, run = run_of(runs, begin)
    cdef ConsumerRecord record
    cdef list records = []
    for i in range(begin, end):
        while run < runs.count and runs.ends[run] <= i:
            run += 1
        record = ConsumerRecord.__new__(ConsumerRecord)
        record.topic = topic
        record.partition = partition
        record.offset = sink.offsets[i]
        record.timestamp = sink.timestamps[i]
        record.epoch = runs.leader_epochs[run]
        record.kind = runs.timestamp_types[run]
        record.key = blob(sink.key_data, sink.key_offsets, sink.key_validity, sink.key_nulls, i)
        record.value = blob(sink.value_data, sink.value_offsets, sink.value_validity, sink.value_nulls, i)
        if sink.header_offsets[i] == sink.header_offsets[i + 1]:
            record.headers = NO_HEADERS
        else:
            record.headers = headers_of(sink, i, header_key)
        PyObject_GC_UnTrack(<void*>record)
        records.append(record)
    return records


cdef inline object blob(
    uint8_t* data, int32_t* offsets, uint8_t* validity, size_t nulls, Py_ssize_t i
):
    if nulls and not validity[i >> 3] >> (i & 7) & 1:
        return None
    return PyBytes_FromStringAndSize(<char*>data + offsets[i], offsets[i + 1] - offsets[i])


cdef tuple headers_of(record_sink* sink, Py_ssize_t i, object header_key):
    cdef Py_ssize_t j
    found = []
    for j in range(sink.header_offsets[i], sink.header_offsets[i + 1]):
        name = blob(sink.header_key_data, sink.header_key_offsets, NULL, 0, j)
        value = blob(
            sink.header_value_data, sink.header_value_offsets, sink.header_value_validity,
            sink.header_value_nulls, j,
        )
        try:
            found.append((name.decode(), value))
        except UnicodeDecodeError:
            found.append((header_key(name), value))
    return tuple(found)


cdef Py_ssize_t run_of(RunColumns* runs, Py_ssize_t record) noexcept:
    """Return the run that contains a record."""
    cdef Py_ssize_t low = 0, high = runs.count, middle
    while low < high:
        middle = (low + high) // 2
        if runs.ends[middle] <= record:
            low = middle + 1
        else:
            high = middle
    return low


cdef list deserialized(list records, object for_keys, object for_values):
    """Return records with new objects as keys and values, up to the first that cannot be deserialized."""
    cdef ConsumerRecord record, made
    cdef list found = []
    for record in records:
        field = "key"
        try:
            key = record.key if record.key is None or for_keys is None else for_keys(record.key)
            field = "value"
            value = record.value if record.value is None or for_values is None else for_values(record.value)
        except Exception as raised:
            if found:
                return found
            error = DecodeError(f"{type(raised).__name__}: {raised}")
            error.topic, error.partition, error.offset = record.topic, record.partition, record.offset
            error.field = field
            raise error from raised
        made = ConsumerRecord.__new__(ConsumerRecord)
        made.topic, made.partition, made.offset = record.topic, record.partition, record.offset
        made.timestamp, made.kind, made.epoch = record.timestamp, record.kind, record.epoch
        made.key, made.value, made.headers = key, value, record.headers
        found.append(made)
    return found
