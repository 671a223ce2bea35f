# The sizes from which on compiled code releases the interpreter's lock. Less work takes a few microseconds;
# passing the lock to a busy thread and getting it back takes milliseconds.
cdef enum:
    LARGE = 64 << 10                # bytes to write, to checksum or to walk over
    MANY = 2000                     # records to measure
