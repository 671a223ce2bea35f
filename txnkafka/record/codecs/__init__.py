"""One module per codec; each accepts exactly what the Java client of Kafka 4.3 accepts.

Each ``decompress_…(output, payload, magic)`` writes one payload's content to ``output`` from ``output.end``
on and returns the position behind the last byte; ``output.end`` itself is left alone. Foreign bytes that
break the framing raise ``CorruptRecordError``; what the bindings find inside a block they raise as one of
``BINDING_ERRORS``.
"""

from __future__ import annotations

from typing import cast

from cramjam import DecompressionError
from isal.igzip_lib import IsalError

from txnkafka.record.codecs.gzip import decompress_gzip
from txnkafka.record.codecs.lz4 import LZ4_ERRORS, decompress_lz4
from txnkafka.record.codecs.snappy import decompress_snappy
from txnkafka.record.codecs.zstd import ZSTD_ERRORS, decompress_zstd

__all__ = ["BINDING_ERRORS", "decompress_gzip", "decompress_lz4", "decompress_snappy", "decompress_zstd"]

# isal's stub says that its error is an instance.
BINDING_ERRORS: tuple[type[Exception], ...] = (
    DecompressionError,
    cast(type[Exception], IsalError),
    *LZ4_ERRORS,
    *ZSTD_ERRORS,
)
