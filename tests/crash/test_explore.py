"""The explorers find what is wrong with a small log, and nothing when nothing is."""

from __future__ import annotations

from functools import partial

import pytest

from tests.crash.explore import explore, fail_each_call
from tests.crash.toy_log import FAULTS_OF_TOY, check_toy, toy_workload


def test_a_sound_log_keeps_its_promises_when_the_power_is_cut() -> None:
    counts = explore(toy_workload, check_toy, at_least=600)
    assert len(counts) > 2


def test_a_sound_log_keeps_its_promises_when_the_power_is_cut_again() -> None:
    explore(toy_workload, check_toy, at_least=2000, limit=200, depth=2, limit_below=30)


def test_a_sound_log_keeps_its_promises_when_calls_fail() -> None:
    fail_each_call(toy_workload, check_toy, at_least=250)


@pytest.mark.parametrize("fault", FAULTS_OF_TOY)
def test_a_planted_fault_is_found(fault: str) -> None:
    workload, check = partial(toy_workload, fault=fault), partial(check_toy, fault=fault)

    def all_of_it() -> None:
        explore(workload, check, at_least=0)
        fail_each_call(workload, check, at_least=0)

    with pytest.raises((AssertionError, ValueError)) as caught:
        all_of_it()
    assert "on the disk that is called" in caught.value.__notes__[0]
