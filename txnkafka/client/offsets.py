"""``OffsetAndMetadata``: an offset to commit."""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndMetadata(NamedTuple):
    """The ``offset`` of the next record to read, with any text, and the epoch of the partition's leader at
    the last record read, None if it is unknown (KIP-320)."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None
