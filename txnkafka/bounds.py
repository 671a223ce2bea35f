"""The limits on the memory of a call, in one place, with the reason for each number.

docs/internals/memory.md adds them up. Windows of a file and output that the caller keeps are not
included.
"""

from __future__ import annotations

from typing import Final

MAX_BATCH_BYTES: Final = 1 << 30
"""The size of a batch in a file. Kafka accepts 1 MiB by default; a batch above this limit counts as
damage."""

MAX_DECOMPRESSED_BYTES: Final = 256 << 20
"""The size of the decompressed records of a batch: the largest part of the bound."""

ALWAYS_ALLOWED_BYTES: Final = 16 << 20
"""The size that every batch may decompress to, however small it is: equal records compress to almost
nothing."""

MAX_RATIO: Final = 2048
"""The number of bytes that one compressed byte may become: twice the maximum of deflate."""

PIECE_BYTES: Final = 4 << 20
"""A batch with more bytes of records is checked as a whole and then decoded in pieces of this size. A record
takes at least 7 bytes and a header 2, so a piece becomes at most 17 MiB of record columns and 17 MiB of
header columns, however small the records are. Batches that brokers accept by default are smaller."""

AHEAD_BYTES: Final = 16 << 20
"""The record columns of a unit that a thread decodes before its turn; the last chunk may exceed it. Batches
of more than PIECE_BYTES of records are never decoded ahead, so each unit that waits takes at most 36 MiB."""

MAX_RECORD_HEADERS: Final = 1 << 20
"""The number of headers of one record, if headers are decoded. As Python objects, this many take 64 to 200
MiB, and a record can only be returned as a whole. 1 MiB, Kafka's default limit of a request, has room for
half as many."""

OBJECT_RECORDS: Final = 4096
OBJECT_HEADERS: Final = 1 << 16
"""The number of records and headers that become Python objects at once: at least about a megabyte each."""

MAX_INDEXED_BATCHES: Final = 1 << 19
"""The number of batches whose headers are in memory at once, with 80 bytes each: 40 MiB. A segment of 1 GiB
has fewer if its batches have at least 2 KiB; larger indexes are divided, and scanned again instead of being
kept."""

MAX_SCHEMA_VALUES: Final = 1 << 19
"""The number of fields, elements and tagged fields of one record of Kafka's internal logs. As Python objects
they take up to 100 bytes each. A coordinator writes one for each partition of a transaction or of a group's
member; a broker has at most some ten thousand partitions."""

MAX_MESSAGE_VALUES: Final = 1 << 21
"""Fields and elements in the arrays of one request or response, and tagged fields. As Python objects they
take up to 100 bytes each, 200 MiB, out of a frame of a few; strings and bytes take their size beside that. A
response that describes 100,000 partitions has 1.6 million."""

KEPT_BYTES: Final = 8 << 20
KEPT_RATIO: Final = 8
"""The limit for the last records of all keys, kept while a coordinator's log is replayed: this many bytes of
keys and values, or this many times the size of the log. Brokers write these logs without compression by
default, so the last records of a real one are never larger than the log itself."""
