"""Planning a log again after appends: from the checkpoint of the previous plan, and from the beginning."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from bench.harness import Comparison, Contest, Side, Timing, timed
from bench.segments import MIB, Input, ready
from txnkafka import LogDir
from txnkafka.logdir.partition import PartitionView
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.resumable_plan import PlanCheckpoint, resumable_plan

__all__ = ["contests"]

GROWTH_RECORDS = 8_000  # about 1 MiB of records of 100 bytes
TIMES = 20  # plans per round when a plan takes a millisecond
NOTE = (
    f"planning again: `resumed` plans the last {GROWTH_RECORDS:,} records of a log from the pickled "
    "checkpoint of the plan before them, `whole` the same log from its beginning; both open the partition "
    "first."
)


class PlanSide:
    """Plans the log of an input up to its end."""

    def __init__(self, source: Input, *, is_resumed: bool) -> None:
        self._source = source
        self._is_resumed = is_resumed
        self.output = "plan"
        self._checkpoint: bytes | None = None
        self._end = 0

    @property
    def name(self) -> str:
        return "resumed" if self._is_resumed else "whole"

    def warm(self) -> None:
        ready(self._source)
        self._end = self._view().log_end_offset
        if self._is_resumed:
            before = ReadRequest(end_offset=self._end - GROWTH_RECORDS)
            self._checkpoint = pickle.dumps(resumable_plan(self._view(), before).checkpoint)
        self.run()

    def _view(self, checkpoint: PlanCheckpoint | None = None) -> PartitionView:
        source = LogDir(str(self._source.log_dir)).partition("bench", 0).source
        return PartitionView(source, checkpoint)

    def run(self) -> Timing:
        times = TIMES if self._is_resumed else 1
        timing: list[tuple[float, float]] = []
        with timed(timing):
            for _ in range(times):
                self._planned_end()
        cpu, wall = timing[0]
        return Timing(cpu / times, wall / times, 1)

    def _planned_end(self) -> int:
        checkpoint = None if self._checkpoint is None else pickle.loads(self._checkpoint)
        plan = resumable_plan(self._view(checkpoint))
        return plan.units[-1].end_offset

    def digest(self) -> object:
        return self._planned_end()

    def close(self) -> None:
        """Do nothing: no file is open."""


def contests(size: int, rounds: int) -> list[Contest]:
    """Return the contest over a log of ``size`` bytes."""
    source = Input("100", size)

    def sides() -> Sequence[Side]:
        return [PlanSide(source, is_resumed=resumed) for resumed in (True, False)]

    name = f"plan {size // MIB} MiB again after {GROWTH_RECORDS:,} records"
    comparison = Comparison("resumed", "whole")
    return [Contest(name, "plan", lambda: 1, sides, [comparison], rounds, NOTE)]
