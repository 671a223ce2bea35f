"""Computes CRC-32C, which Kafka uses for record batches and producer snapshots.

The decoders do not call this module: they share ``crc32c.h``. It is used for the few checksums outside of hot
loops, and by tests that compare the implementations which this machine supports.
"""
from libc.stdint cimport uint8_t, uint32_t

from txnkafka._core.crc32c cimport crc32c_function, crc_implementation_count, crc_initialize

cdef extern from * nogil:
    """
    #include "crc32c.h"
    static const char *crc_name(int i) { return crc_implementations[i].name; }
    static crc32c_function crc_function(int i) { return crc_implementations[i].function; }
    """
    const char* crc_name(int i)
    crc32c_function crc_function(int i)

crc_initialize()


def implementations():
    """Return the names of the implementations that this machine supports, the one in use first."""
    return [crc_name(i).decode() for i in range(crc_implementation_count)]


def crc32c(const uint8_t[::1] data not None, uint32_t value=0):
    """Return the CRC-32C of ``data``; ``value`` is the CRC of the bytes before it."""
    return _run(crc_function(0), data, value)


def crc32c_with(str name, const uint8_t[::1] data not None, uint32_t value=0):
    """Return the same as ``crc32c``, by one implementation; raises ``ValueError`` if this machine does not
    support it."""
    for i in range(crc_implementation_count):
        if crc_name(i).decode() == name:
            return _run(crc_function(i), data, value)
    raise ValueError(f"no CRC-32C implementation {name!r} here, only {', '.join(implementations())}")


cdef uint32_t _run(crc32c_function function, const uint8_t[::1] data, uint32_t value):
    cdef size_t n = <size_t>data.shape[0]
    cdef const uint8_t* p = &data[0] if n else NULL
    cdef uint32_t result = value
    if n:
        with nogil:
            result = function(value, p, n)
    return result
