"""The records of a producer's open batch, and the futures of ``Producer.send``: the work done per record.

``RecordList.add`` checks a record, adds up the size of the batch in Kafka's format, and returns the future of
the record, which knows only its batch and its number there.
Source: ``MemoryRecordsBuilder.hasRoomFor``, ``DefaultRecord.sizeOf``.
"""
from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from cython cimport final
from libc.stdint cimport int64_t, uint64_t
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

import cython

from txnkafka._core.batch_header cimport HEADER_SIZE
from txnkafka._core.key_partition cimport partition_of_key

cdef extern from "varint.h" nogil:
    uint64_t zigzag_of(int64_t v)
    uint64_t varint_size(uint64_t z)

cdef enum:
    LONGEST_DELTAS = 15             # a varlong and a varint


@cython.freelist(1024)
cdef class RecordFuture:
    """The result of one ``send``: RecordMetadata, or an error.

    ``index`` is the number of the record in its batch, ``timestamp`` its time in milliseconds."""

    cdef readonly object batch
    cdef readonly Py_ssize_t index
    cdef readonly int64_t timestamp

    def __class_getitem__(cls, item):
        return cls

    def done(self):
        """Return whether the record was acknowledged, or failed."""
        return self.batch.record_done(self.index)

    def result(self, timeout=None):
        """Wait for the acknowledgement, and return its RecordMetadata. ``timeout`` is in seconds.

        Raises the error of the record; KafkaTimeoutError after the timeout, and the record may still be
        sent."""
        return self.batch.record_result(self, timeout)

    def exception(self, timeout=None):
        """Wait like ``result``, and return the error of the record, None without one."""
        return self.batch.record_exception(self, timeout)

    def add_done_callback(self, call):
        """Make ``call(future)`` at the end, or now if it was before.

        The thread that handles responses makes the call: it must not block, and an exception is logged."""
        self.batch.on_record_done(self, call)

    def __repr__(self):
        state = "done" if self.done() else "pending"
        return f"<RecordFuture of record {self.index} in {self.batch!r}, {state}>"


cdef class RecordList:
    """Tuples (key, value, timestamp) or (key, value, timestamp, headers) of at most ``limit`` bytes in
    Kafka's format with the header of the batch; one record may be larger. ``size`` has the bytes."""

    cdef readonly list records
    cdef readonly int64_t size
    cdef public bint is_open
    cdef object batch
    cdef int64_t limit, first_timestamp
    cdef Py_ssize_t count

    def __cinit__(self, batch, int64_t limit):
        self.batch = batch
        self.limit = limit
        self.records = []
        self.size = HEADER_SIZE
        self.is_open = True

    def __len__(self):
        return self.count

    cpdef RecordFuture add(self, key, value, int64_t timestamp, headers=None):
        """Add a record and return its future; None if it does not fit, or the batch is closed.

        Any thread may call it, without a lock. Raises TypeError for a key, value or header that is not
        bytes-like, ValueError for a negative timestamp."""
        cdef RecordFuture future
        cdef int64_t body, size
        cdef tuple record
        if not self.is_open:
            return None
        if timestamp < 0:
            raise ValueError(f"timestamp is milliseconds since 1970, not {timestamp}")
        key = checked(key, "key")
        value = checked(value, "value")
        body = 2 + size_of(key) + size_of(value)
        if headers is None:
            record = (key, value, timestamp)
        else:
            headers = checked_headers(headers)
            body += headers_size(headers)
            record = (key, value, timestamp, headers)
        future = RecordFuture.__new__(RecordFuture)
        # From here on no object is created and no code of Python runs, which could let another thread run
        if not self.is_open:
            return None
        if self.count == 0:
            self.first_timestamp = timestamp
        body += varint_size(zigzag_of(timestamp - self.first_timestamp)) + varint_size(2 * self.count)
        size = self.size + body + varint_size(2 * body)
        if size > self.limit and self.count:
            return None
        self.records.append(record)
        future.batch = self.batch
        future.index = self.count
        future.timestamp = timestamp
        self.size = size
        self.count += 1
        return future


@final
cdef class RecordAppender:
    """Adds records to the open batches of ``topics`` (by name, each with ``open``, ``sticky`` and ``count``),
    while ``accepts`` is true. The part of ``Producer.send`` that a record needs if its batch exists.

    It takes no lock: a batch is open or closed, which ``RecordList.add`` decides at once. ``now_ms`` returns
    the time; None is the clock of the machine. ``hashes``: the hash of a key chooses the partition."""

    cdef public bint accepts
    cdef dict topics
    cdef object process, now_ms
    cdef bint hashes

    def __init__(self, dict topics not None, process not None, now_ms, *, bint accepts, bint hashes):
        self.topics, self.process, self.now_ms = topics, process, now_ms
        self.accepts, self.hashes = accepts, hashes

    def append(self, topic, key, value, partition, timestamp, headers):
        """Add a record to the open batch of its partition, and return its future. None without such a batch,
        if the record does not fit, and while records are not accepted. Raises what ``RecordList.add``
        raises."""
        cdef object topic_batches
        cdef RecordList records
        cdef int64_t time_ms
        if not self.accepts or not self.process.is_here:
            return None
        topic_batches = self.topics.get(topic)
        if topic_batches is None:
            return None
        if partition is None:
            if key is None or not self.hashes:
                partition = topic_batches.sticky.number
            else:
                partition = partition_of_key(key, topic_batches.count)
        records = (<dict?>topic_batches.open).get(partition)
        if records is None:
            return None
        if timestamp is not None:
            time_ms = timestamp
        elif self.now_ms is None:
            time_ms = clock_ms()
        else:
            time_ms = self.now_ms()
        return records.add(key, value, time_ms, headers)


cdef int64_t clock_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1_000_000


def record_size(key, value, headers=None):
    """Return the bytes of a batch with one record, at most."""
    cdef int64_t body = 2 + size_of(checked(key, "key")) + size_of(checked(value, "value")) + LONGEST_DELTAS
    if headers is not None:
        body += headers_size(checked_headers(headers))
    return HEADER_SIZE + body + varint_size(2 * body)


cdef inline object checked(object content, str what):
    if content is None or PyBytes_CheckExact(content):
        return content
    if isinstance(content, str):
        raise TypeError(f"the {what} must be bytes or None, not str: encode it, or give {what}_serializer")
    try:
        return bytes(memoryview(content))   # a copy, because the caller may change it
    except TypeError:
        raise TypeError(f"the {what} must be bytes or None, not {type(content).__name__}") from None


cdef inline int64_t size_of(object content) noexcept:
    cdef int64_t length
    if content is None:
        return 1
    length = PyBytes_GET_SIZE(content)
    return length + <int64_t>varint_size(<uint64_t>(2 * length))


cdef tuple checked_headers(object headers):
    cdef list kept = []
    for header in headers:
        if not isinstance(header, (tuple, list)) or len(header) != 2:
            raise TypeError(f"headers are pairs of a name and bytes or None, not {header!r}")
        name, value = header
        if not isinstance(name, str):
            raise TypeError(f"the name of a header must be a str, not {name!r}")
        kept.append((name, checked(value, "value of a header")))
    return tuple(kept)


cdef int64_t headers_size(tuple headers) except -1:
    cdef int64_t total = varint_size(2 * <uint64_t>len(headers)) - 1
    for name, value in headers:
        total += size_of((<str>name).encode()) + size_of(value)
    return total
