"""``GroupLog``: the group coordinator's runtime, and the records that it appends to ``__consumer_offsets``.

Source: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from txnkafka.coordinator.group.classic.classic_group import ClassicGroup
from txnkafka.coordinator.group.group_partition import AnyGroup, GroupPartition, record_of
from txnkafka.coordinator.runtime import Records, Runtime, append_error
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerIdAndEpoch
from txnkafka.wire.records.group_log import encode_group_key, encode_group_value
from txnkafka.wire.schema import SchemaError

E = ErrorCode


class GroupLog(Runtime[GroupPartition]):
    """The loaded partitions of ``__consumer_offsets``. ``call`` gets NONE when the records are durable, or
    the error of the log."""

    def of(self, group_id: str, *, may_be_empty: bool = False) -> GroupPartition | ErrorCode:
        """Return the partition of a group, or the error of a group that this node cannot answer for. The
        group with the empty name has no members, but old clients may have committed offsets for it."""
        if not group_id and not may_be_empty:
            return E.INVALID_GROUP_ID
        return self.loaded.get(self.number_of(group_id), E.NOT_COORDINATOR)

    def find(self, group_id: str, *, may_be_empty: bool = False) -> AnyGroup | ErrorCode:
        """Return a group; GROUP_ID_NOT_FOUND, or the error of ``of``."""
        here = self.of(group_id, may_be_empty=may_be_empty)
        if isinstance(here, ErrorCode):
            return here
        return here.groups.get(group_id, E.GROUP_ID_NOT_FOUND)

    def append_group(self, group: ClassicGroup, call: Callable[[ErrorCode], None]) -> None:
        """Append the record of a group; ``call`` gets the error for its members."""
        try:
            record = encode_group_key(group.group_id), encode_group_value(record_of(group))
        except SchemaError:  # a name that is too long for the record
            call(E.UNKNOWN_SERVER_ERROR)
        else:
            self.write(self.number_of(group.group_id), [record], lambda error: call(append_error(error)))

    def append(
        self,
        group_id: str,
        records: Records,
        call: Callable[[ErrorCode], None],
        *,
        is_replayed: bool = True,
    ) -> bool:
        """Append the records of a group in one batch, and replay them, or let the caller do that. ``call``
        gets the error for its members. Without records it waits for earlier appends. Return False if nothing
        was appended."""
        if not records:
            self.when_durable(group_id, lambda error: call(append_error(error)))
            return True
        number = self.number_of(group_id)
        here = self.loaded.get(number)
        replay = here.replay if here is not None and is_replayed else None
        return self.write(number, records, lambda error: call(append_error(error)), replay=replay)

    def append_offsets(
        self,
        group_id: str,
        records: Records,
        call: Callable[[ErrorCode], None],
        producer: ProducerIdAndEpoch | None = None,
    ) -> bool:
        """Append records of offsets, and replay them. Return False if they were not appended."""
        return self._append_offsets(self.number_of(group_id), records, call, producer)

    def append_tombstones(
        self, number: int, keys: Sequence[bytes], call: Callable[[ErrorCode], None]
    ) -> bool:
        """Append tombstones to a partition, of offsets first, in batches that its log accepts, and replay
        the tombstones of offsets. ``call`` gets the error of the first refused batch, after which nothing is
        appended, or the result of the last one. Return False if a batch was refused."""
        batches = self._batches(number, keys)
        for batch in batches[:-1]:
            refused: list[ErrorCode] = []
            if not self._append_offsets(number, [(key, None) for key in batch], refused.append):
                call(refused[0])
                return False
        return self._append_offsets(number, [(key, None) for key in batches[-1]], call)

    def drop_offsets(self, number: int, keys: Sequence[bytes]) -> None:
        """Append tombstones of offsets that no client uses, and replay them. Offsets stay if the log refuses
        their batch; other batches are written."""
        for batch in self._batches(number, keys) if keys else ():
            self._append_offsets(number, [(key, None) for key in batch], lambda _: None)

    def _batches(self, number: int, keys: Sequence[bytes]) -> list[list[bytes]]:
        return list(self.batches(number, keys, lambda key: key))

    def _append_offsets(
        self,
        number: int,
        records: Records,
        call: Callable[[ErrorCode], None],
        producer: ProducerIdAndEpoch | None = None,
    ) -> bool:
        here = self.loaded.get(number)
        replay = None if here is None else here.offsets.replay
        return self.write(number, records, call, replay=replay, producer=producer)
