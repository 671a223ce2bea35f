"""Input of the encoder: InputColumns, views of a caller's columns, and InputRecords, Python tuples.

Nothing is copied: both store pointers to keys, values and headers, and keep their memory alive. Columns are
examined once, for any number of batches.
"""
from operator import index

from cpython.buffer cimport PyBuffer_IsContiguous
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc

cdef extern from "encode_input.h" nogil:
    enum:
        ENCODE_COLUMN
        ENCODE_HEADERS
        ENCODE_TIMESTAMP
        ENCODE_OFFSET
        ENCODE_SIZE


cdef class RecordInput:
    """Records to encode."""

    def __len__(self):
        return self.count

    cdef str explain(self, int error, Py_ssize_t record):
        if error == ENCODE_COLUMN:
            return f"the offsets of a column at record {record} go back or past the end of its data"
        if error == ENCODE_HEADERS:
            return f"header_offsets at record {record} go back or past the last header"
        if error == ENCODE_TIMESTAMP:
            timestamp = self.input.timestamps[record]
            return f"record {record} has the timestamp {timestamp}; it is milliseconds, or -1 for none"
        if error == ENCODE_OFFSET:
            return (
                f"the offset of record {record} is below the base offset, more than 2147483647 above it, or "
                "not above the offset before"
            )
        if error == ENCODE_SIZE:
            return (
                f"with record {record} the batch becomes larger than 2147483647 bytes, which is all that "
                "Kafka's format can hold; write several batches"
            )
        return "the columns were changed while they were encoded"


cdef Py_buffer* looked_at(list kept, object buffer, str name) except NULL:
    view = PyMemoryView_FromObject(buffer)
    kept.append(view)
    cdef Py_buffer* found = PyMemoryView_GET_BUFFER(view)
    if not PyBuffer_IsContiguous(found, b"C"):
        raise ValueError(f"{name} is not contiguous in memory")
    return found


cdef const void* integers(list kept, object buffer, str name, Py_ssize_t least, int* wide) except? NULL:
    """Return a column of signed numbers of 8 bytes; if ``wide`` is given, it may also have 4, and
    ``wide`` says which. Raises TypeError and ValueError."""
    cdef Py_buffer* view = looked_at(kept, buffer, name)
    cdef bytes format = b"B" if view.format == NULL else view.format
    if format.lstrip(b"@=<") not in (b"i", b"l", b"q", b"n") or view.itemsize not in (4, 8):
        raise TypeError(f"{name} must be signed integers of 4 or 8 bytes, not of format {format.decode()!r}")
    if wide == NULL and view.itemsize != 8:
        raise TypeError(f"{name} must be int64")
    if view.len // view.itemsize < least:
        raise ValueError(f"{name} has {view.len // view.itemsize} numbers, {least} are needed")
    if wide != NULL:
        wide[0] = view.itemsize == 8
    return view.buf


cdef int fill(
    encode_column* column, list kept, str name, Py_ssize_t count, object offsets, object data, object validity
) except -1:
    cdef Py_buffer* view
    if offsets is None:
        if data is not None or validity is not None:
            raise TypeError(f"{name}_data and {name}_validity need {name}_offsets")
        return 0
    column.offsets = integers(kept, offsets, name + "_offsets", count + 1, &column.wide)
    if data is not None:
        view = looked_at(kept, data, name + "_data")
        column.data = <const uint8_t*>view.buf
        column.size = view.len
    if validity is not None:
        view = looked_at(kept, validity, name + "_validity")
        column.validity = <const uint8_t*>view.buf
        if view.len < (count + 7) // 8:
            raise ValueError(f"{name}_validity has {view.len} bytes for {count} records or headers")
    return 0


cdef class InputColumns(RecordInput):
    """Columns of records, in Arrow's layout; the names are those of RecordColumns.

    ``timestamps`` (int64, milliseconds, -1 for none) determine the number of records. Keys, values and the
    parts of headers are offsets (int32 or int64, one more than records or headers), bytes, and a bitmap if
    there are nulls (least significant bit first, 0 for null). A column without offsets contains only nulls.
    ``header_offsets`` assign headers to records. ``offsets`` (int64) are needed only for records with gaps
    between their offsets.

    Buffers without a format (Arrow's) must be cast: ``memoryview(buffer).cast("i")``. They must not change
    meanwhile; a change leads to an error or to any mixture of records, never to a crash.
    """

    def __cinit__(
        self,
        *,
        timestamps,
        offsets=None,
        key_offsets=None,
        key_data=None,
        key_validity=None,
        value_offsets=None,
        value_data=None,
        value_validity=None,
        header_offsets=None,
        header_key_offsets=None,
        header_key_data=None,
        header_value_offsets=None,
        header_value_data=None,
        header_value_validity=None,
    ):
        cdef list kept = []
        cdef encode_input* to = &self.input
        self.kept = kept
        to.timestamps = <const int64_t*>integers(kept, timestamps, "timestamps", 0, NULL)
        self.count = len(kept[0])
        if offsets is not None:
            to.offsets = <const int64_t*>integers(kept, offsets, "offsets", self.count, NULL)
        fill(&to.keys, kept, "key", self.count, key_offsets, key_data, key_validity)
        fill(&to.values, kept, "value", self.count, value_offsets, value_data, value_validity)
        if header_offsets is None:
            if header_key_offsets is not None or header_value_offsets is not None:
                raise TypeError("header_offsets are needed to assign headers to records")
            return
        if header_key_offsets is None:
            raise TypeError("headers need header_key_offsets: the key of a header is never null")
        to.header_offsets = integers(
            kept, header_offsets, "header_offsets", self.count + 1, &to.wide_header_offsets
        )
        to.header_count = max(len(memoryview(header_key_offsets)) - 1, 0)
        fill(&to.header_keys, kept, "header_key", to.header_count, header_key_offsets, header_key_data, None)
        fill(
            &to.header_values, kept, "header_value", to.header_count,
            header_value_offsets, header_value_data, header_value_validity,
        )  # fmt: skip


cdef class InputRecords(RecordInput):
    """Tuples (key, value, timestamp, headers) from any iterable; the headers are optional.

    Key and value are bytes-like or None, headers are pairs of a name (str, or UTF-8 bytes) and a value
    (bytes-like or None).
    """

    def __cinit__(self, records):
        # a tuple of tuples cannot change, whatever Python code runs
        self.records = records if type(records) is tuple else tuple(records)
        self.kept = []
        self.count = PyTuple_GET_SIZE(self.records)
        self.fields = <encode_field*>malloc(<size_t>(2 * self.count + 1) * sizeof(encode_field))
        self.numbers = <int64_t*>malloc(<size_t>(2 * self.count + 1) * sizeof(int64_t))
        if self.fields == NULL or self.numbers == NULL:
            raise MemoryError(f"no memory to encode {self.count} records")
        self.take_records()
        self.input.timestamps = self.numbers
        self.input.keys.fields = self.fields
        self.input.values.fields = self.fields + self.count
        if self.input.header_count:
            self.input.header_offsets = self.numbers + self.count
            self.input.wide_header_offsets = True
            self.input.header_keys.fields = self.header_keys
            self.input.header_values.fields = self.header_values

    def __dealloc__(self):
        free(self.fields)
        free(self.numbers)
        free(self.header_keys)
        free(self.header_values)

    cdef int take_records(self) except -1:
        cdef Py_ssize_t i, parts, count = self.count
        cdef object record
        self.numbers[count] = 0
        for i in range(count):
            record = <object>PyTuple_GET_ITEM(self.records, i)
            parts = PyTuple_GET_SIZE(record) if isinstance(record, tuple) else 0
            if parts != 3 and parts != 4:
                raise TypeError(f"record {i} must be a tuple (key, value, timestamp) or (…, headers)")
            self.take_bytes(&self.fields[i], <object>PyTuple_GET_ITEM(record, 0), "key", i)
            self.take_bytes(&self.fields[count + i], <object>PyTuple_GET_ITEM(record, 1), "value", i)
            self.numbers[i] = milliseconds(<object>PyTuple_GET_ITEM(record, 2), i)
            if parts == 4:
                self.take_headers(i, <object>PyTuple_GET_ITEM(record, 3))
            self.numbers[count + i + 1] = self.input.header_count
        return 0

    cdef int take_headers(self, Py_ssize_t i, object headers) except -1:
        if not headers:
            return 0
        cdef tuple pairs = tuple(headers)
        cdef Py_ssize_t wanted = self.input.header_count + len(pairs)
        if wanted > self.header_capacity:
            self.header_capacity = 2 * wanted
            self.header_keys = grown(self.header_keys, self.header_capacity)
            self.header_values = grown(self.header_values, self.header_capacity)
        self.kept.append(pairs)
        for header in pairs:
            self.take_header(i, header)
        return 0

    cdef int take_header(self, Py_ssize_t i, object header) except -1:
        cdef Py_ssize_t size
        cdef int64_t h = self.input.header_count
        name, value = header
        if isinstance(name, str):
            self.header_keys[h].data = <const uint8_t*>PyUnicode_AsUTF8AndSize(name, &size)
            self.header_keys[h].length = size
        elif name is None:
            raise TypeError(f"a header of record {i} has no name; only its value may be None")
        else:
            self.take_bytes(&self.header_keys[h], name, "name of a header", i)
        self.take_bytes(&self.header_values[h], value, "value of a header", i)
        self.kept.append((name, value))
        self.input.header_count = h + 1
        return 0

    cdef int take_bytes(self, encode_field* field, object content, str what, Py_ssize_t i) except -1:
        cdef Py_buffer* view
        if PyBytes_CheckExact(content):
            field.data = <const uint8_t*>PyBytes_AS_STRING(content)
            field.length = PyBytes_GET_SIZE(content)
        elif content is None:
            field.data = NULL
            field.length = -1
        else:
            try:
                view = looked_at(self.kept, content, f"the {what} of record {i}")
            except TypeError:
                kind = type(content).__name__
                raise TypeError(f"the {what} of record {i} must be bytes or None, not {kind}") from None
            field.data = <const uint8_t*>view.buf
            field.length = view.len
        return 0


cdef inline int64_t milliseconds(object timestamp, Py_ssize_t i) except? -1:
    cdef int overflow = 0
    cdef int64_t found
    if not PyLong_CheckExact(timestamp):
        timestamp = whole_number(timestamp, i)
    found = PyLong_AsLongLongAndOverflow(timestamp, &overflow)
    if overflow:
        raise ValueError(f"record {i} has the timestamp {timestamp}, which no record can hold")
    return found


cdef object whole_number(object timestamp, Py_ssize_t i):
    try:
        return index(timestamp)
    except TypeError:
        raise TypeError(f"record {i} has the timestamp {timestamp!r}, not a number of milliseconds") from None


cdef encode_field* grown(encode_field* fields, Py_ssize_t capacity) except NULL:
    cdef encode_field* memory = <encode_field*>realloc(fields, <size_t>capacity * sizeof(encode_field))
    if memory == NULL:
        raise MemoryError(f"no memory for {capacity} headers")
    return memory
