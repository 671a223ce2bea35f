"""Writes messages by the programs of ``message_table``, the mirror of ``message_reader``.

Records are not copied: the result is a list of buffers, what was encoded and the caller's own between. The
logs' tables are strict: a missing or unknown field, a tuple for a list and a number for a bool are refused.
Tagged fields that have their default are left out. What does not fit is a ``SchemaError`` with its path.
"""
from base64 import urlsafe_b64decode
from reprlib import repr as short_repr

from cpython.buffer cimport PyBUF_FULL_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.object cimport Py_NE, PyObject, PyObject_RichCompare
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memmove

from txnkafka._core.bytes cimport store_i16, store_i32, store_i64
from txnkafka._core.message_table cimport (
    KIND_ARRAY,
    KIND_BOOL,
    KIND_BYTES,
    KIND_FLOAT64,
    KIND_RECORDS,
    KIND_STRING,
    KIND_STRUCT,
    KIND_UUID,
    MAX_LENGTH,
    MAX_STRING_BYTES,
    Kind, Part, Table, slot_of,
)
from txnkafka._core.message_table import SchemaError, misfit
from txnkafka.bounds import MAX_SCHEMA_VALUES

cdef extern from "Python.h":
    int PyBuffer_ToContiguous(void* out, Py_buffer* view, Py_ssize_t size, char order) except -1

cdef enum:
    INLINE_SIZE = 512
    UUID_CHARACTERS = 22
    MOST_UUIDS = 1024

cdef str UNKNOWN = "unknown_tagged_fields"
cdef list NOTHING = []
cdef int64_t MAX_TAG = 0xFFFFFFFF


cdef class Output:
    """Bytes, in the object as long as they are few, and where between them buffers belong."""

    cdef uint8_t[INLINE_SIZE] inside
    cdef uint8_t* data
    cdef Py_ssize_t size, capacity
    cdef list buffers
    cdef list positions
    cdef int tagged_depth
    cdef Py_ssize_t gathered

    def __cinit__(self):
        self.data, self.capacity = self.inside, INLINE_SIZE

    def __dealloc__(self):
        if self.data != self.inside:
            PyMem_Free(self.data)

    cdef uint8_t* more(self, Py_ssize_t size) except NULL:
        """Room for ``size`` bytes, which count as written."""
        if size > self.capacity - self.size:
            self.grow(self.size + size)
        cdef uint8_t* place = self.data + self.size
        self.size += size
        return place

    cdef int grow(self, Py_ssize_t least) except -1:
        cdef Py_ssize_t capacity = max(least, 2 * self.capacity)
        cdef bint is_inside = self.data == self.inside
        cdef uint8_t* data = <uint8_t*>PyMem_Realloc(NULL if is_inside else self.data, capacity)
        if data == NULL:
            raise MemoryError(f"{capacity} bytes for a message")
        if is_inside:
            memcpy(data, self.inside, self.size)
        self.data, self.capacity = data, capacity
        return 0

    cdef list pieces(self):
        """What was written, with each buffer at its position."""
        cdef Py_ssize_t i, position, start = 0
        cdef list found = []
        if self.buffers is None:
            return [PyBytes_FromStringAndSize(<char*>self.data, self.size)]
        for i in range(len(self.buffers)):
            position = self.positions[i]
            found.append(PyBytes_FromStringAndSize(<char*>self.data + start, position - start))
            found.append(self.buffers[i])
            start = position
        if start < self.size:
            found.append(PyBytes_FromStringAndSize(<char*>self.data + start, self.size - start))
        return found


def write(Table table not None, value):
    """Return the bytes of a struct, records copied between them. Raises ``SchemaError``."""
    cdef Output out = Output.__new__(Output)
    out.tagged_depth = 1
    write_struct(table, value, out)
    return PyBytes_FromStringAndSize(<char*>out.data, out.size)


def write_frame(Table table not None, bytes header not None, value):
    """Return the buffers of a header and a message, after four bytes with their size. Raises
    ``SchemaError``."""
    cdef Output out = Output.__new__(Output)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(header)
    memcpy(out.more(4 + size) + 4, PyBytes_AS_STRING(header), size)
    write_struct(table, value, out)
    size = out.size - 4 + out.gathered
    if size > MAX_LENGTH:
        raise SchemaError(f"{size} bytes are more than a frame may have")
    store_i32(out.data, <int>size)
    return out.pieces()


def write_client_id(value):
    """Return the client id of a request's header, which is never compact (KIP-482). Raises
    ``SchemaError``."""
    cdef Output out = Output()
    write_text(CLIENT_ID, value, out)
    return PyBytes_FromStringAndSize(<char*>out.data, out.size)


cdef Part CLIENT_ID = Part("client_id", "string", nullable=True)


# Structs


cdef int write_struct(Table table, object value, Output out) except -1:
    cdef Part part
    cdef Py_ssize_t i
    if table.cls is None:
        check_fields(table, value)
    elif type(value) is not table.cls and not isinstance(value, table.cls):
        raise TypeError(f"{short_repr(value)} is no {table.cls.__name__}")
    for i in range(PyTuple_GET_SIZE(table.refused)):
        part = <Part>PyTuple_GET_ITEM(table.refused, i)
        field = field_of(table, part, value)
        if differs(part, field):
            reason = f"this version has no such field for {short_repr(field)}"
            raise SchemaError(reason).inside(part.name)
    for i in range(PyTuple_GET_SIZE(table.positional)):
        part = <Part>PyTuple_GET_ITEM(table.positional, i)
        write_part(part, field_of(table, part, value), out)
    if table.flexible:
        write_tagged_fields(table, value, out)
    return 0


cdef object field_of(Table table, Part part, object value):
    """The value of a field; of a tagged one that a dictionary does not have, its default."""
    cdef PyObject* found
    if table.cls is None:
        if part.tag < 0:
            return (<dict>value)[part.name]
        return (<dict>value).get(part.name, part.default)
    found = slot_of(<PyObject*>value, part)[0]
    if found == NULL:
        raise AttributeError(part.name)
    return <object>found


cdef bint differs(Part part, object value) except -1:
    """Return whether a value is not the default; an empty list is as good as an empty tuple."""
    cdef object default = part.default
    if value is default:
        return False
    if default is None:
        return True
    if not part.strict and (part.kind == KIND_ARRAY or part.kind == KIND_BYTES):
        return value is None or len(value)
    return PyObject_RichCompare(value, default, Py_NE)


cdef int write_part(Part part, object value, Output out) except -1:
    cdef Kind kind = part.kind
    if kind < KIND_FLOAT64:
        return write_integer(part, value, out)
    if kind == KIND_STRING:
        return write_text(part, value, out)
    if kind == KIND_ARRAY:
        return write_array(part, value, out)
    if kind == KIND_STRUCT:
        return write_inner(part, value, out)
    if kind == KIND_UUID:
        return write_uuid(part, value, out)
    if kind == KIND_FLOAT64:
        return write_float(part, value, out)
    return write_bytes(part, value, out)


cdef int write_inner(Part part, object value, Output out) except -1:
    """A struct that is a field; if it may be null, it follows a byte, which is 1 or means null."""
    if value is None:
        if not part.nullable:
            raise misfit("struct", None).inside(part.name)
        out.more(1)[0] = 0xFF if part.tag < 0 else 0
        return 0
    if part.nullable:
        out.more(1)[0] = 1
    try:
        return write_struct(part.table, value, out)
    except SchemaError as error:
        error.inside(part.name)
        raise


# Numbers


cdef int write_integer(Part part, object value, Output out) except -1:
    cdef int64_t found
    cdef int overflow = 0
    if value is True or value is False:
        found = value is True
    elif part.strict and part.kind == KIND_BOOL:
        raise misfit("bool", value).inside(part.name)
    else:
        if not PyLong_Check(value) and not PyIndex_Check(value):
            raise misfit(part.type, value).inside(part.name)
        found = PyLong_AsLongLongAndOverflow(PyNumber_Index(value), &overflow)
        if overflow or found < part.lowest or found > part.highest:
            raise misfit(part.type, value).inside(part.name)
    cdef uint8_t* p = out.more(part.size)
    if part.size == 4:
        store_i32(p, <int>found)
    elif part.size == 8:
        store_i64(p, found)
    elif part.size == 2:
        store_i16(p, <short>found)
    else:
        p[0] = <uint8_t>found
    return 0


cdef int write_float(Part part, object value, Output out) except -1:
    cdef double number
    cdef int64_t bits
    try:
        number = PyFloat_AsDouble(value)
    except (TypeError, OverflowError):
        raise misfit(part.type, value).inside(part.name) from None
    memcpy(&bits, &number, 8)
    store_i64(out.more(8), bits)
    return 0


cdef dict UUIDS = {}  # those of topics are written with each request


cdef int write_uuid(Part part, object value, Output out) except -1:
    cdef bytes data = UUIDS.get(value, b"") if isinstance(value, str) else b""
    if not data and isinstance(value, str) and len(value) == UUID_CHARACTERS:
        try:
            data = urlsafe_b64decode(value + "==")
        except ValueError:
            pass
        if PyBytes_GET_SIZE(data) == 16:
            if len(UUIDS) >= MOST_UUIDS:
                UUIDS.clear()
            UUIDS[value] = data
    if PyBytes_GET_SIZE(data) == 16:
        memcpy(out.more(16), PyBytes_AS_STRING(data), 16)
        return 0
    raise misfit(f"uuid of {UUID_CHARACTERS} characters in base64", value).inside(part.name)


# Lengths, strings, bytes


cdef int write_length(Part part, Py_ssize_t length, Output out) except -1:
    """The length or count of a part, -1 for null."""
    if part.compact:
        return write_uvarint(<uint64_t>(length + 1), out)
    if part.kind == KIND_STRING:
        store_i16(out.more(2), <short>length)
        return 0
    if length > MAX_LENGTH:
        raise SchemaError(f"{length} elements are more than {MAX_LENGTH}").inside(part.name)
    store_i32(out.more(4), <int>length)
    return 0


cdef int write_uvarint(uint64_t value, Output out) except -1:
    while value > 0x7F:
        out.more(1)[0] = <uint8_t>(value & 0x7F | 0x80)
        value >>= 7
    out.more(1)[0] = <uint8_t>value
    return 0


cdef int write_text(Part part, object value, Output out) except -1:
    cdef Py_ssize_t size
    cdef const char* text
    if value is None and part.nullable:
        return write_length(part, -1, out)
    if not isinstance(value, str):
        raise misfit("string", value).inside(part.name)
    try:
        text = PyUnicode_AsUTF8AndSize(value, &size)
    except UnicodeEncodeError:
        reason = f"{short_repr(value)} has a lone surrogate, which UTF-8 cannot encode"
        raise SchemaError(reason).inside(part.name) from None
    if size > MAX_STRING_BYTES:
        raise SchemaError(f"string has {size} bytes, more than {MAX_STRING_BYTES}").inside(part.name)
    write_length(part, size, out)
    memcpy(out.more(size), text, size)
    return 0


cdef int write_bytes(Part part, object value, Output out) except -1:
    """Bytes, or records, which are not copied; a view may have gaps or larger items."""
    cdef Py_buffer view
    if value is None and part.nullable:
        return write_length(part, -1, out)
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise misfit("bytes", value).inside(part.name)
    PyObject_GetBuffer(value, &view, PyBUF_FULL_RO)
    try:
        if view.len > MAX_LENGTH:
            raise SchemaError(f"{view.len} bytes are more than {MAX_LENGTH}").inside(part.name)
        write_length(part, view.len, out)
        if part.kind != KIND_RECORDS or out.tagged_depth:
            PyBuffer_ToContiguous(out.more(view.len), &view, view.len, b"C")
        elif view.len:
            gather(value, view.len, out)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int gather(object buffer, Py_ssize_t size, Output out) except -1:
    if out.buffers is None:
        out.buffers, out.positions = [], []
    out.buffers.append(buffer)
    out.positions.append(out.size)
    out.gathered += size
    return 0


# Arrays


cdef int write_array(Part part, object value, Output out) except -1:
    cdef Py_ssize_t i = 0
    cdef Part element = part.element
    cdef tuple elements
    if value is None:
        if not part.nullable:
            raise misfit("array", None).inside(part.name)
        return write_length(part, -1, out)
    if part.strict:
        check_list(part, value)
    elements = tuple(value)  # a list may change during the iteration
    write_length(part, len(elements), out)
    try:
        for i in range(PyTuple_GET_SIZE(elements)):
            found = <object>PyTuple_GET_ITEM(elements, i)
            if found is None:
                raise misfit("element", None)
            if element.kind == KIND_STRUCT:
                write_struct(element.table, found, out)
            else:
                write_part(element, found, out)
    except SchemaError as error:
        error.inside(f"[{i}]").inside(part.name)
        raise
    return 0


# Tagged fields (KIP-482)


cdef int write_tagged_fields(Table table, object value, Output out) except -1:
    """Write the fields that do not have their defaults, in the order of their tags."""
    cdef Py_ssize_t i, at = 0, count = 0
    cdef uint64_t chosen = 0
    cdef Part part
    cdef list unknown = NOTHING if table.cls is not None else unknown_fields(table, value)
    for i in range(PyTuple_GET_SIZE(table.tagged)):
        part = <Part>PyTuple_GET_ITEM(table.tagged, i)
        if differs(part, field_of(table, part, value)):
            chosen |= <uint64_t>1 << i
            count += 1
    write_uvarint(count + len(unknown), out)
    for i in range(PyTuple_GET_SIZE(table.tagged)):
        if not chosen >> i & 1:
            continue
        part = <Part>PyTuple_GET_ITEM(table.tagged, i)
        while at < len(unknown) and unknown[at][0] < part.tag:
            write_unknown(unknown[at], out)
            at += 1
        write_uvarint(part.tag, out)
        out.tagged_depth += 1
        write_tagged_field(part, field_of(table, part, value), out)
        out.tagged_depth -= 1
    for i in range(at, len(unknown)):
        write_unknown(unknown[i], out)
    return 0


cdef int write_tagged_field(Part part, object value, Output out) except -1:
    """Write the size of a field and the field."""
    cdef Py_ssize_t size, length, start = out.size
    out.more(1)
    write_part(part, value, out)
    size = out.size - start - 1
    if size < 0x80:
        out.data[start] = <uint8_t>size
        return 0
    write_uvarint(size, out)  # after the field, for its length
    length = out.size - start - 1 - size
    out.size = start + 1 + size
    out.more(length - 1)
    memmove(out.data + start + length, out.data + start + 1, size)
    out.size = start
    write_uvarint(size, out)
    out.size += size
    return 0


cdef int write_unknown(tuple field, Output out) except -1:
    cdef bytes data = field[1]
    write_uvarint(field[0], out)
    write_uvarint(PyBytes_GET_SIZE(data), out)
    memcpy(out.more(PyBytes_GET_SIZE(data)), PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return 0


# Checks of dictionaries


cdef int check_fields(Table table, object value) except -1:
    """Refuse what is no dictionary with the names of the version."""
    cdef Part part
    if not isinstance(value, dict):
        raise misfit("struct", value)
    cdef Py_ssize_t left = len(value)
    for part in table.positional:
        if part.name not in value:
            raise SchemaError("is missing").inside(part.name)
        left -= 1
    if not left:
        return 0
    names = {part.name for part in table.positional}
    if table.flexible:
        names |= {UNKNOWN, *(part.name for part in table.tagged)}
    for name in value:
        if name not in names:
            raise SchemaError("this version has no such field").inside(str(name))
    return 0


cdef list unknown_fields(Table table, dict value):
    """The tagged fields that the version does not know, by their tags."""
    if UNKNOWN not in value:
        return NOTHING
    cdef Part part
    fields = value[UNKNOWN]
    if not isinstance(fields, list):
        raise misfit("list of (tag, bytes)", fields).inside(UNKNOWN)
    known = {part.tag for part in table.tagged}
    last, found = -1, []
    for field in fields:
        if not is_unknown_field(field, last, known):
            kind = f"(tag, bytes) behind tag {last} with a tag that this version does not know"
            raise misfit(kind, field).inside(UNKNOWN)
        last = field[0]
        found.append((int(last), bytes(field[1])))
    return found


cdef bint is_unknown_field(object field, object last, set known) except -1:
    if not isinstance(field, (tuple, list)) or len(field) != 2:
        return False
    tag, data = field
    return isinstance(tag, int) and isinstance(data, bytes) and last < tag <= MAX_TAG and tag not in known


cdef int check_list(Part part, object value) except -1:
    if not isinstance(value, list):  # a tuple would not equal a default
        raise misfit("list", value).inside(part.name)
    if len(value) > MAX_SCHEMA_VALUES:
        reason = f"{len(value)} elements, a record has at most {MAX_SCHEMA_VALUES} values"
        raise SchemaError(reason).inside(part.name)
    return 0
