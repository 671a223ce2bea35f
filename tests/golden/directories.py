"""The undamaged directories, each with the case that has its answers."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.golden.cases import ISOLATION_LEVELS, Case, cases
from txnkafka import LogDir
from txnkafka.logdir import PartitionView
from txnkafka.model import TopicPartition

__all__ = ["ANSWERED", "INTACT", "Directory", "each_answered", "each_intact", "each_level"]


class Directory(NamedTuple):
    """One partition in one directory of a case."""

    case: Case
    name: str
    partition: TopicPartition

    def __str__(self) -> str:
        return f"{self.case.name}/{self.name}/{self.partition}"

    @property
    def path(self) -> str:
        return str(self.case.root / self.name)

    def view(self, io: str = "auto") -> PartitionView:
        return LogDir(self.path, io=io).partition(*self.partition)


def _directories(case: Case) -> list[str]:
    return ["logs"] if case.recovered is None else ["logs", "recovered"]


# The directory of a killed broker reads as after the broker's own recovery: nothing was truncated there.
INTACT = [
    Directory(case, name, partition)
    for case in cases()
    if case.damage is None
    for name in _directories(case)
    for partition in case.partitions()
]
ANSWERED = [each for each in INTACT if each.name == each.case.answered.name]

each_intact = pytest.mark.parametrize("directory", INTACT, ids=str)
each_answered = pytest.mark.parametrize("directory", ANSWERED, ids=str)
each_level = pytest.mark.parametrize("isolation_level", ISOLATION_LEVELS)
