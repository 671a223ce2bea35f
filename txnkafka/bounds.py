"""The limits on the memory of a call, in one place, with the reason for each number.

ARCHITECTURE.md, "Memory and time", adds them up. Windows of a file and output that the caller keeps are not
included.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ALWAYS_ALLOWED_BYTES",
    "KEPT_BYTES",
    "KEPT_RATIO",
    "MAX_BATCH_BYTES",
    "MAX_DECOMPRESSED_BYTES",
    "MAX_INDEXED_BATCHES",
    "MAX_MESSAGE_VALUES",
    "MAX_RATIO",
    "MAX_RECORD_HEADERS",
    "MAX_SCHEMA_VALUES",
    "OBJECT_HEADERS",
    "OBJECT_RECORDS",
    "PIECE_BYTES",
]

MAX_BATCH_BYTES: Final = 1 << 30
"""A batch in a file. Kafka accepts 1 MiB by default; a larger one than this is taken for damage."""

MAX_DECOMPRESSED_BYTES: Final = 256 << 20
"""The records of a compressed batch, decompressed: the largest part of the bound."""

ALWAYS_ALLOWED_BYTES: Final = 16 << 20
"""The size that every batch may decompress to, however small it is: equal records compress to almost
nothing."""

MAX_RATIO: Final = 2048
"""The number of bytes that one compressed byte may become: twice the maximum of deflate."""

PIECE_BYTES: Final = 4 << 20
"""A batch with more bytes of records is checked as a whole and then decoded in pieces of this size. A record
takes at least 7 bytes and a header 2, so a piece becomes at most 17 MiB of record columns and 17 MiB of
header columns, however small the records are. Batches that brokers accept by default are smaller."""

MAX_RECORD_HEADERS: Final = 1 << 20
"""Headers of one record, where headers are decoded. As Python objects this many take 64 to 200 MiB, and
nothing smaller than the record can be handed out. In 1 MiB, Kafka's default limit of a request, there is
room for half as many."""

OBJECT_RECORDS: Final = 4096
OBJECT_HEADERS: Final = 1 << 16
"""Records and headers that become Python objects at once: about a megabyte each at least."""

MAX_INDEXED_BATCHES: Final = 1 << 19
"""Batches whose headers are in memory at once, in 80 bytes each: 40 MiB. A segment of 1 GiB has fewer where
its batches have 2 KiB and more; larger indexes are divided, and are scanned again instead of being
remembered."""

MAX_SCHEMA_VALUES: Final = 1 << 19
"""Fields, elements and tagged fields of one record of Kafka's own logs. As Python objects they take up to
100 bytes each. A coordinator writes one for each partition of a transaction or of a group's member; a broker
holds no more than some ten thousand partitions."""

MAX_MESSAGE_VALUES: Final = 1 << 21
"""Fields and elements in the arrays of one request or response, and tagged fields. As Python objects they
take up to 100 bytes each, 200 MiB, out of a frame of a few; strings and bytes take their size beside that. A
response that describes 100,000 partitions has 1.6 million."""

KEPT_BYTES: Final = 8 << 20
KEPT_RATIO: Final = 8
"""What is kept of a coordinator's log while it is replayed, the last record of each key: this many bytes of
keys and values, or this many times the size of the log. Brokers write these logs without compression by
default, so the last records of a real one are never larger than the log itself."""
