"""Chooses partitions of records by their keys, as Kafka's Java client does, and sorts columns by partition.

Columns are as in InputColumns: offsets (int32 or int64, one more than values), bytes, and a bitmap if there
are nulls. They are read with bounds; offsets that go back or past the data raise ValueError.
Source: ``Utils.murmur2``, ``BuiltInPartitioner.partitionForKey``.
"""
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

ctypedef fused offset_t:
    int32_t
    int64_t

cdef enum:
    SEED = 0x9747b28c
    FACTOR = 0x5bd1e995
    ROTATION = 24


cdef uint32_t hash_of(const uint8_t* p, Py_ssize_t length) noexcept nogil:
    cdef uint32_t h = <uint32_t>SEED ^ <uint32_t>length
    cdef uint32_t k
    cdef Py_ssize_t i = 0
    while i + 4 <= length:
        k = p[i] | <uint32_t>p[i + 1] << 8 | <uint32_t>p[i + 2] << 16 | <uint32_t>p[i + 3] << 24
        k *= <uint32_t>FACTOR
        k ^= k >> ROTATION
        k *= <uint32_t>FACTOR
        h = h * <uint32_t>FACTOR ^ k
        i += 4
    if length - i >= 3:
        h ^= <uint32_t>p[i + 2] << 16
    if length - i >= 2:
        h ^= <uint32_t>p[i + 1] << 8
    if length - i >= 1:
        h = (h ^ p[i]) * <uint32_t>FACTOR
    h ^= h >> 13
    h *= <uint32_t>FACTOR
    return h ^ h >> 15


def murmur2(const uint8_t[::1] data not None):
    """Return the hash of ``data``, as Java's int: -2147483648 to 2147483647."""
    return <int32_t>hash_of(&data[0] if data.shape[0] else NULL, data.shape[0])


cdef int32_t partition_of_key(object key, int32_t partitions) except -1:
    cdef const uint8_t[::1] view
    cdef uint32_t found
    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    if PyBytes_CheckExact(key):
        found = hash_of(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
    else:
        if isinstance(key, str):
            raise TypeError("the key must be bytes or None, not str: encode it, or give key_serializer")
        view = key
        found = hash_of(&view[0] if view.shape[0] else NULL, view.shape[0])
    return (found & 0x7FFFFFFF) % <uint32_t>partitions


def partition_of(key not None, int32_t partitions):
    """Return the partition of a key in a topic of ``partitions``. Raises ValueError for none, TypeError for a
    key that is not bytes-like."""
    return partition_of_key(key, partitions)


cdef bint is_valid(const uint8_t[::1] validity, Py_ssize_t i) noexcept nogil:
    return validity is None or (validity[i >> 3] >> (i & 7)) & 1


cdef int check(Py_ssize_t count, Py_ssize_t size, const uint8_t[::1] validity) except -1:
    if count < 0:
        raise ValueError("a column has one more offset than values")
    if validity is not None and validity.shape[0] < (count + 7) // 8:
        raise ValueError(f"the bitmap has {validity.shape[0]} bytes for {count} values")
    return 0


cdef int refuse(Py_ssize_t i) except -1:
    raise ValueError(f"the offsets of a column at value {i} go back or past the end of its data")


def partitions_of(
    const offset_t[::1] offsets not None,
    const uint8_t[::1] data,
    const uint8_t[::1] validity,
    int32_t partitions,
    int32_t without_key,
    int32_t[::1] out not None,
):
    """Write the partition of each key to ``out``; ``without_key`` for a null."""
    cdef Py_ssize_t i, count = offsets.shape[0] - 1, size = 0 if data is None else data.shape[0]
    cdef int64_t begin, end
    cdef const uint8_t* p = NULL
    check(count, size, validity)
    if partitions < 1 or out.shape[0] < count:
        raise ValueError(f"{partitions} partitions, room for {out.shape[0]} of {count} values")
    if size:
        p = &data[0]
    for i in range(count):
        if not is_valid(validity, i):
            out[i] = without_key
            continue
        begin, end = offsets[i], offsets[i + 1]
        if begin < 0 or end < begin or end > size:
            refuse(i)
        out[i] = <int32_t>((hash_of(p + begin, end - begin) & 0x7FFFFFFF) % <uint32_t>partitions)


def counting_order(
    const int32_t[::1] partition_of not None,
    int32_t partitions,
    int64_t[::1] order not None,
    int64_t[::1] bounds not None,
):
    """Sort records by partition, stably: ``order`` gets the numbers of the records, ``bounds`` the first
    place of each partition, and the end."""
    cdef Py_ssize_t i, count = partition_of.shape[0]
    cdef int32_t number
    cdef int64_t place
    if partitions < 1 or order.shape[0] != count or bounds.shape[0] != partitions + 1:
        raise ValueError(f"order and bounds do not fit {count} records of {partitions} partitions")
    bounds[:] = 0
    for i in range(count):
        number = partition_of[i]
        if not 0 <= number < partitions:
            raise ValueError(f"record {i} has partition {number}; the topic has 0 to {partitions - 1}")
        bounds[number + 1] += 1
    for i in range(partitions):
        bounds[i + 1] += bounds[i]
    for i in range(count):
        number = partition_of[i]
        if not 0 <= number < partitions or bounds[number] >= count:
            raise ValueError("the partitions were changed while they were sorted")
        place = bounds[number]
        order[place] = i
        bounds[number] = place + 1
    for i in range(partitions, 0, -1):
        bounds[i] = bounds[i - 1]
    bounds[0] = 0


def gather(
    const offset_t[::1] offsets not None,
    const uint8_t[::1] data,
    const uint8_t[::1] validity,
    const int64_t[::1] order not None,
):
    """Return offsets (int64), bytes and bitmap of the values with the numbers in ``order``. Raises ValueError
    for a number that no value has."""
    cdef Py_ssize_t i, n, total = 0, room, count = offsets.shape[0] - 1, wanted = order.shape[0]
    cdef Py_ssize_t size = 0 if data is None else data.shape[0]
    cdef int64_t begin, end
    check(count, size, validity)
    for i in range(wanted):
        n = order[i]
        if not 0 <= n < count:
            raise ValueError(f"no value has the number {n}; there are {count}")
        begin, end = offsets[n], offsets[n + 1]
        if begin < 0 or end < begin or end > size:
            refuse(n)
        total += end - begin if is_valid(validity, n) else 0
    cdef bytearray places = PyByteArray_FromStringAndSize(NULL, 8 * (wanted + 1))
    cdef bytearray content = PyByteArray_FromStringAndSize(NULL, total)
    cdef bytearray bits = None if validity is None else PyByteArray_FromStringAndSize(NULL, (wanted + 7) // 8)
    cdef int64_t* to = <int64_t*>PyByteArray_AS_STRING(places)
    cdef uint8_t* p = <uint8_t*>PyByteArray_AS_STRING(content)
    cdef uint8_t* bit = NULL
    if bits is not None:
        bit = <uint8_t*>PyByteArray_AS_STRING(bits)
        memset(bit, 0, <size_t>((wanted + 7) // 8))
    room = total
    to[0] = 0
    for i in range(wanted):
        n = order[i]
        to[i + 1] = to[i]
        if not 0 <= n < count or not is_valid(validity, n):
            continue
        begin, end = offsets[n], offsets[n + 1]
        if begin < 0 or end < begin or end > size or end - begin > room - to[i]:
            raise ValueError("the column was changed while it was sorted")
        if end > begin:
            memcpy(p + to[i], &data[begin], <size_t>(end - begin))
        to[i + 1] = to[i] + end - begin
        if bit != NULL:
            bit[i >> 3] |= <uint8_t>(1 << (i & 7))
    return places, content, bits


def gather_numbers(const int64_t[::1] numbers not None, const int64_t[::1] order not None):
    """Return the numbers at the places in ``order``, as int64. Raises ValueError for a place that does not
    exist."""
    cdef Py_ssize_t i, n, count = numbers.shape[0], wanted = order.shape[0]
    cdef bytearray content = PyByteArray_FromStringAndSize(NULL, 8 * wanted)
    cdef int64_t* to = <int64_t*>PyByteArray_AS_STRING(content)
    for i in range(wanted):
        n = order[i]
        if not 0 <= n < count:
            raise ValueError(f"no number has the place {n}; there are {count}")
        to[i] = numbers[n]
    return content
