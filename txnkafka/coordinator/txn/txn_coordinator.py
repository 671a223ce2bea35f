"""``TransactionCoordinator``: the owner of the transactional ids of a node. Synchronous, no clock, no IO.

An event goes through ``transition``; its record is appended and *in flight* until it is durable; then
``replay`` makes it the state, its effects take place, and it is answered. The steps become durable in this
order:

    the transaction's data -> PREPARE_* -> markers, and the answer to EndTxn -> COMPLETE_*

each before the next is appended. A request that has to wait for another one of its id is parked, in the
order of arrival, and refused with CONCURRENT_TRANSACTIONS only after ``max_parked_ms``.

**A parked request** waits until COMPLETE_* is appended, not durable: the request's record follows it in the
same log, and the request is answered when its own record is durable. Data that a leader appends beside an
Ongoing record waits longer if the previous markers had no epoch of their own (``may_build_on``).

**Other events decided from a record in flight**: partitions that join a transaction whose opening is in
flight, because images of Ongoing only grow; and its end, because PREPARE_* follows the record in the same
log. No refusal is computed from a state that may never exist. See docs/transactions.md.

Source: TransactionCoordinator, TransactionStateManager of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from operator import attrgetter

from txnkafka.coordinator.partitions import DEFAULT_PARTITIONS
from txnkafka.coordinator.runtime import Expiry, Runtime, TopicLog, append_error
from txnkafka.coordinator.ticks import Ticks
from txnkafka.coordinator.txn.begun import Begun
from txnkafka.coordinator.txn.coordinator_host import CoordinatorHost
from txnkafka.coordinator.txn.in_flight import Flight, InFlight, ParkedRequests, Request, may_build_on
from txnkafka.coordinator.txn.markers import Marker, Markers
from txnkafka.coordinator.txn.producer_ids import ProducerIds
from txnkafka.coordinator.txn.transaction_partition import TransactionPartition, encoded_with_room
from txnkafka.coordinator.txn.txn_config import COMPLETE_RETRY_MS, TransactionConfig
from txnkafka.coordinator.txn.txn_counts import TransactionCounts
from txnkafka.coordinator.txn.txn_events import (
    Answer,
    Event,
    Expire,
    MarkersWritten,
    NeedsProducerId,
    Parked,
    Refused,
    Reply,
    Result,
    Timeout,
    TransactionRecord,
    Transition,
    WriteMarkers,
    answer_of,
)
from txnkafka.coordinator.txn.txn_image import ONGOING, PREPARE_COMMIT, PREPARED, markers_of
from txnkafka.coordinator.txn.txn_setting import NOTHING_SEEN, SeenEpochs
from txnkafka.coordinator.txn.txn_state import transition
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata
from txnkafka.wire.schema import SchemaError


class TransactionCoordinator:
    """Requests arrive by ``handle``, the host's reports by the callbacks of appends and flushes,
    ``marker_written`` and ``partition_deleted``, time by ``advance``. ``partitions`` has the loaded
    partitions of ``__transaction_state``."""

    def __init__(
        self,
        host: CoordinatorHost,
        log: TopicLog,
        producer_ids: ProducerIds,
        *,
        config: TransactionConfig | None = None,
        partition_count: int = DEFAULT_PARTITIONS,
        version: int = 2,
        ticks: Ticks | None = None,
    ) -> None:
        self.config = config or TransactionConfig()
        self.version = version  # the level of the feature transaction.version; may change at any time
        self.runtime = Runtime[TransactionPartition](log, partition_count)
        self.partitions = self.runtime.loaded
        self.partition_of = self.runtime.number_of
        self.markers, self.counts = Markers(), TransactionCounts()
        self.seen: Mapping[int, SeenEpochs] = NOTHING_SEEN  # of ``Setting``
        self._host = host
        self._producer_ids = producer_ids
        self.in_flight = InFlight()  # for others to read
        self._parked = ParkedRequests(self.config.max_parked)
        self._has_data: set[Request] = set()  # commits whose data is durable
        self._incomplete: dict[str, tuple[int, MarkersWritten]] = {}  # COMPLETE_* to be appended again
        self._ticks = ticks or Ticks()  # all deadlines are in ticks, all records in wall time
        self._begun, self._expiry = Begun(), Expiry(self.config.remove_expired_interval_ms)
        self._next_timeouts = self._next_round = 0  # of timeouts or expiry, which only ``advance`` changes

    # Partitions

    def load(
        self, partition: int, coordinator_epoch: int, records: Iterable[TransactionRecord], now_ms: int
    ) -> None:
        """Take a partition over: replay its log and write the markers of all that is PREPARE_*."""
        self.resign(partition)
        state = TransactionPartition(coordinator_epoch)
        self.runtime.load(partition, state, records)
        for metadata in [each for each in state.metadata.values() if each.state in PREPARED]:
            if written := self._begin_markers(markers_of(metadata), coordinator_epoch, now_ms):
                self._complete(written, now_ms)

    def resign(self, partition: int) -> None:
        """Forget a partition; waiting requests get NOT_COORDINATOR."""
        state = self.partitions.pop(partition, None)
        known = [*self.in_flight.by_id, *self._parked.queues, *(state.metadata if state else ())]
        for transactional_id in dict.fromkeys(known):
            if self.partition_of(transactional_id) == partition:
                self._forget(transactional_id)

    def _forget(self, transactional_id: str) -> None:
        self.markers.forget(transactional_id)
        self._incomplete.pop(transactional_id, None)
        for request in self.in_flight.drop(transactional_id) + self._parked.drop(transactional_id):
            request.answer(Answer(ErrorCode.NOT_COORDINATOR))

    # Requests

    def handle(
        self, event: Event, reply: Reply, now_ms: int, on_append: Callable[[], None] | None = None
    ) -> None:
        """Handle a request. ``reply`` is called once, ``on_append`` before: the leader of a joining partition
        may append the data then. If ``reply`` brings an error, the leader writes an ABORT marker with the
        next epoch."""
        until = self._ticks.at(now_ms) + self.config.max_parked_ms
        request = Request(event, reply, until, on_append)
        if event.transactional_id in self._parked.queues or not self._run(request, now_ms):
            self._parked.add(request)

    def new_producer_id(self, reply: Reply) -> None:
        """InitProducerId without a transactional id: no state is kept."""
        producer_id = self._producer_ids.take()
        none_left = Answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        reply(none_left if producer_id is None else Answer(ErrorCode.NONE, producer_id, 0))

    def _run(self, request: Request, now_ms: int) -> bool:
        """Decide about a request; False when it has to wait."""
        event = request.event
        transactional_id = event.transactional_id
        state = self.runtime.state_of(transactional_id)
        if state is None and transactional_id:
            request.answer(Answer(ErrorCode.NOT_COORDINATOR))
            return True
        flights = self.in_flight.by_id.get(transactional_id)
        if flights:
            metadata = flights[-1].record.metadata
            if not may_build_on(metadata, event):
                return False
        else:
            metadata = state.metadata.get(transactional_id) if state else None
        result = self._decide(metadata, event, now_ms)
        if isinstance(result, NeedsProducerId):
            result = Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            if (producer_id := self._producer_ids.take()) is not None:
                result = self._decide(metadata, event, now_ms, producer_id)
        if isinstance(result, Transition) and result.record is not None:
            return self._append(request, result, result.record, now_ms)
        if flights or isinstance(result, Parked):
            return self.in_flight.follow(request, result)
        request.answer(answer_of(result))
        return True

    def _durable(self, transactional_id: str) -> TransactionMetadata | None:
        state = self.runtime.state_of(transactional_id)
        return state.metadata.get(transactional_id) if state else None

    def _decide(
        self, metadata: TransactionMetadata | None, event: Event, now_ms: int, producer_id: int | None = None
    ) -> Result:
        return transition(
            metadata, event, now_ms=now_ms, version=self.version, producer_id=producer_id,
            limits=self.config.limits, seen=self.seen,
        )  # fmt: skip

    def _append(self, request: Request, result: Transition, record: TransactionRecord, now_ms: int) -> bool:
        """Append the record; a commit waits until the data of its transaction is durable."""
        try:
            image = record.metadata
            if image is not None and image.state == PREPARE_COMMIT and self._waits_for_data(request, image):
                return False
            self._fly([Flight(record, result, request)])
        except SchemaError:  # a transactional id that is too long for its key
            request.answer(Answer(ErrorCode.UNKNOWN_SERVER_ERROR))
            return True
        except KafkaError as error:
            self._not_appended(request, error.code, now_ms)
            return True
        if request.on_append is not None:
            request.on_append()
        return True

    def _waits_for_data(self, request: Request, metadata: TransactionMetadata) -> bool:
        if request in self._has_data:
            return False
        done = partial(self._data_flushed, request)
        return self._host.flush_data(metadata.producer_id, metadata.topic_partitions, done)

    def _fly(self, flights: list[Flight]) -> None:
        """Append records of one partition as one batch; no request waits for COMPLETE_* and tombstones."""
        log, partition = self.runtime.log, self.partition_of(flights[0].record.transactional_id)
        records, is_awaited, limit = [], False, log.max_batch_bytes(partition)
        for flight in flights:
            records.append(encoded_with_room(flight.record, self.version, limit))
            is_awaited = is_awaited or flight.request.reply is not None or bool(flight.result.effects)
        log.append(partition, records, partial(self._flown, partition, flights), is_awaited=is_awaited)
        self.in_flight.add(flights)

    def _not_appended(self, request: Request, error: ErrorCode, now_ms: int) -> None:
        """Refuse a request without a change; retry later if it must be appended in any case."""
        event = request.event
        if isinstance(event, MarkersWritten):
            due = self._ticks.at(now_ms) + COMPLETE_RETRY_MS
            self._incomplete[event.transactional_id] = (due, event)
        request.answer(Answer(append_error(error)))

    # Reports of the host

    def _flown(self, partition: int, flights: list[Flight], error: ErrorCode) -> None:
        """Apply the flights of a batch that is durable (NONE), or refuse them if it never will be."""
        now_ms = self._host.now_ms
        for flight in self.in_flight.land(flights):
            if error == ErrorCode.NONE:
                self._take_effect(flight, self.partitions[partition], now_ms)
            else:
                self._not_landed(flight, error, now_ms)
            if flight.followers:
                flight.answer_followers(Answer(append_error(error)))
            self._resume(flight.record.transactional_id, now_ms)

    def _not_landed(self, flight: Flight, error: ErrorCode, now_ms: int) -> None:
        """Refuse the request of a record that never will be durable. If it should have added partitions, also
        refuse parked requests to end the transaction: they would commit without the data."""
        self._not_appended(flight.request, error, now_ms)
        metadata = flight.record.metadata
        if metadata is not None and metadata.state == ONGOING:
            for request in self._parked.take_ends(flight.record.transactional_id):
                self._not_appended(request, error, now_ms)

    def _data_flushed(self, request: Request, error: ErrorCode) -> None:
        """Continue a commit, the first parked request of its id, unless it was refused before."""
        now_ms = self._host.now_ms
        if error == ErrorCode.NONE:
            self._has_data.add(request)
        elif self._parked.is_first(request):
            self._parked.take(request.event.transactional_id)
            self._not_appended(request, error, now_ms)
        self._resume(request.event.transactional_id, now_ms)
        self._has_data.discard(request)

    def _take_effect(self, flight: Flight, state: TransactionPartition, now_ms: int) -> None:
        """Apply a durable record: replay it, write the markers, answer the request."""
        record, response, written = flight.record, flight.result.response, None
        state.replay(record)
        self.counts.add(record.metadata, flight.request.event)
        for effect in flight.result.effects:
            written = self._begin_markers(effect, state.coordinator_epoch, now_ms)
        if not isinstance(response, Answer):
            self._parked.add_first(flight.request)
        elif flight.request.reply is not None:
            flight.request.reply(response)
        if written is not None:
            self._complete(written, now_ms)

    def _begin_markers(self, effect: WriteMarkers, epoch: int, now_ms: int) -> MarkersWritten | None:
        ticks = self._ticks.at(now_ms)
        written = self.markers.begin(effect, epoch, ticks)
        self._write_markers(ticks)
        return written

    def _write_markers(self, ticks: int) -> None:
        for marker in self.markers.due(ticks):
            self._host.write_marker(marker)

    def marker_written(self, marker: Marker, error: ErrorCode, now_ms: int) -> None:
        """Record that a marker is durable (NONE), or was refused."""
        written = self.markers.acknowledge(marker, error, self._ticks.at(now_ms))
        if written is not None:
            self._complete(written, now_ms)

    def partition_deleted(self, partition: TopicPartition, now_ms: int) -> None:
        """Stop waiting for the markers of a deleted partition."""
        for written in self.markers.partition_deleted(partition):
            self._complete(written, now_ms)

    def _complete(self, written: MarkersWritten, now_ms: int) -> None:
        """Append COMPLETE_*; parked requests then continue."""
        self._incomplete.pop(written.transactional_id, None)
        self._run(Request(written, None, now_ms), now_ms)
        self._resume(written.transactional_id, now_ms)

    def _resume(self, transactional_id: str, now_ms: int) -> None:
        """Try parked requests again, until one has to wait."""
        while transactional_id in self._parked.queues and (request := self._parked.take(transactional_id)):
            if not self._run(request, now_ms):
                self._parked.add_first(request)
                return

    # Time

    def advance(self, now_ms: int) -> int:
        """Run everything due; return the ticks of the next call at the latest."""
        ticks = self._ticks.at(now_ms)
        if ticks >= self._next_round or self._parked.queues or self._incomplete or self.markers.has_deadline:
            self._do_due(ticks, now_ms)
            return self._deadline()
        return self._next_round

    def _do_due(self, ticks: int, now_ms: int) -> None:
        self._write_markers(ticks)
        if self._incomplete or self._parked.deadline() <= ticks:
            self._try_again(ticks, now_ms)
        if ticks >= self._next_timeouts:
            self._next_timeouts = ticks + self.config.abort_timed_out_interval_ms
            self._time_out(now_ms, ticks)
        if ticks >= self._expiry.deadline(ticks):
            self._expire(now_ms)
        self._next_round = min(self._next_timeouts, self._expiry.deadline(ticks))

    def _try_again(self, ticks: int, now_ms: int) -> None:
        """Append COMPLETE_* that were refused, and refuse requests that were parked for too long."""
        for due, written in list(self._incomplete.values()):
            if due <= ticks:
                self._complete(written, now_ms)
        for request in self._parked.take_old(ticks):
            request.answer(Answer(ErrorCode.CONCURRENT_TRANSACTIONS))
            self._resume(request.event.transactional_id, now_ms)

    def _deadline(self) -> int:
        due = min(self._next_round, self._parked.deadline(), *(each for each, _ in self._incomplete.values()))
        marker_due = self.markers.deadline()
        return due if marker_due is None else min(due, marker_due)

    def _time_out(self, now_ms: int, ticks: int) -> None:
        ongoing = [state.metadata[each] for state in self.partitions.values() for each in state.ongoing]
        for transactional_id, began in self._begun.by(ongoing, now_ms, ticks).items():
            if transactional_id not in self.in_flight.by_id and transactional_id not in self._parked.queues:
                self._run(Request(Timeout(transactional_id, began), None, now_ms), now_ms)

    def _expire(self, now_ms: int) -> None:
        """Write tombstones for a slice of the ids, for each partition of ``__transaction_state``."""
        ids = (each for state in self.partitions.values() for each in state.metadata)
        tombstones: dict[int, list[Flight]] = {}
        for transactional_id in self._expiry.due(ids, self._ticks.at(now_ms)):
            if (flight := self._tombstone(transactional_id, now_ms)) is not None:
                tombstones.setdefault(self.partition_of(transactional_id), []).append(flight)
        for partition, flights in tombstones.items():
            for batch in self.runtime.batches(partition, flights, attrgetter("record.key")):
                with suppress(KafkaError):  # nothing was written: these ids stay until the next round
                    self._fly(batch)

    def _tombstone(self, transactional_id: str, now_ms: int) -> Flight | None:
        if transactional_id in self.in_flight.by_id or transactional_id in self._parked.queues:
            return None
        event = Expire(transactional_id)
        result = self._decide(self._durable(transactional_id), event, now_ms)
        if not isinstance(result, Transition) or result.record is None:
            return None
        return Flight(result.record, result, Request(event, None, now_ms))

    # Reading

    def settled(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the state of this node's id if no record is in flight, else None."""
        return None if transactional_id in self.in_flight.by_id else self._durable(transactional_id)

    def metadata_of(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the state of this node's id; None if it is unknown, or its tombstone is in flight."""
        newest = self.in_flight.newest(transactional_id)
        return None if newest and newest.metadata is None else self._durable(transactional_id)
