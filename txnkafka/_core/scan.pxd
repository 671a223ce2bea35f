# The batches of a segment; see scan.pyx.
from txnkafka._core.batch_entry cimport BatchEntry

cdef class IndexHold:               # an index does not change until this is deleted
    cdef BatchIndex owner

cdef class BatchIndex:
    cdef BatchEntry* entries
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t users           # see atomic.pxd
    cdef readonly object end_position
    cdef readonly str stop
    cdef readonly str stop_reason
    # For readers of ``entries``; raises BufferError while another thread adds batches.
    cdef IndexHold hold(self)
    # Begin a change, which filled(&users, 0) ends; raises BufferError while the index has readers.
    cdef int acquire(self) except -1
    cdef int room_for(self, Py_ssize_t more) except -1
