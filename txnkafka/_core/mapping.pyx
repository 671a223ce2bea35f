"""Mapping: the beginning of a file as memory, which can be read safely even if the file changes.

Bytes that are no longer in the file, or that the disk cannot deliver, read as zero instead of ending the
process (see mapping.h). So the caller checks ``changed()`` after a read, before it trusts the bytes; when it
is true, the file must be read again.
"""
from libc.errno cimport errno
from libc.stdint cimport int64_t, uintptr_t

import os

cdef extern from "mapping.h" nogil:
    ctypedef struct mapped_region "struct mapped_region":
        uintptr_t begin
        int lost
        int descriptor

    ctypedef struct stat_t "struct stat":
        int64_t st_size

    int fstat(int descriptor, stat_t* status)
    int64_t change_time(const stat_t* status)
    int guard_mappings()
    mapped_region* map_region(int descriptor, size_t size)
    void unmap_region(mapped_region* region)

cdef extern from "fcntl.h" nogil:
    int F_DUPFD_CLOEXEC
    int fcntl(int descriptor, int command, int least)

cdef extern from "unistd.h" nogil:
    int close(int descriptor)

cdef extern from "Python.h":
    int PyBuffer_FillInfo(Py_buffer*, object, void*, Py_ssize_t, int, int) except -1


cdef object failure():
    return OSError(errno, os.strerror(errno))


cdef class Mapping:
    """The first ``size`` bytes (at least one) of the open file ``descriptor``, read only.

    Memory and file stay as long as a view of the mapping exists; ``descriptor`` may be closed at once. Raises
    OSError when the file cannot be mapped, or SIGBUS cannot be handled.
    """

    cdef mapped_region* region
    cdef readonly Py_ssize_t size
    cdef int64_t change_time

    def __cinit__(self, int descriptor, Py_ssize_t size):
        cdef stat_t status
        cdef int own
        if size <= 0:
            raise ValueError(f"{size} bytes cannot be mapped")
        own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        if own < 0:
            raise failure()
        # the time of the last change first: later changes are detected
        if fstat(own, &status) == 0:
            self.change_time = change_time(&status)
            self.region = map_region(own, <size_t>size)
        if self.region == NULL:
            error = failure()
            close(own)
            raise error
        self.size = size

    def __dealloc__(self):
        if self.region != NULL:
            unmap_region(self.region)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, <void*>self.region.begin, self.size, 1, flags)

    def __len__(self):
        return self.size

    def read(self, Py_ssize_t position, Py_ssize_t length):
        """Return a view of ``length`` bytes from ``position`` on, fewer at the end. Raises OSError when other
        code in the process has replaced the SIGBUS handler."""
        if guard_mappings() != 0:
            raise failure()
        return memoryview(self)[position:position + length]

    def changed(self):
        """Return whether the file has changed since it was mapped (bytes, size, names), or some of its bytes
        could not be read."""
        cdef stat_t status
        if self.region.lost or fstat(self.region.descriptor, &status) != 0:
            return True
        return change_time(&status) != self.change_time
