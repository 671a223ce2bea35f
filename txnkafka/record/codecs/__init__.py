"""One module per codec; each accepts exactly the data that the Java client of Kafka 4.3 accepts.

Each ``decompress_…(output, payload, magic)`` writes one payload's content to ``output`` from ``output.end``
on and returns the position after the last byte; ``output.end`` itself is not changed. Bytes that break the
framing raise ``CorruptRecordError``; errors inside a block are raised by the bindings as one of
``BINDING_ERRORS``. Each ``compress_…(payload, level)`` returns the bytes that Kafka's own writer would write,
as far as the libraries agree.

The import loads all libraries, which takes 20 ms: ``record.compression`` imports this module for the first
compressed batch.
"""

from __future__ import annotations

from typing import cast

from cramjam import DecompressionError
from isal.igzip_lib import IsalError

from txnkafka._core.codec_functions import use_bindings
from txnkafka.record.codecs.gzip import GZIP_FILE, compress_gzip, decompress_gzip
from txnkafka.record.codecs.lz4 import LZ4_ERRORS, LZ4_FILE, compress_lz4, decompress_lz4
from txnkafka.record.codecs.snappy import compress_snappy, decompress_snappy
from txnkafka.record.codecs.zstd import ZSTD_ERRORS, ZSTD_FILE, compress_zstd, decompress_zstd

__all__ = [
    "BINDING_ERRORS",
    "compress_gzip",
    "compress_lz4",
    "compress_snappy",
    "compress_zstd",
    "decompress_gzip",
    "decompress_lz4",
    "decompress_snappy",
    "decompress_zstd",
]

# isal's stub declares its error as an instance.
BINDING_ERRORS: tuple[type[Exception], ...] = (
    DecompressionError,
    cast(type[Exception], IsalError),
    *LZ4_ERRORS,
    *ZSTD_ERRORS,
)

# By codec number, the shared objects that contain the C libraries, which usually export their functions.
use_bindings({codec: file for codec, file in ((1, GZIP_FILE), (3, LZ4_FILE), (4, ZSTD_FILE)) if file})
