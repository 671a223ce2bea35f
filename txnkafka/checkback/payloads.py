"""``Payloads``: reads the payloads of halves that are not in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.checkback.half_topics import HALF_TOPIC, PARKED_TOPIC
from txnkafka.checkback.log_range import LogRange
from txnkafka.model import TopicPartition
from txnkafka.wire.records.check_records import decode_parked_log, parked_key, parked_record_of
from txnkafka.wire.records.half_records import HalfRecord, decode_half_log, half_record_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.client.cluster import Cluster
    from txnkafka.coordinator.half.half_image import Half
    from txnkafka.wire.records.check_records import ParkedRecord
    from txnkafka.wire.records.half_records import HalfBatch

_NEAR: Final = 200  # offsets between two halves that one read takes


class Payloads:
    """Reads with the connections of ``cluster``, committed records only."""

    def __init__(self, cluster: Cluster) -> None:
        self._log = LogRange(cluster, is_committed=True)

    async def of(self, partition: int, halves: Iterable[Half]) -> dict[str, tuple[HalfBatch, ...]]:
        """Return the payloads by id; a half whose record is no longer in the log is missing. Raises the error
        of the broker."""
        found: dict[str, tuple[HalfBatch, ...]] = {}
        offsets: dict[int, str] = {}
        for half in halves:
            if half.batches is None:
                offsets[half.offset] = half.transaction_id
            else:
                found[half.transaction_id] = half.batches
        for start, stop in _ranges(sorted(offsets)):
            place = TopicPartition(HALF_TOPIC, partition)
            async for records in self._log.records(place, start, stop):
                for record in records:
                    if record.offset in offsets:
                        half_record = half_record_of(decode_half_log(record.key, record.value))
                        if isinstance(half_record, HalfRecord):
                            found[offsets[record.offset]] = half_record.batches
        return found

    async def parked(self, partition: int, transaction_id: str) -> ParkedRecord | None:
        """Return the copy of a parked half, None without one. Raises the error of the broker."""
        place, key = TopicPartition(PARKED_TOPIC, partition), parked_key(transaction_id)
        first, end = await self._log.limits(place)
        found = None
        async for records in self._log.records(place, first, end):
            for record in records:
                if record.key == key:
                    found = parked_record_of(decode_parked_log(record.key, record.value))
        return found


def _ranges(offsets: list[int]) -> list[tuple[int, int]]:
    """Return ranges that contain sorted offsets."""
    ranges: list[tuple[int, int]] = []
    for offset in offsets:
        if ranges and offset - ranges[-1][1] <= _NEAR:
            ranges[-1] = ranges[-1][0], offset + 1
        else:
            ranges.append((offset, offset + 1))
    return ranges
