"""``BrokerLog``: the logs of a stream at a broker."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from txnkafka.env import Clock, SystemClock
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.spark.broker.broker_plan import broker_partitions, clipped, divided_ranges, starting_offsets
from txnkafka.spark.broker.source_client import SourceClient
from txnkafka.spark.log_bounds import LogBounds, OffsetRange
from txnkafka.spark.selection import check_bounds, selected
from txnkafka.spark.stream.held_back import PATIENCE_MS, HeldBack

if TYPE_CHECKING:
    from txnkafka.spark.options import ReadOptions

LOG = logging.getLogger("txnkafka.spark")
_ATTEMPTS: Final = 3  # a new leader may answer with an older end for a moment


class BrokerLog:
    """Keeps its connections from look to look."""

    def __init__(self, settings: Mapping[str, str], options: ReadOptions, clock: Clock | None = None) -> None:
        self._client = SourceClient(settings)
        self._options = options
        self._clock = SystemClock() if clock is None else clock
        self._bounds: dict[TopicPartition, LogBounds] = {}
        self._since: dict[TopicPartition, tuple[int, int]] = {}  # last stable offset, and since when
        self._held_back: dict[TopicPartition, HeldBack] = {}

    def look(self) -> Mapping[TopicPartition, LogBounds]:
        """Return the offsets of the partitions that the options select, as they are now."""
        lenient = not self._options.fail_on_data_loss
        named = broker_partitions(self._client, self._options, may_be_none=True, may_be_gone=lenient)
        names = selected(named, self._options)
        committed = self._options.request.read_committed
        before = self._bounds
        for _ in range(_ATTEMPTS):
            self._bounds = self._client.bounds(names, committed=committed)
            if all(
                here.log_end >= before[name].log_end for name, here in self._bounds.items() if name in before
            ):
                break
        self._find_held_back()
        return self._bounds

    def starting(self) -> Mapping[TopicPartition, int]:
        """Return the offsets where a new stream begins, by its options, in the logs last looked at."""
        check_bounds(broker_partitions(self._client, self._options, may_be_none=True), self._options)
        return starting_offsets(self._client, self._bounds, self._options)

    def within(self, part: OffsetRange, size: int) -> tuple[int, int]:
        """Not for a broker: the options refuse a limit of bytes."""
        raise NotImplementedError

    def bytes_in(self, part: OffsetRange) -> int:
        """Not for a broker: the options refuse a limit of bytes."""
        raise NotImplementedError

    def tasks(self, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        """Return the tasks that read these ranges, in offset order in each partition."""
        return divided_ranges(clipped(ranges, self._options), self._options)

    def held_back(self) -> list[HeldBack]:
        """Return the transactions that have held back partitions for some seconds."""
        return list(self._held_back.values())

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _find_held_back(self) -> None:
        """Ask for the transactions that hold back a partition for long: in most looks some transaction is
        open."""
        now_ms = self._clock.running_ms()
        held = {name: here for name, here in self._bounds.items() if here.end < here.log_end}
        since = {
            name: self._since[name] if self._since.get(name, (-1, 0))[0] == here.end else (here.end, now_ms)
            for name, here in held.items()
        }
        self._since = since
        known = {
            name: each._replace(log_end=held[name].log_end)
            for name, each in self._held_back.items()
            if name in held and held[name].end == each.offset
        }
        wanted = [name for name in held if name not in known and now_ms - since[name][1] >= PATIENCE_MS]
        self._held_back = known | (self._ask(wanted) if wanted else {})

    def _ask(self, names: Sequence[TopicPartition]) -> dict[TopicPartition, HeldBack]:
        try:
            producers = self._client.producers(names)
            oldest = {
                name: min(open_, key=lambda each: each.current_transaction_start_offset or 0)
                for name, states in producers.items()
                if (open_ := [each for each in states if each.current_transaction_start_offset is not None])
            }
            described = self._client.transactions({each.producer_id for each in oldest.values()})
        except KafkaError as error:  # an old broker, or no permission: the stream does not need it
            LOG.info("the transactions that hold back %s are unknown: %s", names, error)
            return {}
        found = {}
        for name, producer in oldest.items():
            known = described.get(producer.producer_id)
            here = self._bounds[name]
            found[name] = HeldBack(
                name,
                here.end,
                here.log_end,
                producer.producer_id,
                producer.producer_epoch,
                None if known is None else known.transactional_id,
                (known and known.transaction_start_time_ms) or producer.last_timestamp,
            )
        return found
