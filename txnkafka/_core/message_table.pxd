# Programs of message_reader and message_writer: the parts of a struct in one version.
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t

cdef enum Kind:
    # numbers and uuids, which have a fixed size, first
    KIND_BOOL
    KIND_INT8
    KIND_INT16
    KIND_UINT16
    KIND_INT32
    KIND_INT64
    KIND_FLOAT64
    KIND_UUID
    KIND_STRING
    KIND_BYTES
    KIND_RECORDS
    KIND_ARRAY
    KIND_STRUCT

cpdef enum:
    MAX_STRING_BYTES = 0x7FFF
    MAX_LENGTH = 0x7FFFFFFF


cdef class Part:
    cdef readonly str name
    cdef readonly str type
    cdef Kind kind
    cdef Py_ssize_t size
    cdef int64_t lowest, highest
    cdef bint nullable, compact, strict
    cdef Py_ssize_t tag
    cdef Py_ssize_t offset
    cdef object default
    cdef object make_default
    cdef Part element
    cdef Table table
    cdef Py_ssize_t minimum_size, values

    cdef object default_value(self)


cdef class Table:
    cdef type cls
    cdef bint flexible
    cdef tuple positional
    cdef tuple tagged
    cdef tuple absent
    cdef tuple refused


cdef Py_ssize_t offset_in(type cls, str name) except -1


cdef inline PyObject** slot_of(PyObject* owner, Part part) noexcept:
    return <PyObject**>(<char*>owner + part.offset)
