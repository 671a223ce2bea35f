# When compiled code releases the interpreter's lock: for work of this size. Less takes a few microseconds;
# handing the lock over to a busy thread and getting it back takes milliseconds.
cdef enum:
    LARGE = 64 << 10                # bytes to write, to checksum or to walk over
    MANY = 2000                     # records to measure
