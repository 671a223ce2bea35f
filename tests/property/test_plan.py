"""Spark's plan over random logs: it is deterministic, and any division into tasks gives a consumer's rows.

The model is the list of steps that wrote the log: it has, for each record, whether its transaction was
committed, and where the oldest open one began.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.predicate import chosen
from tests.models.predicate import written as sql
from txnkafka.logdir import ReadRequest, ReadUnit
from txnkafka.record.predicate import ANY, Predicate
from txnkafka.record.predicate_text import parse_predicate
from txnkafka.spark.options import ReadOptions, read_options
from txnkafka.spark.plan import ReadTask, plan_tasks
from txnkafka.spark.read import TaskReader
from txnkafka.spark.schema import batch_schema

CODECS = (0, 0, 0, 1, 4)
NO_TRANSACTION = -1


class Step(NamedTuple):
    """``data`` of a producer, its ``commit`` or ``abort``, or ``roll``: a new segment."""

    kind: str
    producer_id: int = NO_TRANSACTION
    count: int = 1
    codec: int = 0


data_steps = st.builds(
    Step, st.just("data"), st.integers(-1, 2), st.integers(1, 4), codec=st.sampled_from(CODECS)
)
end_steps = st.builds(Step, st.sampled_from(["commit", "abort"]), st.integers(0, 2))
steps = st.lists(data_steps | data_steps | end_steps | st.just(Step("roll")), max_size=14)


class Row(NamedTuple):
    offset: int
    value: bytes


def timestamp_of(offset: int) -> int:
    """Timestamps go up and down, as the clocks of producers do."""
    return 100 * (offset // 5) + 7 * offset % 11


class Log:
    """The bytes of each segment, and for each record whether its transaction was committed (None: open)."""

    def __init__(self, written: list[Step]) -> None:
        self.segments: dict[int, list[bytes]] = {0: []}
        self.rows: list[Row] = []
        self.committed: list[bool | None] = []
        self.open: dict[int, list[int]] = {}
        self.end = 0
        for step in written:
            getattr(self, f"_{step.kind}")(step)

    def _append(self, content: bytes, count: int) -> None:
        self.segments[max(self.segments)].append(content)
        self.end += count

    def _data(self, step: Step) -> None:
        values = [f"{self.end + i} {'x' * 20}".encode() for i in range(step.count)]
        self.rows += [Row(self.end + i, value) for i, value in enumerate(values)]
        transactional = step.producer_id != NO_TRANSACTION
        if transactional:
            at = range(len(self.committed), len(self.committed) + step.count)
            self.open.setdefault(step.producer_id, []).extend(at)
        self.committed += [None if transactional else True] * step.count
        batch = Batch(
            records=[PlainRecord(None, value, timestamp_of(self.end + i)) for i, value in enumerate(values)],
            base_offset=self.end,
            codec=step.codec,
            transactional=transactional,
            producer_id=step.producer_id,
            producer_epoch=0,
        )
        self._append(batch.encode(), step.count)

    def _commit(self, step: Step) -> None:
        for number in self.open.pop(step.producer_id, ()):
            self.committed[number] = step.kind == "commit"
        marker = end_marker(
            int(step.kind == "commit"), base_offset=self.end, producer_id=step.producer_id, producer_epoch=0
        )
        self._append(marker, 1)

    _abort = _commit

    def _roll(self, step: Step) -> None:
        self.segments.setdefault(self.end, [])

    def seen(self, level: str, start: int, end: int) -> list[Row]:
        """Return the rows that a consumer gets of [start, end)."""
        wanted = [start <= row.offset < end for row in self.rows]
        if level == "read_committed":
            stable = min((self.rows[each[0]].offset for each in self.open.values()), default=self.end)
            for i, row in enumerate(self.rows):
                wanted[i] &= bool(self.committed[i]) and row.offset < stable
        return [row for row, want in zip(self.rows, wanted, strict=True) if want]

    def write(self, root: str) -> str:
        directory = Path(root, "t-0")
        directory.mkdir()
        for base_offset, batches in self.segments.items():
            (directory / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
        return root


def options(log: Log, level: str, size: int, bounds: tuple[int, int]) -> ReadOptions:
    return read_options(
        isolation_level=level,
        starting_offsets={"t": {0: bounds[0]}},
        ending_offsets={"t": {0: bounds[1]}},
        max_bytes_per_partition=size,
    )


def rows(tasks: list[ReadTask], where: Predicate = ANY) -> list[Row]:
    options = ReadOptions(request=ReadRequest(where=where))
    reader = TaskReader(batch_schema(["value", "offset", "partition"]), options)
    return [Row(row["offset"], row["value"]) for batch in reader(tasks) for row in batch.to_pylist()]


def bounds_of(log: Log, cuts: tuple[int, int]) -> tuple[int, int]:
    first, second = (cut % (log.end + 1) for cut in cuts)
    return min(first, second), max(first, second)


def where_holds(where: Any, row: Row) -> bool:
    topic_partition = {"topic": "t", "partition": 0}
    record = {"offset": row.offset, "timestamp": timestamp_of(row.offset), "value": row.value}
    return chosen(where, {**topic_partition, **record})


def planned_bytes(tasks: list[ReadTask]) -> int:
    return sum(unit.end_position - unit.start_position for task in tasks for unit in task.units)


levels = st.sampled_from(["read_committed", "read_uncommitted"])
sizes = st.integers(1, 400) | st.just(1 << 20)
numbers = st.integers(0, 30)
predicates = st.one_of(
    st.tuples(st.sampled_from(["<", "<=", "=", ">", ">="]), st.just("offset"), numbers),
    st.tuples(st.sampled_from(["<", ">="]), st.just("timestamp"), st.integers(0, 600)),
    st.tuples(st.just("="), st.just("partition"), st.integers(0, 1)),
    st.builds(lambda values: ("in", "offset", *values), st.lists(numbers, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["<", ">"]), st.just(("length", "value")), st.integers(21, 24)),
    st.tuples(st.just("like"), st.just("value"), st.sampled_from(["1%", "%x", "_ %"])),
)
wheres = st.recursive(
    predicates,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.builds(lambda a, b: ("and", a, b), inner, inner),
        st.builds(lambda a, b: ("or", a, b), inner, inner),
    ),
    max_leaves=4,
)
cuts = st.just((0, -1)) | st.tuples(st.integers(0, 50), st.integers(0, 50))


@given(steps, levels, sizes, cuts)
def test_any_cut_gives_the_rows_that_a_consumer_gets(
    written: list[Step], level: str, size: int, wanted: tuple[int, int]
) -> None:
    log = Log(written)
    start, end = bounds_of(log, wanted)
    with tempfile.TemporaryDirectory() as root:
        tasks = plan_tasks([log.write(root)], options(log, level, size, (start, end)))
        assert rows(tasks) == log.seen(level, start, end)


@given(steps, levels, sizes)
def test_a_plan_is_pure_and_a_task_may_be_read_anywhere_and_again(
    written: list[Step], level: str, size: int
) -> None:
    log = Log(written)
    with tempfile.TemporaryDirectory() as root:
        wanted = options(log, level, size, (0, log.end))
        tasks = plan_tasks([log.write(root)], wanted)
        assert plan_tasks([root], wanted) == tasks
        elsewhere = pickle.loads(pickle.dumps(tasks))
        assert elsewhere == tasks
        alone = [rows([task]) for task in reversed(elsewhere)]
        assert [row for found in reversed(alone) for row in found] == rows(tasks)


@given(steps, levels, sizes)
@settings(max_examples=50)
def test_units_are_whole_batches_follow_one_another_and_keep_to_the_size(
    written: list[Step], level: str, size: int
) -> None:
    log = Log(written)
    with tempfile.TemporaryDirectory() as root:
        tasks = plan_tasks([log.write(root)], options(log, level, size, (0, log.end)))
    boundaries = {base: list(_boundaries(batches)) for base, batches in log.segments.items()}
    units = [unit for task in tasks for unit in task.units]
    for unit in units:
        assert {unit.start_position, unit.end_position} <= set(boundaries[_base_offset(unit)])
    for before, after in pairwise(units):
        assert before.end_offset <= after.start_offset
    for task in tasks:
        batches = max(len(batch) for batches in log.segments.values() for batch in batches)
        assert sum(unit.end_position - unit.start_position for unit in task.units) < size + batches


@given(steps, levels, sizes, wheres, st.none() | st.integers(1, 5))
def test_a_predicate_changes_the_cost_and_not_the_rows(
    written: list[Step], level: str, size: int, where: Any, most: int | None
) -> None:
    log = Log(written)
    everything = options(log, level, size, (0, log.end))
    predicate = parse_predicate(sql(where))
    with tempfile.TemporaryDirectory() as root:
        tasks = plan_tasks([log.write(root)], everything)
        wanted = replace(
            everything, request=replace(everything.request, where=predicate), max_records_per_partition=most
        )
        chosen_tasks = plan_tasks([root], wanted)
        assert rows(chosen_tasks, predicate) == [row for row in rows(tasks) if where_holds(where, row)]
    if most is None:
        assert planned_bytes(chosen_tasks) <= planned_bytes(tasks)
    else:
        for task in chosen_tasks:
            assert sum(unit.end_offset - unit.start_offset for unit in task.units) <= most


def test_bounds_drop_segments_and_units_before_anything_is_read(tmp_path: Path) -> None:
    written = [step for _ in range(8) for step in (Step("data", count=5), Step("roll"))]
    log = Log(written)
    root = log.write(str(tmp_path))
    everything = plan_tasks([root], ReadOptions())
    one = planned_bytes(everything) // 8

    def cost(where: str) -> int:
        tasks = plan_tasks([root], read_options(where=where))
        return round(planned_bytes(tasks) / one)

    assert cost("offset >= 0") == 8
    assert cost("offset >= 5 and offset < 15") == 2
    assert cost("offset in (7, 8) or offset = 9") == 1
    assert cost("timestamp >= 600") == 2
    assert cost("timestamp >= 600 and offset < 35") == 1
    assert cost("topic = 't' and partition <> 0") == 0
    assert cost("offset < 10 and topic = 'other'") == 0
    assert cost("length(value) > 3") == 8


def _boundaries(batches: list[bytes]) -> Iterator[int]:
    position = 0
    yield position
    for batch in batches:
        position += len(batch)
        yield position


def _base_offset(unit: ReadUnit) -> int:
    return int(Path(unit.path).stem)


@given(steps, st.integers(1, 9))
@settings(max_examples=50)
def test_the_number_of_tasks_is_a_hint_that_changes_no_row(written: list[Step], wanted: int) -> None:
    log = Log(written)
    keywords: dict[str, Any] = {"isolation_level": "read_uncommitted", "min_partitions": wanted}
    with tempfile.TemporaryDirectory() as root:
        tasks = plan_tasks([log.write(root)], read_options(**keywords))
        assert rows(tasks) == log.rows
        assert rows(plan_tasks([root], read_options(isolation_level="read_uncommitted"))) == log.rows
    assert len(tasks) <= max(1, sum(map(len, log.segments.values())))
