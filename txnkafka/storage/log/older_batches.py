"""Searches the log for batches of a producer that are older than the batch in its snapshot.

A snapshot contains the last batch of each producer, while a running broker keeps five. After a restart, a
retry of the other four would be refused, so they are then searched in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.scan import BatchIndex

if TYPE_CHECKING:
    from txnkafka._core.producer_table import ProducerTable
    from txnkafka.storage.log.log_segments import LogSegments

SEARCHED_BYTES = 64 << 20
PIECE_BYTES = 1 << 20


def search_older_batches(
    segments: LogSegments, producers: ProducerTable, producer_id: int, below: int
) -> None:
    """Add the batches of a producer below the offset ``below`` to the table, in pieces from newest to oldest,
    until the table has five or 64 MiB of log were read. Raises CorruptRecordError and OSError."""
    left = SEARCHED_BYTES
    for number in range(segments.number_of(below - 1), -1, -1):
        segment = segments[number]
        place = segments.find(number, below)
        end = segment.size if place is None else place[0]
        while end > 0 and left > 0 and producers.misses_older(producer_id):
            start = segment.batch_before(max(0, end - PIECE_BYTES))
            headers = BatchIndex()
            for index in segment.windows(start, end):
                headers.extend(index)
            producers.remember_older(headers, producer_id)
            left -= end - start
            end = start
        if left <= 0 or not producers.misses_older(producer_id):
            break
    producers.end_search(producer_id)
