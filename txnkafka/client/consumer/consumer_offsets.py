"""``ConsumerOffsets``: the part of ``Consumer`` about positions and commits."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

from txnkafka.client.client import Client
from txnkafka.client.consumer.caller_thread import CallerThread
from txnkafka.client.consumer.consumer_config import ConsumerConfig
from txnkafka.client.consumer.core import ConsumerCore
from txnkafka.client.consumer.iteration import Iteration
from txnkafka.client.consumer.subscription import Place
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition, check_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from txnkafka.client.consumer.commits import Offsets
    from txnkafka.client.consumer.list_offsets import OffsetAndTimestamp
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.transport import Transport

    CommitCallback = Callable[[Offsets, KafkaError | None], object]

LOG = logging.getLogger("txnkafka.client")


class ConsumerOffsets(Client[ConsumerConfig]):
    """See ``Consumer``."""

    kind: ClassVar[str] = "consumer"
    config_class: ClassVar[type[Any]] = ConsumerConfig

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        transport: Callable[[str], Transport] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(settings, transport=transport, **more)
        self._core = ConsumerCore(self._transport, self.config, key_deserializer, value_deserializer)
        self._caller = CallerThread()
        self._iteration = Iteration()
        self._committed: deque[tuple[CommitCallback, Offsets, KafkaError | None]] = deque()

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at an offset; with a leader epoch, truncation of the log is noticed."""
        place = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if place.offset < 0:
            raise ValueError(f"{partition}: an offset is 0 or more, not {place.offset}")
        with self._caller:
            self._unread()
            with self._reactor:
                self._core.seek(partition, place.offset, place.leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first offsets of these partitions, or of all."""
        self._seek_to(partitions, Place.BEGINNING)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue after the last records of these partitions, or of all: for read_committed at the last
        stable offset."""
        self._seek_to(partitions, Place.END)

    def _seek_to(self, partitions: Collection[TopicPartition], place: Place) -> None:
        with self._caller:
            self._unread()
            with self._reactor:
                self._core.seek_to(partitions, place)

    def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """Return the offset of the next record to read. Raises IllegalStateError for a partition that is not
        assigned."""
        with self._caller:
            place = self._iteration.place()
            if place is not None and place[0] == partition:
                return place[1].offset
            return self._reactor.run(self._core.position(partition, self._limit(timeout_ms)))

    def lag(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """Return the number of offsets between the position and the end that can be read now: for
        read_committed the last stable offset. Control records of transactions count as offsets, but are never
        returned."""
        with self._caller:
            position = self.position(partition, timeout_ms=timeout_ms)
            lag = self._reactor.run(self._core.lag(partition, self._limit(timeout_ms)))
            fetched = self._reactor.run(self._core.position(partition, self._limit(timeout_ms)))
            return lag + fetched - position

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return for each partition the first record at a time (milliseconds) or later; None if there is none
        that can be read."""
        for partition, time in times.items():
            check_milliseconds(**{f"the time of {partition}": time})
        with self._caller:
            return self._reactor.run(self._core.offsets_for_times(times, self._limit(timeout_ms)))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._limits(partitions, timeout_ms, is_end=False)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition that can be read: for read_committed the
        last stable offset, else the high watermark."""
        return self._limits(partitions, timeout_ms, is_end=True)

    def _limits(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None, *, is_end: bool
    ) -> dict[TopicPartition, int]:
        with self._caller:
            return self._reactor.run(
                self._core.limits(list(partitions), self._limit(timeout_ms), is_end=is_end)
            )

    # Commits

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit offsets in the group, by default the positions. An offset is that of the next record to
        read.

        Raises CommitFailedError if the group has given the partitions to another member, and
        RebalanceInProgressError if it is about to: poll again."""
        with self._caller:
            self._call_back()
            self._reactor.run(self._core.commit(self._offsets(offsets), self._limit(timeout_ms)))
            self._call_back()

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        *,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting, and without retries. ``callback`` gets the offsets and the error or None,
        in a later ``poll``, ``commit`` or ``close``."""
        call = callback or _log_failure
        with self._caller, self._reactor:
            chosen, done = self._core.commit_async(self._offsets(offsets))
            done.on_done(lambda: self._committed.append((call, chosen, _kafka_error(done.error))))

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None without one. A read_committed consumer waits
        for transactions with offsets that are open (KIP-447)."""
        chosen = list(partitions)
        with self._caller:
            found = self._reactor.run(self._core.commits.committed(chosen, self._limit(timeout_ms)))
            return {partition: found.get(partition) for partition in chosen}

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the membership, for ``producer.send_offsets_to_transaction``. Raises IllegalStateError
        without ``group.id``."""
        with self._caller, self._reactor:
            return self._core.group_metadata()

    def positions(self) -> Offsets:
        """Return the positions of all partitions that have one, as ``send_offsets_to_transaction`` takes
        them."""
        with self._caller, self._reactor:
            return self._offsets(None)

    def _offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None) -> Offsets:
        if offsets is not None:
            return {
                partition: each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
                for partition, each in offsets.items()
            }
        found = self._core.commits.positions()
        place = self._iteration.place()
        if place is not None and place[0] in found:
            found[place[0]] = place[1]
        return found

    # Shared parts

    def _unread(self) -> None:
        """Give the records back that an iteration has not read yet."""
        place = self._iteration.drop()
        if place is not None:
            with self._reactor:
                if place[0] in self._core.subscription.assigned:
                    self._core.seek(place[0], place[1].offset, place[1].leader_epoch)

    def _call_back(self) -> None:
        """Make the calls of commits that have ended."""
        while self._committed:
            call, offsets, error = self._committed.popleft()
            call(offsets, error)

    def _limit(self, timeout_ms: int | None) -> int:
        return self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms


def _kafka_error(error: BaseException | None) -> KafkaError | None:
    return error if isinstance(error, KafkaError) else None


def _log_failure(offsets: Offsets, error: KafkaError | None) -> None:
    if error is not None:
        LOG.warning("commit_async failed: %s", error)
