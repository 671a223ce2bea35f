"""``StreamReader``: what Spark asks a stream for, in a process of the driver that lives as long as the query.

Everything that a restarted query needs is in the offsets of the checkpoint; the state here only saves work.
Spark 4.2 and later pass the start of a batch to ``latestOffset``. Earlier versions do not: there the reader
keeps the end of the last batch, which Spark tells it after a restart by asking for the partitions of an empty
range.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from txnkafka.env import Clock, SystemClock
from txnkafka.errors import OffsetOutOfRangeError
from txnkafka.model import TopicPartition
from txnkafka.spark.log_bounds import LogBounds, OffsetRange
from txnkafka.spark.stream.held_back import HeldBackLog
from txnkafka.spark.stream.limits import TriggerLimits, limited, shares
from txnkafka.spark.stream.losses import begins_of, ranges_of
from txnkafka.spark.stream.spark_limits import SupportsTriggerAvailableNow, read_limit, wants_all
from txnkafka.spark.stream.stream_offsets import StreamOffsets

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.spark.stream.stream_log import StreamLog

LOG = logging.getLogger("txnkafka.spark")
Json = dict[str, Any]


class StreamPartition(InputPartition):
    """The input of one task."""

    def __init__(self, task: object) -> None:
        super().__init__(task)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """``open_log`` opens the logs when they are first needed: executors also create this object, to read with
    ``rows``, and then nothing is opened."""

    def __init__(
        self,
        open_log: Callable[[], StreamLog],
        rows: Callable[[list[object]], Iterator[pa.RecordBatch]],
        limits: TriggerLimits,
        *,
        fail_on_data_loss: bool,
        clock: Clock | None = None,
    ) -> None:
        self._open_log = open_log
        self._rows = rows
        self._limits = limits
        self._fail_on_data_loss = fail_on_data_loss
        self._clock = SystemClock() if clock is None else clock
        self._opened: StreamLog | None = None
        self._bounds: Mapping[TopicPartition, LogBounds] | None = None  # until they are planned
        self._topic_ids: dict[TopicPartition, str | None] = {}
        self._initial: StreamOffsets | None = None
        self._end: Json | None = None
        self._target: Mapping[TopicPartition, int] | None = None
        self._planned: tuple[Json, Json, list[StreamPartition]] | None = None
        self._last_ms: int | None = None
        self._held_back = HeldBackLog()
        self._reported: set[str] = set()

    # Spark's calls

    def initialOffset(self) -> Json:  # noqa: N802  (Spark's name)
        """Return the offsets where a new query begins."""
        if self._initial is None:
            bounds = self._look()
            offsets = self._log.starting()
            self._initial = StreamOffsets(offsets, _cleaned(bounds), is_initial=True)
        return self._initial.to_json()

    def latestOffset(self, start: Json | None = None, limit: object = None) -> Json:  # noqa: N802
        """Return the end of the next batch: ``start`` if it would be empty."""
        if start is None:
            start = self._end or self.initialOffset()
        bounds = self._look()
        held_back = self._log.held_back()
        self._held_back.report(held_back, self._clock.now_ms())
        return self._next(start, bounds, TriggerLimits() if wants_all(limit) else self._limits)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the limit of the options that Spark passes to ``latestOffset``. All limits are applied
        there; only the class of this one counts."""
        return read_limit(self._limits)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record where the logs end now; the query stops there."""
        self._target = {name: here.end for name, here in self._look().items()}

    def reportLatestOffset(self) -> Json | None:  # noqa: N802
        """Return the ends of the logs when they were last looked at, for the progress of the query, with the
        transactions that hold partitions back."""
        if self._opened is None or self._bounds is None:
            return None
        found = StreamOffsets({name: here.end for name, here in self._bounds.items()}).to_json()
        now_ms = self._clock.now_ms()
        held_back = {str(each.topic_partition): each.to_json(now_ms) for each in self._opened.held_back()}
        return {**found, "#heldBack": held_back} if held_back else found

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """Return the tasks of a batch. Raises OffsetOutOfRangeError for lost offsets."""
        self._end = end
        if start == end:
            return []
        if self._planned is None or self._planned[:2] != (start, end):
            bounds = self._look() if self._bounds is None else self._bounds
            ranges, losses = ranges_of(StreamOffsets.of(start), StreamOffsets.of(end), bounds)
            self._lose(losses)
            self._planned = start, end, [StreamPartition(task) for task in self._log.tasks(ranges)]
        return [*self._planned[2]]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Read a task, in an executor."""
        tasks = [] if partition is None or partition.value is None else [partition.value]
        return self._rows(tasks)

    def stop(self) -> None:
        """Close the logs."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    # Parts

    @property
    def _log(self) -> StreamLog:
        if self._opened is None:
            self._opened = self._open_log()
        return self._opened

    def _look(self) -> Mapping[TopicPartition, LogBounds]:
        self._bounds = self._log.look()
        return self._bounds

    def _next(self, start: Json, bounds: Mapping[TopicPartition, LogBounds], limits: TriggerLimits) -> Json:
        given = StreamOffsets.of(start)
        target = self._target
        if target is not None:
            # partitions that are new since then belong to the next run
            bounds = {name: here for name, here in bounds.items() if name in target or name in given.offsets}
        found = begins_of(given, bounds)
        self._lose([*self._created_again(given, bounds), *found.losses])
        begins = found.offsets
        ends = {}
        for name, here in bounds.items():
            end = here.end if target is None else min(here.end, target.get(name, here.end))
            ends[name] = max(begins[name], end)
        if self._waits(begins, ends, limits):
            return start
        ends = limited(begins, ends, limits.max_offsets)
        if limits.max_bytes is not None:
            ends = self._within_bytes(begins, ends, limits.max_bytes)
        if ends == given.offsets and not given.is_initial:
            return start
        self._last_ms = self._clock.running_ms()
        first = given.offsets if given.is_initial else None
        return StreamOffsets(ends, _cleaned(bounds), first).to_json()

    def _created_again(self, given: StreamOffsets, bounds: Mapping[TopicPartition, LogBounds]) -> list[str]:
        """Return the losses of topics that were deleted and created again while the query ran."""
        known = self._topic_ids
        self._topic_ids = {**known, **{name: here.topic_id for name, here in bounds.items()}}
        return [
            f"{name}: the topic was deleted and created again; its new offsets below {offset} are not read"
            for name, offset in given.offsets.items()
            if name in bounds and known.get(name) not in (None, bounds[name].topic_id)
        ]

    def _waits(
        self, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limits: TriggerLimits
    ) -> bool:
        """Return whether the batch waits for ``min_offsets``."""
        if limits.min_offsets is None or self._target is not None or self._last_ms is None:
            return False
        if self._clock.running_ms() - self._last_ms >= limits.max_delay_ms:
            return False
        return sum(end - begins[name] for name, end in ends.items()) < limits.min_offsets

    def _within_bytes(
        self, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int
    ) -> dict[TopicPartition, int]:
        parts = {
            name: OffsetRange(name, begins[name], end) for name, end in ends.items() if end > begins[name]
        }
        sizes = {name: self._log.bytes_in(part) for name, part in parts.items()}
        turn = sum(begins.values())
        some = shares(sizes, limit, turn)
        found, left = dict(begins), limit
        names = list(some)
        for i in range(len(names)):
            name = names[(turn + i) % len(names)]
            end, size = self._log.within(parts[name], some[name])
            if size <= left or left == limit:  # a batch may be larger than the limit
                found[name] = end
                left -= size
        return found

    def _lose(self, losses: list[str]) -> None:
        """Fail because of lost offsets, or report each once."""
        if losses and self._fail_on_data_loss:
            raise OffsetOutOfRangeError(
                f"{'; '.join(losses)}. With failOnDataLoss=false the query continues with what exists"
            )
        for loss in losses:
            if loss not in self._reported:
                self._reported.add(loss)
                LOG.warning("%s; the query continues with what exists", loss)


def _cleaned(bounds: Mapping[TopicPartition, LogBounds]) -> dict[TopicPartition, int]:
    return {name: here.cleaned_to for name, here in bounds.items() if here.cleaned_to}
