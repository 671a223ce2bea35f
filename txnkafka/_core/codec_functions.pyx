"""CodecFunctions: checks and decompresses the compressed batches of a chunk in one call with the GIL
released, by C functions that are found at run time (codec_functions.h).

What these do not read, because a library is missing or a batch is damaged or unusual, is left to the readers
in ``txnkafka.record.codecs``: the call returns at that batch.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

import os

from txnkafka._core.batch_entry cimport BatchEntry, batch_crc
from txnkafka._core.batch_header cimport ATTRIBUTE_CODEC, HEADER_SIZE, MAGIC_2
from txnkafka._core.crc32c cimport crc_initialize
from txnkafka._core.read_committed cimport SKIP
from txnkafka._core.scan cimport BatchIndex, IndexHold

cdef extern from "codec_functions.h" nogil:
    int CODEC_DONE
    int CODEC_ROOM

    ctypedef struct codec_output "struct codec_output":
        uint8_t* data
        int64_t end
        int64_t capacity
        int64_t limit

    ctypedef struct codec_contexts "struct codec_contexts":
        pass

    const char** codec_found
    int name_binding(int codec, const char* file)
    bint has_codec(int codec)
    void free_contexts(codec_contexts* contexts)
    int decompress_payload(codec_contexts* contexts, int codec, const uint8_t* data, int64_t size,
                           codec_output* out)
    const char* lz4_version "codec_library.lz4_version"()
    const char* zstd_version "codec_library.zstd_version"()

crc_initialize()

cdef enum:
    # instead of a size: the batch is not read here; its CRC does not match its bytes
    NOT_READ = -1
    WRONG_CRC = -2

LEFT, DAMAGED = NOT_READ, WRONG_CRC

cdef struct Run:
    const uint8_t* source
    int64_t length
    int64_t position                # of source[0] in the file
    const uint8_t* selection
    int64_t full                    # no batch is begun after this position of the output
    int64_t large                   # a batch with more bytes is the last
    int64_t max_ratio
    int64_t always_allowed
    int64_t max_bytes


def use_bindings(dict files):
    """Name the shared objects of Python's bindings, by codec (1 to 4), before a codec is used first."""
    cdef bytes file
    for codec, path in files.items():
        file = os.fsencode(path)
        if not 1 <= codec <= 4:
            raise ValueError(f"unknown codec {codec}")
        if not name_binding(codec, file):
            raise MemoryError("no memory for the name of a library")


def codec_libraries():
    """Return the files whose functions are used: Kafka's names of the codecs to paths, with the version if
    the library tells it. A codec whose functions were not found is missing."""
    found = {}
    cdef int codec
    for codec, name in enumerate(("gzip", "snappy", "lz4", "zstd"), 1):
        if has_codec(codec):
            found[name] = os.fsdecode(<bytes>codec_found[codec])
    if "lz4" in found:
        found["lz4"] += f" {(<bytes>lz4_version()).decode()}"
    if "zstd" in found:
        found["zstd"] += f" {(<bytes>zstd_version()).decode()}"
    return found


cdef class CodecFunctions:
    """The decompression contexts of one reader, for one thread at a time.

    A payload of n bytes may become ``max_ratio`` times n bytes, ``always_allowed`` bytes if that is more, at
    most ``max_bytes``. Without ``enabled`` none is read here, and ``decompress_batches`` only checks CRCs.
    """

    cdef codec_contexts contexts
    cdef readonly bint enabled
    cdef int64_t max_ratio
    cdef int64_t always_allowed
    cdef public int64_t max_bytes

    def __cinit__(self, *, bint enabled, int64_t max_ratio, int64_t always_allowed, int64_t max_bytes):
        memset(&self.contexts, 0, sizeof(codec_contexts))
        self.enabled = enabled
        self.max_ratio = max_ratio
        self.always_allowed = always_allowed
        self.max_bytes = max_bytes

    def __dealloc__(self):
        free_contexts(&self.contexts)

    def decompress(self, int codec, const uint8_t[::1] payload not None, uint8_t[::1] output not None,
                   int64_t end):
        """Decompress one payload to ``output[end:]``. Returns (the position after its content, 0); (``end``,
        LEFT) for a payload that is not read here; (``end``, size) if ``output`` must have ``size`` bytes."""
        cdef Run run
        cdef codec_output out
        cdef int status
        self.open(&run, &out, output, end)
        if not self.enabled or payload.shape[0] == 0:
            return end, LEFT
        out.limit = end + allowed(&run, payload.shape[0])
        with nogil:
            status = decompress_payload(&self.contexts, codec, &payload[0], payload.shape[0], &out)
        if status == CODEC_DONE:
            return out.end, 0
        return end, out.end if status == CODEC_ROOM else LEFT

    def decompress_batches(
        self,
        const uint8_t[::1] source not None,
        int64_t position,
        BatchIndex index not None,
        const uint8_t[::1] selection not None,
        Py_ssize_t start,
        Py_ssize_t stop,
        int64_t[::1] regions not None,
        uint8_t[::1] output not None,
        int64_t end,
        int64_t full,
        int64_t large,
    ):
        """Check the CRCs of the selected ones of batches ``start`` to ``stop``, all of magic 2, and
        decompress them one after another to ``output[end:]``.

        ``source`` begins at byte ``position`` of the file. Begin and end of the records of batch
        ``start + k`` in ``output`` become ``regions[2 * k]`` and ``regions[2 * k + 1]``, 0 and 0 if it is not
        selected or has no records. No batch is begun when ``end`` is above ``full``, and one with more than
        ``large`` bytes of records is the last.

        Returns (number of the batch to continue with, the new ``end``, size). ``size`` is what ``output``
        must have for the next batch; LEFT if that is not read here, DAMAGED if its CRC is wrong; 0 if no
        batch is to be begun any more.
        """
        cdef IndexHold _held = index.hold()
        cdef Run run
        cdef codec_output out
        cdef Py_ssize_t i
        cdef int64_t size = 0
        if not 0 <= start <= stop <= index.count:
            raise IndexError(f"batches {start} to {stop} of {index.count}")
        if selection.shape[0] < stop or regions.shape[0] < 2 * (stop - start):
            raise ValueError("the selection or the regions do not cover all batches")
        if start == stop:
            return stop, end, 0
        self.open(&run, &out, output, end)
        run.source = &source[0] if source.shape[0] else NULL
        run.length = source.shape[0]
        run.position = position
        run.selection = &selection[0]
        run.full = full
        run.large = large
        with nogil:
            i = decompress_run(self, &run, index.entries, start, stop, &regions[0], &out, &size)
        return i, out.end, size

    cdef int open(self, Run* run, codec_output* out, uint8_t[::1] output, int64_t end) except -1:
        if not 0 <= end <= output.shape[0]:
            raise ValueError(f"position {end} of an output of {output.shape[0]} bytes")
        out.data = &output[0] if output.shape[0] else NULL
        out.capacity = output.shape[0]
        out.end = end
        run.max_ratio = self.max_ratio
        run.always_allowed = self.always_allowed
        run.max_bytes = self.max_bytes
        return 0


cdef int64_t allowed(Run* run, int64_t size) noexcept nogil:
    return min(max(run.max_ratio * size, run.always_allowed), run.max_bytes)


cdef bint is_sound(Run* run, BatchEntry* e) noexcept nogil:
    cdef int64_t at = e.position - run.position
    if at < 0 or e.size < HEADER_SIZE or at > run.length - e.size or e.magic != MAGIC_2:
        return False
    return batch_crc(run.source + at, e.size) == e.crc


cdef Py_ssize_t decompress_run(
    CodecFunctions self,
    Run* run,
    BatchEntry* entries,
    Py_ssize_t start,
    Py_ssize_t stop,
    int64_t* regions,
    codec_output* out,
    int64_t* size,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef BatchEntry* e
    cdef int64_t begin, length
    cdef int64_t* region
    cdef int status
    for i in range(start, stop):
        e = &entries[i]
        region = regions + 2 * (i - start)
        region[0] = region[1] = 0
        if run.selection[i] == SKIP:
            continue
        if out.end > run.full:
            return i
        if not is_sound(run, e):
            size[0] = WRONG_CRC
            return i
        if e.count == 0:
            continue                # as in Kafka: the records of an empty batch are not read
        begin, length = out.end, e.size - HEADER_SIZE
        out.limit = begin + allowed(run, length)
        status = decompress_payload(
            &self.contexts, e.attributes & ATTRIBUTE_CODEC if self.enabled else 0,
            run.source + (e.position - run.position) + HEADER_SIZE, length, out,
        )
        if status != CODEC_DONE:
            size[0] = out.end if status == CODEC_ROOM else NOT_READ
            out.end = begin
            return i
        region[0], region[1] = begin, out.end
        if out.end - begin > run.large:
            return i + 1
    return stop
