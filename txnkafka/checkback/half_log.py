"""``HalfLog``: reads the standing of one half from its partition of ``__txn_half``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.checkback.half_topics import HALF_TOPIC
from txnkafka.checkback.log_range import LogRange
from txnkafka.coordinator.half.half_image import Half, HalfImage, HalfState
from txnkafka.model import TopicPartition
from txnkafka.wire.records.half_records import (
    DecidedBy,
    EndRecord,
    HalfRecordType,
    Outcome,
    decode_half_log,
    half_key,
    half_record_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka._core.consumer_record import ConsumerRecord
    from txnkafka.client.cluster import Cluster

_BY_CLIENTS: Final = {bytes([0, kind]) for kind in (HalfRecordType.HALF, HalfRecordType.DECIDE)}
"""The key types of records that clients write, outside of transactions."""
_NO_END: Final = 1 << 62
_PAUSE_MS: Final = 5


class Standing(NamedTuple):
    """The state of a half; ``state`` is None for an unknown id. ``group`` and ``offset`` of a half that is
    done are empty and -1."""

    state: HalfState | None
    outcome: Outcome | None = None
    group: str = ""
    offset: int = -1
    born_ms: int = -1


class HalfLog:
    """Reads with the connections of ``cluster``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._all = LogRange(cluster, is_committed=False)
        self._committed = LogRange(cluster, is_committed=True)

    async def decided(self, transaction_id: str, partition: int, start: int, stop: int | None) -> Standing:
        """Return the standing of a half, whose HALF record is at ``start``, as of ``stop``; -1 and None if
        these are unknown.

        Clients write HALF and DECIDE outside of transactions. If a client wrote the first DECIDE, it counts
        whether or not the owner's transactions commit, and this read need not wait for their end. In all
        other cases the committed log is folded from its beginning."""
        if start < 0 or stop is None:
            return await self.standing(transaction_id, partition, stop)
        image = HalfImage()
        place = TopicPartition(HALF_TOPIC, partition)
        async for records in self._all.records(place, start, stop):
            for record in _about(records, transaction_id):
                if record.key[:2] in _BY_CLIENTS and record.value is not None:
                    image.replay(record.offset, record.key, record.value)
        half = image.get(transaction_id)
        if half is not None and half.offset == start and half.state is HalfState.DECIDED:
            is_by_client = half.by is not DecidedBy.POLICY and half.outcome is not Outcome.PARK
            if is_by_client:
                return _standing(image, transaction_id)
        return await self.standing(transaction_id, partition, stop)

    async def standing(self, transaction_id: str, partition: int, stop: int | None = None) -> Standing:
        """Return the standing of a half from the committed log, by default up to its end."""
        image = HalfImage()
        place = TopicPartition(HALF_TOPIC, partition)
        first, end = await self._committed.limits(place)
        async for records in self._committed.records(place, first, end if stop is None else stop):
            for record in _about(records, transaction_id):
                image.replay(record.offset, record.key, record.value)
        return _standing(image, transaction_id)

    async def done(self, transaction_id: str, partition: int, start: int) -> Standing:
        """Wait until the owner has carried the decision out, and readers get the messages, or has parked the
        half. The HALF record is at ``start``, -1 if this is unknown. Raises what ``LogRange.records``
        raises."""
        image = HalfImage(payload_budget=0)
        place = TopicPartition(HALF_TOPIC, partition)
        begin = start if start >= 0 else (await self._committed.limits(place))[0]
        placed: tuple[tuple[str, int], ...] = ()
        async for records in self._committed.records(place, begin, _NO_END):
            for record in _about(records, transaction_id):
                image.replay(record.offset, record.key, record.value)
                end = half_record_of(decode_half_log(record.key, record.value))
                placed = end.placed if isinstance(end, EndRecord) else placed
            if image.state_of(transaction_id) in (HalfState.DONE, HalfState.PARKED):
                break
        for topic, number in placed:
            await self._visible(TopicPartition(topic, number))
        return _standing(image, transaction_id)

    async def _visible(self, place: TopicPartition) -> None:
        """Wait until read_committed consumers get all records of a partition up to its present end: the
        markers of one transaction do not reach all partitions at the same time."""
        end = (await self._all.limits(place))[1]
        while (await self._committed.limits(place))[1] < end:
            await self._cluster.reactor.sleep(_PAUSE_MS)

    async def prepared(self, partition: int, offsets: Mapping[str, int]) -> set[str]:
        """Return those halves, by their ids and offsets, that are not decided yet."""
        image = HalfImage(payload_budget=0)
        place = TopicPartition(HALF_TOPIC, partition)
        first, end = await self._committed.limits(place)
        async for records in self._committed.records(place, max(first, min(offsets.values())), end):
            for record in records:
                image.replay(record.offset, record.key, record.value)
        halves = [
            (transaction_id, offset, image.get(transaction_id)) for transaction_id, offset in offsets.items()
        ]
        return {
            transaction_id
            for transaction_id, offset, half in halves
            if half is not None and half.state is HalfState.PREPARED and half.offset == offset
        }

    async def halves(self, partition: int) -> list[Half]:
        """Return the halves of a partition that are not done."""
        image = HalfImage()
        place = TopicPartition(HALF_TOPIC, partition)
        first, end = await self._committed.limits(place)
        async for records in self._committed.records(place, first, end):
            for record in records:
                image.replay(record.offset, record.key, record.value)
        return list(image)


def _about(records: list[ConsumerRecord], transaction_id: str) -> list[ConsumerRecord]:
    """Return the records about one half."""
    name = half_key(HalfRecordType.ASKED, transaction_id)[2:]
    return [each for each in records if each.key is not None and each.key.startswith(name, 2)]


def _standing(image: HalfImage, transaction_id: str) -> Standing:
    half = image.get(transaction_id)
    if half is not None:
        return Standing(half.state, half.outcome, half.producer_group, half.offset, half.born_ms)
    ended = image.ended.get(transaction_id)
    return Standing(None) if ended is None else Standing(HalfState.DONE, ended.outcome)
