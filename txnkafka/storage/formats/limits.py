"""Size limits of the small files of a log directory; larger files count as damaged and are not read.

Each limit allows the files of the largest brokers with some margin, but not more: a sparse file of a gigabyte
is easy to send. A derived file beyond its limit is treated as damaged (the log decides), any other file as
unreadable.

| file | Kafka writes | limit |
|---|---|---|
| checkpoints of a log directory | 30 to 60 bytes a partition, 200,000 partitions are 12 MB | 16 MiB |
| ``leader-epoch-checkpoint`` | at most 31 bytes a leader election, 10,000 of them are 0.3 MB | 4 MiB |
| ``meta.properties`` and other small files | under 1 KB | 256 KiB |
| ``.index``, ``.timeindex`` | ``segment.index.bytes``, by default 10 MiB, preallocated | 128 MiB |
| ``.txnindex`` | 34 bytes an aborted transaction, a million of them in a segment of 1 GiB | 32 MiB |
| ``.snapshot`` | 46 bytes a producer of a day; ten new ones a second are 864,000 | 64 MiB |

Memory for a file is its size plus a small constant, not a multiple: entries are parsed one by one.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from txnkafka.errors import CorruptFileError

if TYPE_CHECKING:
    from txnkafka.env import FileSystem

CHECKPOINT_LIMIT: Final = 16 << 20
EPOCHS_LIMIT: Final = 4 << 20
SMALL_FILE_LIMIT: Final = 256 << 10
INDEX_LIMIT: Final = 128 << 20
TXN_INDEX_LIMIT: Final = 32 << 20
SNAPSHOT_LIMIT: Final = 64 << 20


def read_derived(files: FileSystem, path: str, limit: int) -> bytes:
    """Read a file derived from the log. Raises CorruptFileError if it is larger than its limit, and
    OSError."""
    try:
        return files.read(path, limit)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise CorruptFileError(str(error.strerror), file=path) from None
