"""``GroupLog``: what the group coordinator appends to ``__consumer_offsets``.

Source: GroupCoordinatorRecordHelpers, CoordinatorOperationExceptionHelper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from txnkafka.coordinator.classic_group import ClassicGroup
from txnkafka.coordinator.expiry import batches_of
from txnkafka.coordinator.group_host import GroupHost
from txnkafka.coordinator.group_partition import AnyGroup, GroupPartition, record_of
from txnkafka.coordinator.group_partitions import GroupPartitions
from txnkafka.coordinator.log_event import LogEvent
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import NO_PRODUCER_ID, ProducerIdAndEpoch
from txnkafka.wire.records.group_log import encode_group_key, encode_group_value
from txnkafka.wire.schema import SchemaError

__all__ = ["GroupLog", "append_error"]

E = ErrorCode
Records = Sequence[tuple[bytes, bytes | None]]
APPEND_ERRORS: Final = {
    E.UNKNOWN_TOPIC_OR_PARTITION: E.COORDINATOR_NOT_AVAILABLE,
    E.KAFKA_STORAGE_ERROR: E.NOT_COORDINATOR,
    E.MESSAGE_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
    E.RECORD_LIST_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
}


def append_error(error: ErrorCode) -> ErrorCode:
    """What a client is told when a record could not be appended or made durable."""
    return APPEND_ERRORS.get(error, error)


class GroupLog:
    """Appends to the log of a group's partition; ``call`` gets NONE when the records are durable, or the
    error of the log."""

    def __init__(self, host: GroupHost, partitions: GroupPartitions) -> None:
        self._host = host
        self._partitions = partitions

    def partition(self, group_id: str) -> GroupPartition | None:
        """The loaded partition of a group."""
        return self._partitions.loaded.get(self._partitions.number_of(group_id))

    def group(self, group_id: str) -> AnyGroup | ErrorCode:
        """The group with an id; see ``GroupPartitions.find``."""
        return self._partitions.find(group_id)

    def append_group(self, group: ClassicGroup, call: Callable[[ErrorCode], None]) -> None:
        """Append the record of a group; ``call`` gets the error for its members."""
        try:
            record = encode_group_key(group.group_id), encode_group_value(record_of(group))
            number = self._partitions.number_of(group.group_id)
            self._host.append(number, [record], lambda error: call(append_error(error)))
        except SchemaError:  # a name that is too long for the record
            call(E.UNKNOWN_SERVER_ERROR)
        except KafkaError as error:
            call(append_error(error.code))

    def append(
        self,
        group_id: str,
        records: Records,
        call: Callable[[ErrorCode], None],
        *,
        is_replayed: bool = True,
    ) -> bool:
        """Append the records of a group in one batch, and apply them, or let the caller do that. ``call``
        gets the error for its members. Without records it waits for those before. Returns whether they were
        appended."""
        number = self._partitions.number_of(group_id)
        if not records:
            self._host.when_durable(number, lambda error: call(append_error(error)))
            return True
        try:
            first = self._host.append(number, records, lambda error: call(append_error(error)))
        except KafkaError as error:
            call(append_error(error.code))
            return False
        here = self._partitions.loaded[number]
        for i, (key, value) in enumerate(records if is_replayed else ()):
            here.replay(LogEvent(first + i, NO_PRODUCER_ID, None, key, value))
        return True

    def append_offsets(
        self,
        group_id: str,
        records: Records,
        call: Callable[[ErrorCode], None],
        producer: ProducerIdAndEpoch | None = None,
    ) -> bool:
        """Append records of offsets, and apply them. Returns whether they were appended."""
        return self._append_offsets(self._partitions.number_of(group_id), records, call, producer)

    def append_tombstones(
        self, number: int, keys: Sequence[bytes], call: Callable[[ErrorCode], None]
    ) -> bool:
        """Append tombstones to a partition, those of offsets first, in batches that its log takes, and apply
        those of offsets. ``call`` gets the error of the first batch that is refused, behind which nothing is
        appended, or what becomes of the last one. Returns whether all were appended."""
        batches = self._batches(number, keys)
        for batch in batches[:-1]:
            refused: list[ErrorCode] = []
            if not self._append_offsets(number, [(key, None) for key in batch], refused.append):
                call(refused[0])
                return False
        return self._append_offsets(number, [(key, None) for key in batches[-1]], call)

    def drop_offsets(self, number: int, keys: Sequence[bytes]) -> None:
        """Append tombstones of offsets that nobody asks for any more, and apply them. What the log refuses
        stays, and keeps no other from being written; the host says so."""
        for batch in self._batches(number, keys) if keys else ():
            self._append_offsets(number, [(key, None) for key in batch], lambda _: None)

    def _batches(self, number: int, keys: Sequence[bytes]) -> list[list[bytes]]:
        return list(batches_of(keys, lambda key: key, self._host.max_batch_bytes(number)))

    def _append_offsets(
        self,
        number: int,
        records: Records,
        call: Callable[[ErrorCode], None],
        producer: ProducerIdAndEpoch | None = None,
    ) -> bool:
        try:
            first = self._host.append(number, records, call, producer)
        except KafkaError as error:
            call(error.code)
            return False
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        offsets = self._partitions.loaded[number].offsets
        for i, (key, value) in enumerate(records):
            offsets.replay(LogEvent(first + i, producer_id, None, key, value))
        return True

    def when_durable(self, group_id: str, call: Callable[[ErrorCode], None]) -> None:
        """Call when everything appended to the group's partition so far is durable, or never will be."""
        self._host.when_durable(self._partitions.number_of(group_id), call)
