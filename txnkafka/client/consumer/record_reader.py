"""``RecordReader``: decodes fetched data to records or columns, and advances the positions.

One partition is read at a time, up to the end of its response, so that the decoded columns of only one chunk
are in memory. Records before damage are returned first; then each read fails until the position changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka._core.consumer_record import ConsumerRecord, consumer_records
from txnkafka.errors import CorruptRecordError, DecodeError
from txnkafka.record.batch import header_key
from txnkafka.record.chunk import ChunkDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnkafka._core.columns import RecordColumns
    from txnkafka.client.consumer.fetched_data import FetchedData
    from txnkafka.client.consumer.subscription import AssignedPartition, Subscription
    from txnkafka.model import TopicPartition

_COLUMN_BYTES: Final = 8 << 20  # after which ``columns`` returns
_MOST_SPARES: Final = 8
_REMEDY: Final = "All records before it were returned; seek to a later offset to leave it out"


class _Reading:
    """The data that are being decoded. ``row`` is the next record of ``columns``."""

    def __init__(self, state: AssignedPartition, data: FetchedData, decoder: ChunkDecoder) -> None:
        self.state = state
        self.data = data
        self.decoder = decoder
        self.columns = decoder.columns
        self.row = self.end = 0
        self._chunks: Iterator[RecordColumns] = decoder.chunks(data.batches(state.position))

    def next_chunk(self) -> bool:
        """Decode the next chunk, unless the last one has records left; return False at the end of the data.
        Raises CorruptRecordError."""
        if self.row < self.end:
            return True
        found = next(self._chunks, None)
        if found is None:
            if self.data.damage is not None:
                raise self.data.damage
            return False
        self.columns, self.row, self.end = found, 0, len(found)
        return True


class RecordReader:
    """Deserializers are called with bytes; see ``consumer_records``."""

    def __init__(
        self,
        subscription: Subscription,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
    ) -> None:
        self._subscription = subscription
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._decoder = ChunkDecoder(headers=True)
        self._column_decoders = {headers: ChunkDecoder(headers=headers) for headers in (False, True)}
        self._reading: _Reading | None = None
        self._spares: list[RecordColumns] = []

    def records(self, limit: int, *, of_one: bool = False) -> list[ConsumerRecord]:
        """Return at most ``limit`` records, of one partition only if ``of_one``. Raises the failure of a
        partition if no partition has records."""
        found: list[ConsumerRecord] = []
        while len(found) < limit and (reading := self._next(self._decoder)) is not None:
            end = min(reading.end, reading.row + limit - len(found))
            try:
                some = self._records(reading, end)
            except DecodeError as error:
                reading.state.failure = error
                self._reading = None
                continue
            reading.row += len(some)
            last = some[-1]
            reading.state.advance(last.offset + 1, -1 if last.leader_epoch is None else last.leader_epoch)
            if not found:
                found = some
            else:
                found += some
            if of_one:
                self._settle()
                break
        return found or self._fail()

    def columns(self, *, headers: bool) -> list[tuple[TopicPartition, RecordColumns]]:
        """Return decoded chunks, which belong to the caller, of some megabytes together. Raises like
        ``records``."""
        decoder = self._column_decoders[headers]
        found: list[tuple[TopicPartition, RecordColumns]] = []
        size = 0
        while size < _COLUMN_BYTES and (reading := self._next(decoder)) is not None:
            columns = reading.columns
            found.append((reading.state.partition, columns))
            size += columns.nbytes
            reading.state.advance(
                memoryview(columns.offsets)[-1] + 1, memoryview(columns.run_leader_epochs)[-1]
            )
            reading.row = reading.end
            decoder.exchange(self._spare(headers=headers))
        self._settle()
        return found or self._fail()

    def give_back(self, columns: RecordColumns) -> None:
        """Use the memory of columns again, once no buffer of them is in use: fresh memory costs more than
        decoding."""
        if len(self._spares) < _MOST_SPARES:
            self._spares.append(columns)

    def _spare(self, *, headers: bool) -> RecordColumns | None:
        for place, columns in enumerate(self._spares):
            if columns.with_headers == headers and not columns.in_use:
                return self._spares.pop(place)
        return None

    def _records(self, reading: _Reading, end: int) -> list[ConsumerRecord]:
        partition = reading.state.partition
        return consumer_records(
            reading.columns, partition.topic, partition.partition, reading.row, end, header_key=header_key,
            key_deserializer=self._key_deserializer, value_deserializer=self._value_deserializer,
        )  # fmt: skip

    def _next(self, decoder: ChunkDecoder) -> _Reading | None:
        """Return the data to read now, with at least one record in its columns; None if there are none."""
        while (reading := self._current(decoder)) is not None:
            state = reading.state
            try:
                if reading.next_chunk():
                    return reading
            except CorruptRecordError as error:
                error.locate(topic=state.partition.topic, partition=state.partition.partition)
                error.remedy = _REMEDY
                state.failure = error
                self._reading = None
            else:
                self._finish(reading)
        return None

    def _current(self, decoder: ChunkDecoder) -> _Reading | None:
        reading = self._reading
        if reading is not None:
            if reading.decoder is decoder and self._continues(reading):
                return reading
            self._reading = None
        for state in self._subscription.assigned.values():
            if state.buffered and state.is_deliverable:
                data = state.buffered[0]
                data.is_begun = True
                self._reading = _Reading(state, data, decoder)
                return self._reading
        return None

    def _continues(self, reading: _Reading) -> bool:
        """Return whether the position is still where the data that are being decoded continue."""
        state = reading.state
        is_assigned = self._subscription.assigned.get(state.partition) is state
        return (
            is_assigned
            and state.is_deliverable
            and bool(state.buffered)
            and state.buffered[0] is reading.data
        )

    def _finish(self, reading: _Reading) -> None:
        """Continue after the data; the partition is then the last in the order, so that each has its turn."""
        state = reading.state
        state.advance(max(reading.data.end_offset, state.position), reading.data.end_epoch)
        state.buffered.popleft()
        self._reading = None
        assigned = self._subscription.assigned
        assigned[state.partition] = assigned.pop(state.partition)

    def _settle(self) -> None:
        """Finish data whose records have all been returned, so that the position is after its control
        records."""
        reading = self._reading
        if reading is not None and reading.row >= reading.end:
            try:
                if not reading.next_chunk():
                    self._finish(reading)
            except CorruptRecordError:
                self._reading = None  # found again by the next read

    def _fail(self) -> list[Any]:
        failure = failure_of(self._subscription)
        if failure is not None:
            raise failure.with_traceback(None)
        return []


def failure_of(subscription: Subscription) -> Exception | None:
    """Return the failure of a partition that is not paused."""
    for state in subscription.assigned.values():
        if state.failure is not None and not state.is_paused and not state.is_revoked:
            return state.failure
    return None
