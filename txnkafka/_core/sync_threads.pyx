"""SyncThreads: syncs the files of a group at the same time, in threads without the interpreter's lock."""
from libc.stdlib cimport free, realloc

import os

cdef extern from "sync_threads.h" nogil:
    ctypedef struct sync_group "struct sync_group":
        int started
        int left
        int readable
        int done

    int open_sync_signal(sync_group* group)
    void close_sync_signal(sync_group* group)
    bint take_sync_signal(sync_group* group)
    int start_sync_threads(sync_group* group)
    void begin_syncs(sync_group* group, const int* descriptors, int* errors, int count)
    void close_sync_threads(sync_group* group)


cdef class SyncThreads:
    """One group is under way at a time: ``begin``, then ``finish`` when ``fileno`` is readable. For one
    thread. Raises OSError when no thread can be started."""

    cdef sync_group group
    cdef int* descriptors
    cdef int* errors
    cdef int count

    def __cinit__(self):
        self.group.readable, self.group.done = -1, -1
        cdef int error = open_sync_signal(&self.group)
        if not error:
            error = start_sync_threads(&self.group)
        if error:
            raise failure(error)

    def __dealloc__(self):
        with nogil:
            close_sync_threads(&self.group)
        free(self.descriptors)
        free(self.errors)
        close_sync_signal(&self.group)

    def fileno(self):
        """Return a descriptor that is readable when the group is synced."""
        return self.group.readable

    def begin(self, descriptors):
        """Begin to sync these files, at least one; they must stay open until ``finish``."""
        cdef int count = len(descriptors), i
        if self.count or not count:
            raise ValueError("a group is under way" if self.count else "no file to sync")
        self.descriptors = <int*>grown(self.descriptors, count)
        self.errors = <int*>grown(self.errors, count)
        for i in range(count):
            self.descriptors[i] = descriptors[i]
        self.count = count
        begin_syncs(&self.group, self.descriptors, self.errors, count)

    def finish(self):
        """Return the OSError of each file, None if it is synced; None for all while some are not."""
        cdef int i
        if not self.count or not take_sync_signal(&self.group):
            return None
        found = [failure(self.errors[i]) if self.errors[i] else None for i in range(self.count)]
        self.count = 0
        return found

    def close(self):
        """Wait for the syncs that have begun, and end the threads; ``finish`` does not report them."""
        with nogil:
            close_sync_threads(&self.group)


cdef object failure(int error):
    return OSError(error, os.strerror(error))


cdef void* grown(void* memory, int count) except NULL:
    memory = realloc(memory, count * sizeof(int))
    if memory == NULL:
        raise MemoryError
    return memory
