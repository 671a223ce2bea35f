"""Every reference workload keeps its promises when the power is cut, when it is cut again during recovery,
and when calls fail.

``make long`` checks up to 3,000 crash states of each workload, ``make test`` a few hundred, with a second
power cut and calls that fail in some workloads. The environment variable ``TXNKAFKA_CRASH_STATES`` sets
another number; 0 takes all in ``make long``, more than 600,000, in about an hour.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from tests.conftest import LONG, sampled
from tests.crash.explore import FAULTS, explore, fail_each_call
from tests.crash.workloads import REFERENCES, Reference

STATES = int(os.environ.get("TXNKAFKA_CRASH_STATES", "3000" if LONG else "1200"))
TWICE, BELOW = (200, 12) if LONG else (60, 10)  # with (1000, 20) all workloads together take hours
ONCE = FAULTS if LONG else FAULTS[::2]


def each_workload(references: Sequence[Reference]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("reference", references, ids=lambda each: each.workload.__name__)


@each_workload(REFERENCES)
def test_a_power_cut(reference: Reference) -> None:
    limit = STATES or None if LONG else min(reference.quick, STATES)
    least = reference.states if limit is None else min(reference.states, limit // 3)
    explore(reference.workload, reference.check, at_least=least, limit=limit)


@each_workload(sampled((each for each in REFERENCES if LONG or each.twice), every=4))
def test_a_second_power_cut(reference: Reference) -> None:
    states = min(reference.states, TWICE) // 2
    explore(reference.workload, reference.check, at_least=states, limit=TWICE, depth=2, limit_below=BELOW)


@each_workload(sampled((each for each in REFERENCES if LONG or each.fails), every=4, first=2))
def test_calls_that_fail(reference: Reference) -> None:
    least = reference.failures * len(ONCE) // len(FAULTS)
    limit = 3 if LONG else 0
    fail_each_call(reference.workload, reference.check, at_least=least, limit=limit, faults=ONCE)
