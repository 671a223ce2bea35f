from libc.stdint cimport int32_t

cdef int32_t partition_of_key(object key, int32_t partitions) except -1
