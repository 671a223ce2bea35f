"""The explorers find each planted fault of a small log, and none in a correct one."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.crash.explore import explore, fail_each_call, replay
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


@pytest.mark.parametrize(("fault", "depth"), [("no sync of data", 1), ("torn end not cut", 2)])
def test_what_was_found_is_found_again_by_its_name(fault: str, depth: int) -> None:
    workload, check = partial(toy_workload, fault=fault), partial(check_toy, fault=fault)
    with pytest.raises((AssertionError, ValueError)) as caught:
        explore(workload, check, at_least=0, depth=depth)
    names = re.findall("'(.*?)'", caught.value.__notes__[0])
    with pytest.raises(type(caught.value), match=re.escape(str(caught.value).partition("\n")[0])):
        replay(workload, check, *names)


def test_too_few_states_are_a_failure() -> None:
    with pytest.raises(AssertionError, match="expected at least 1000"):
        explore(toy_workload, check_toy, at_least=1000, limit=50)
    with pytest.raises(AssertionError, match="expected at least 1000"):
        fail_each_call(toy_workload, check_toy, at_least=1000)
