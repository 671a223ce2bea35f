"""Every reference workload keeps its promises when the power is cut, when it is cut again during recovery,
and when calls fail. ``make long`` checks all states, ``make test`` a sample of the larger workloads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.conftest import LONG
from tests.crash.explore import FAULTS, explore, fail_each_call
from tests.crash.workloads import REFERENCES, Reference

TWICE, BELOW = (1000, 20) if LONG else (60, 10)  # more would take half an hour for one workload
ONCE = FAULTS if LONG else FAULTS[::2]


def each_workload(references: Sequence[Reference]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("reference", references, ids=lambda each: each.workload.__name__)


@each_workload(REFERENCES)
def test_a_power_cut(reference: Reference) -> None:
    limit = None if LONG else reference.quick
    least = reference.states if LONG else min(reference.states, reference.quick // 3)
    explore(reference.workload, reference.check, at_least=least, limit=limit)


@each_workload([each for each in REFERENCES if LONG or each.twice])
def test_a_second_power_cut(reference: Reference) -> None:
    states = min(reference.states, TWICE) // 2
    explore(reference.workload, reference.check, at_least=states, limit=TWICE, depth=2, limit_below=BELOW)


@each_workload([each for each in REFERENCES if LONG or each.fails])
def test_calls_that_fail(reference: Reference) -> None:
    least = reference.failures * len(ONCE) // len(FAULTS)
    limit = 3 if LONG else 0
    fail_each_call(reference.workload, reference.check, at_least=least, limit=limit, faults=ONCE)
