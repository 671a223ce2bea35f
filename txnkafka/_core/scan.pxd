# The batches of a segment; see scan.pyx.
from txnkafka._core.batch_entry cimport BatchEntry

cdef class BatchIndex:
    cdef BatchEntry* entries
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t exports         # columns handed out and not released
    cdef readonly object end_position
    cdef readonly str stop
    cdef readonly str stop_reason
    cdef int reserve(self, Py_ssize_t more) except -1
