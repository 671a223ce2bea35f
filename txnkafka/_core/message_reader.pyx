"""Reads messages by the programs of ``message_table``: bytes in, objects of frozen classes with slots out, or
for the logs' tables dictionaries.

A length or a count is compared with the bytes that are left before anything is made of it. An element of
three bytes becomes an object of a hundred times that size, so values are counted, too. Two checks are
stricter than Kafka's: tags must ascend, and a known tagged field must fill its announced size.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_SetItem
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.memoryview cimport PyMemoryView_Check, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_GetSlice
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from txnkafka._core.bytes cimport load_i16, load_i32, load_i64
from txnkafka._core.message_table cimport (
    KIND_ARRAY,
    KIND_BOOL,
    KIND_FLOAT64,
    KIND_INT8,
    KIND_INT16,
    KIND_INT32,
    KIND_INT64,
    KIND_RECORDS,
    KIND_STRING,
    KIND_STRUCT,
    KIND_UINT16,
    KIND_UUID,
    MAX_STRING_BYTES,
    Kind,
    Part,
    Table,
    slot_of,
)
from txnkafka._core.message_table import SchemaError

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject*, Py_ssize_t)
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 largest)
    uint8_t* PyUnicode_1BYTE_DATA(object)

cdef struct Input:
    const uint8_t* data
    Py_ssize_t position
    Py_ssize_t end
    Py_ssize_t left  # values
    Py_ssize_t limit
    PyObject* source

cdef str UNKNOWN = "unknown_tagged_fields"
cdef bytes BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
cdef const char* DIGITS = BASE64


def read(Table table not None, data, Py_ssize_t position, list left not None):
    """Return the struct at ``position`` and the position after it. ``left`` is how many values it may have,
    which becomes what remains of them, and how many in all. Raises ``SchemaError``."""
    cdef Py_buffer view
    cdef Input input
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if PyMemoryView_Check(data) and not has_bytes(PyMemoryView_GET_BUFFER(data)):
            data = data.cast("B")  # records are slices of it
        start(&input, &view, data, position, left[1])
        input.left = left[0]
        try:
            found = read_struct(table, &input)
        finally:
            left[0] = input.left
        return found, input.position
    finally:
        PyBuffer_Release(&view)


def read_client_id(data, Py_ssize_t position, bint flexible, Py_ssize_t limit):
    """Return the end of a request's header: its client id, which is never compact (KIP-482), and the position
    after it and, where it is ``flexible``, tagged fields. Raises ``SchemaError``."""
    cdef Py_buffer view
    cdef Input input
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        start(&input, &view, data, position, limit)
        found = read_sized(CLIENT_ID, &input)
        if flexible:
            read_tagged_fields(NOTHING, &input, None)
        return found, input.position
    finally:
        PyBuffer_Release(&view)


def skip_tagged_fields(data, Py_ssize_t position, Py_ssize_t limit):
    """Return the position after the tagged fields of a header. Raises ``SchemaError``."""
    cdef Py_buffer view
    cdef Input input
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        start(&input, &view, data, position, limit)
        read_tagged_fields(NOTHING, &input, None)
        return input.position
    finally:
        PyBuffer_Release(&view)


cdef inline bint has_bytes(Py_buffer* view) noexcept:
    return view.itemsize == 1 and view.ndim == 1


cdef int start(Input* input, Py_buffer* view, object data, Py_ssize_t position, Py_ssize_t limit) except -1:
    if position < 0 or position > view.len:
        raise ValueError(f"position {position} is outside of {view.len} bytes")
    input.data, input.position, input.end = <const uint8_t*>view.buf, position, view.len
    input.left, input.limit, input.source = limit, limit, <PyObject*>data
    return 0


cdef Part CLIENT_ID = Part("client_id", "string", nullable=True)
cdef Table NOTHING = Table(None, flexible=True, positional=(), tagged=())


# Structs


cdef object read_struct(Table table, Input* input):
    if table.cls is None:
        return read_dictionary(table, input)
    cdef object found = PyType_GenericAlloc(<PyTypeObject*>table.cls, 0)
    cdef Part part
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(table.positional)):
        part = <Part>PyTuple_GET_ITEM(table.positional, i)
        set_slot(found, part, read_part(part, input))
    if table.flexible:
        read_tagged_fields(table, input, found)
    for i in range(PyTuple_GET_SIZE(table.tagged)):
        part = <Part>PyTuple_GET_ITEM(table.tagged, i)
        if slot_of(<PyObject*>found, part)[0] == NULL:
            set_slot(found, part, part.default_value())
    for i in range(PyTuple_GET_SIZE(table.absent)):
        part = <Part>PyTuple_GET_ITEM(table.absent, i)
        set_slot(found, part, part.default)
    return found


cdef inline void set_slot(object owner, Part part, object value) noexcept:
    """Set a slot that has not been set."""
    Py_INCREF(value)
    slot_of(<PyObject*>owner, part)[0] = <PyObject*>value


cdef dict read_dictionary(Table table, Input* input):
    cdef dict found = {}
    cdef Part part
    for part in table.positional:
        PyDict_SetItem(found, part.name, read_part(part, input))
    for part in table.tagged:
        PyDict_SetItem(found, part.name, part.default_value())
    if table.flexible:
        read_tagged_fields(table, input, found)
    return found


cdef object read_part(Part part, Input* input):
    cdef const uint8_t* p = input.data + input.position
    cdef Kind kind = part.kind
    if kind <= KIND_UUID:
        if part.size > input.end - input.position:
            raise short(part.size, input.position, input.end).inside(part.name)
        input.position += part.size
        return number(kind, p)
    if kind == KIND_ARRAY:
        return read_array(part, input)
    if kind == KIND_STRUCT:
        return read_inner(part, input)
    return read_sized(part, input)


cdef object number(Kind kind, const uint8_t* p):
    cdef uint64_t bits
    cdef double real
    if kind == KIND_INT32:
        return load_i32(p)
    if kind == KIND_INT64:
        return load_i64(p)
    if kind == KIND_INT16:
        return load_i16(p)
    if kind == KIND_INT8:
        return <int8_t>p[0]
    if kind == KIND_BOOL:
        return p[0] != 0
    if kind == KIND_UINT16:
        return <uint16_t>load_i16(p)
    if kind == KIND_FLOAT64:
        bits = <uint64_t>load_i64(p)
        memcpy(&real, &bits, 8)
        return real
    return uuid_text(p)


cdef object uuid_text(const uint8_t* p):
    """The 22 characters of a uuid in base64."""
    cdef object text = PyUnicode_New(22, 127)
    cdef uint8_t* out = PyUnicode_1BYTE_DATA(text)
    cdef uint32_t bits
    cdef int _
    for _ in range(5):
        bits = (<uint32_t>p[0] << 16) | (<uint32_t>p[1] << 8) | p[2]
        out[0], out[1] = DIGITS[bits >> 18], DIGITS[(bits >> 12) & 63]
        out[2], out[3] = DIGITS[(bits >> 6) & 63], DIGITS[bits & 63]
        p += 3
        out += 4
    out[0], out[1] = DIGITS[p[0] >> 2], DIGITS[(p[0] & 3) << 4]
    return text


cdef object read_inner(Part part, Input* input):
    """A struct that is a field; if it may be null, it follows an int8, which is 1 or means null."""
    cdef int presence, null
    try:
        if part.nullable:
            null = -1 if part.tag < 0 else 0
            if input.position >= input.end:
                raise short(1, input.position, input.end)
            presence = <int8_t>input.data[input.position]
            if presence != 1 and presence != null:
                reason = f"a struct that may be null begins with 1 or {null}, not {presence}"
                raise SchemaError(reason, input.position)
            input.position += 1
            if presence != 1:
                return None
        return read_struct(part.table, input)
    except SchemaError as error:
        error.inside(part.name)
        raise


# Lengths, strings, bytes


cdef Py_ssize_t read_length(Part part, Input* input) except -2:
    """The length or count of a part, -1 for null. A count is as wide as the length of bytes."""
    cdef Py_ssize_t length, start = input.position
    cdef int size
    if part.compact:
        if start < input.end and input.data[start] < 0x80:
            input.position += 1
            return <Py_ssize_t>input.data[start] - 1
        try:
            return <Py_ssize_t>read_uvarint(input) - 1
        except SchemaError as error:
            error.inside(part.name)
            raise
    size = 2 if part.kind == KIND_STRING else 4
    if size > input.end - start:
        raise short(size, start, input.end).inside(part.name)
    length = load_i16(input.data + start) if size == 2 else load_i32(input.data + start)
    if length < -1:
        raise SchemaError(f"length {length} is negative", start).inside(part.name)
    input.position += size
    return length


cdef Py_ssize_t read_uvarint(Input* input) except -1:
    """An unsigned LEB128 number of at most 32 bits."""
    cdef Py_ssize_t start = input.position
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while input.position < input.end:
        byte = input.data[input.position]
        input.position += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise SchemaError("varint has more than 32 bits", start)
            return <Py_ssize_t>value
        shift += 7
        if shift > 28:
            raise SchemaError("varint has more than 5 bytes", start)
    raise SchemaError("varint is cut off", start)


cdef object read_sized(Part part, Input* input):
    """A string, bytes or records."""
    cdef Py_ssize_t start, position = input.position, size = read_length(part, input)
    if size < 0:
        if part.nullable:
            return None
        raise null(part.name, position)
    start = input.position
    if size > input.end - start:
        raise short(size, start, input.end).inside(part.name)
    input.position = start + size
    if part.kind == KIND_STRING:
        return text(part, input, start, size)
    if part.kind == KIND_RECORDS and PyMemoryView_Check(<object>input.source):
        return PySequence_GetSlice(<object>input.source, start, start + size)
    return PyBytes_FromStringAndSize(<const char*>input.data + start, size)


cdef object text(Part part, Input* input, Py_ssize_t start, Py_ssize_t size):
    if size > MAX_STRING_BYTES:
        reason = f"string has {size} bytes, more than {MAX_STRING_BYTES}"
        raise SchemaError(reason, start).inside(part.name)
    try:
        return PyUnicode_DecodeUTF8(<const char*>input.data + start, size, NULL)
    except UnicodeDecodeError as error:
        raise SchemaError("string is not UTF-8", start + error.start).inside(part.name) from None


# Arrays


cdef object read_array(Part part, Input* input):
    cdef Py_ssize_t i = 0, position = input.position, count = read_length(part, input)
    if count < 0:
        if part.nullable:
            return None
        raise null(part.name, position)
    cdef Py_ssize_t left = input.end - input.position
    cdef Part element = part.element
    if count > left // element.minimum_size:
        reason = f"{count} elements do not fit into the {left} bytes left"
        raise SchemaError(reason, position).inside(part.name)
    try:
        take(input, count * element.values, position)
    except SchemaError as error:
        error.inside(part.name)
        raise
    cdef bint is_list = part.strict
    cdef object value, found = PyList_New(count) if is_list else PyTuple_New(count)
    try:
        for i in range(count):
            if element.kind == KIND_STRUCT:
                value = read_struct(element.table, input)
            else:
                value = read_part(element, input)
            Py_INCREF(value)
            if is_list:
                PyList_SET_ITEM(found, i, value)
            else:
                PyTuple_SET_ITEM(found, i, value)
    except SchemaError as error:
        error.inside(f"[{i}]").inside(part.name)
        raise
    return found


cdef int take(Input* input, Py_ssize_t values, Py_ssize_t position) except -1:
    input.left -= values
    if input.left < 0:
        raise SchemaError(f"the message has more than {input.limit} values", position)
    return 0


# Tagged fields (KIP-482)


cdef int read_tagged_fields(Table table, Input* input, object found) except -1:
    """Read the known ones into an object or dictionary; a dictionary also keeps others, an object skips them,
    but they are counted."""
    cdef Py_ssize_t _, count, start, size, stop, tag, end = input.end, last = -1, first = input.position
    cdef list unknown = None if table.cls is not None or found is None else []
    cdef Part part
    if first < end and input.data[first] == 0:
        input.position += 1
        return 0
    count = read_uvarint(input)
    if count > (end - input.position) // 2:
        reason = f"{count} tagged fields do not fit into the {end - input.position} bytes left"
        raise SchemaError(reason, first)
    take(input, count if unknown is None else 3 * count, first)
    for _ in range(count):
        start = input.position
        tag, size = read_uvarint(input), read_uvarint(input)
        if tag <= last:
            raise SchemaError(f"tag {tag} follows tag {last}", start)
        if size > end - input.position:
            raise short(size, input.position, end)
        last, stop = tag, input.position + size
        part = with_tag(table, tag)
        if part is not None:
            read_tagged_field(part, input, found, stop)
        elif unknown is not None:
            unknown.append((tag, PyBytes_FromStringAndSize(<const char*>input.data + input.position, size)))
        input.position = stop
    if unknown:
        found[UNKNOWN] = unknown
    return 0


cdef Part with_tag(Table table, Py_ssize_t tag):
    cdef Part part
    for part in table.tagged:
        if part.tag == tag:
            return part
    return None


cdef int read_tagged_field(Part part, Input* input, object found, Py_ssize_t stop) except -1:
    """Read a field that ends where its size says."""
    cdef Py_ssize_t end = input.end
    input.end = stop
    value = read_part(part, input)
    input.end = end
    if input.position != stop:
        reason = f"{stop - input.position} bytes are left over in the tagged field"
        raise SchemaError(reason, input.position).inside(part.name)
    if part.offset:
        set_slot(found, part, value)
    else:
        found[part.name] = value
    return 0


# Errors


cdef object short(Py_ssize_t size, Py_ssize_t position, Py_ssize_t end):
    """The error for a value of ``size`` bytes that would exceed the end."""
    return SchemaError(f"needs {size} bytes, {end - position} are left", position)


cdef object null(str name, Py_ssize_t position):
    """The error for a null where the version allows none."""
    return SchemaError("is null, which this version does not allow", position).inside(name)
