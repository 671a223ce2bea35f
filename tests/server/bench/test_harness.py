"""The harness: sides run in turn, ratios are computed within a round, and sides with different digests fail
the run."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.harness import (
    Comparison,
    Contest,
    DisagreementError,
    Limit,
    Missing,
    Side,
    Timing,
    run_contest,
)
from bench.report import as_json, as_markdown, as_text


class FakeSide:
    def __init__(
        self, name: str, cpu: Sequence[float], journal: list[str], *, units: int = 10, digest: object = 1
    ) -> None:
        self.name = name
        self.output = "records"
        self._cpu = iter(cpu)
        self._journal = journal
        self._units = units
        self._digest = digest

    def warm(self) -> None:
        self._journal.append(f"warm {self.name}")

    def run(self) -> Timing:
        self._journal.append(self.name)
        cpu = next(self._cpu)
        return Timing(cpu, 2 * cpu, self._units, int(cpu * 1.5e6))

    def digest(self) -> object:
        return self._digest

    def close(self) -> None:
        self._journal.append(f"close {self.name}")


def state_of(process_id: int) -> str:
    """``stopped`` or ``running``; a signal may take a moment."""
    deadline = time.monotonic() + 0.2
    is_stopped = False
    while not is_stopped and time.monotonic() < deadline:
        is_stopped = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return "stopped" if is_stopped else "running"


class SleepingSide(FakeSide):
    """Has a process, and notes the states of those of the other side in its runs."""

    def __init__(self, name: str, journal: list[str]) -> None:
        super().__init__(name, [1, 1, 1], journal)
        self.process = subprocess.Popen(["sleep", "60"])
        self.other: SleepingSide = self

    def process_ids(self) -> Sequence[int]:
        return (self.process.pid,)

    def run(self) -> Timing:
        states = [state_of(side.process.pid) for side in (self, self.other)]
        self._journal.append(" ".join([self.name, *states]))
        return super().run()

    def close(self) -> None:
        self._journal.append(state_of(self.process.pid))
        self.process.kill()
        self.process.wait()


def contest(sides: Sequence[Side], goal: float | None = None, unit: str = "records") -> Contest:
    return Contest(
        "fake", unit, lambda: 2_000_000, lambda: sides, [Comparison("ours", "theirs", goal)], rounds=3
    )


def test_the_processes_of_other_sides_are_stopped_while_a_side_runs() -> None:
    journal: list[str] = []
    ours, theirs = SleepingSide("ours", journal), SleepingSide("theirs", journal)
    ours.other, theirs.other = theirs, ours
    run_contest(contest([ours, theirs]))
    assert set(journal) == {
        "warm ours", "warm theirs", "ours", "theirs",
        "ours running stopped", "theirs running stopped", "running",
    }  # fmt: skip


def test_sides_are_warmed_then_take_turns_and_are_closed() -> None:
    journal: list[str] = []
    run_contest(contest([FakeSide("ours", [1, 1, 1], journal), FakeSide("theirs", [1, 1, 1], journal)]))
    turns = ["ours", "theirs"] * 3
    assert journal == ["warm ours", "warm theirs", *turns, "close theirs", "close ours"]


def test_ratios_are_taken_within_each_round_and_the_median_decides_the_goal() -> None:
    sides = [FakeSide("ours", [1, 2, 1], []), FakeSide("theirs", [4, 4, 6], [])]
    outcome = run_contest(contest(sides, goal=4.0))
    assert outcome.ratios(outcome.contest.comparisons[0]) == [4, 2, 6]
    assert outcome.met(outcome.contest.comparisons[0]) is True
    assert outcome.met(Comparison("ours", "theirs", 4.1)) is False
    assert outcome.met(Comparison("ours", "theirs")) is None
    assert outcome.missed == 0


def test_other_digests_fail_the_run_and_still_close_the_sides() -> None:
    journal: list[str] = []
    sides = [FakeSide("ours", [1] * 3, journal, digest=1), FakeSide("theirs", [1] * 3, journal, digest=2)]
    with pytest.raises(DisagreementError, match="theirs saw 2, ours saw 1"):
        run_contest(contest(sides))
    assert journal[-2:] == ["close theirs", "close ours"]


def test_another_number_of_records_fails_the_run() -> None:
    sides = [FakeSide("ours", [1] * 3, []), FakeSide("theirs", [1] * 3, [], units=11)]
    with pytest.raises(DisagreementError, match="theirs gave 11 records, not 10"):
        run_contest(contest(sides))


def test_two_sides_of_the_same_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        run_contest(contest([FakeSide("ours", [1] * 3, []), FakeSide("ours", [1] * 3, [])]))


def test_the_report_shows_rates_ratios_goals_and_the_machine() -> None:
    sides = [FakeSide("ours", [1, 2, 1], []), FakeSide("theirs", [4, 4, 6], [])]
    outcome = run_contest(contest(sides, goal=4.5))
    text = as_markdown([outcome], {"processor": "a fast one"}, "python -m bench")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert ["fake", "ours", "theirs", "4.00x", "2.00 to 6.00", "≥ 4.5", "MISSED"] in rows
    assert ["fake", "ours", "2", "1 to 2", "M records a CPU-s", "1", "3 MB"] in rows
    assert ["processor", "a fast one"] in rows
    assert "MISSED" in as_text(outcome)
    stored = json.loads(as_json([outcome], {}))
    assert stored["contests"][0]["comparisons"][0]["ratios"] == [4, 2, 6]


@pytest.mark.parametrize(("limit", "verdict"), [(500, "met"), (499, "MISSED")])
def test_a_limit_is_nanoseconds_a_unit(limit: float, verdict: str) -> None:
    sides = [FakeSide("ours", [0.001] * 3, [])]
    limits = [Limit("ours", limit)]
    limited = Contest("fake", "batches", lambda: 2000, lambda: sides, [], rounds=3, limits=limits)
    outcome = run_contest(limited)
    assert as_text(outcome).endswith(verdict)
    assert outcome.missed == (verdict == "MISSED")


def test_a_side_whose_data_is_not_compared_says_so() -> None:
    sides = [
        FakeSide("ours", [1, 1, 1], []),
        FakeSide("theirs", [1, 1, 1], []),
        FakeSide("silent", [1, 1, 1], [], digest=None),
    ]
    outcome = run_contest(contest(sides))
    assert [each.is_compared for each in outcome.sides.values()] == [True, True, False]
    assert "silent (data not compared)" in as_text(outcome)
    assert "ours (data not compared)" not in as_text(outcome)


def test_the_contest_is_held_without_a_side_that_is_missing() -> None:
    sides = [FakeSide("ours", [1] * 3, []), Missing("theirs", "there is no go")]
    limits = [Limit("theirs", 1), Limit("ours", 1, "MB")]
    wanted = [Comparison("ours", "theirs", 2.0)]
    outcome = run_contest(Contest("fake", "records", lambda: 10, lambda: sides, wanted, 3, "", limits))
    assert list(outcome.contest.comparisons) == []
    assert [limit.side for limit in outcome.contest.limits] == ["ours"]
    assert outcome.missed == 1  # it has 1.5 MB
    assert "theirs  left out" in as_text(outcome)
    assert "there is no go" in as_markdown([outcome], {}, "python -m bench")
    assert json.loads(as_json([outcome], {}))["contests"][0]["missing"] == {"theirs": "there is no go"}


class WaitingSide(FakeSide):
    def run(self) -> Timing:
        timing = super().run()
        return timing._replace(wall=2.0, latencies=[timing.cpu / 100] * self._units)


def test_transactions_have_a_rate_by_the_wall_clock_and_percentiles_of_all_rounds() -> None:
    sides = [WaitingSide("ours", [1, 1, 7], [], units=40)]
    limits = [
        Limit("ours", 10, "ms, p99"),
        Limit("ours", 50, "ms, wall clock"),
        Limit("ours", 20, "CPU-ms"),
    ]
    outcome = run_contest(Contest("fake", "transactions", lambda: 40, lambda: sides, [], 3, "", limits))
    (ours,) = outcome.sides.values()
    assert (ours.percentile(50), ours.percentile(66), ours.percentile(67)) == (0.01, 0.01, 0.07)
    assert [outcome.figures(limit) for limit in limits] == [[70], [50, 50, 50], [25, 25, 175]]
    assert [outcome.within(limit) for limit in limits] == [False, True, False]
    text = as_text(outcome)
    assert "25  CPU-ms a transaction  25 to 175" in text.replace("   ", "  ")
    assert "wall 20 a second, p50 10.00 ms, p99 70.00 ms" in text


def test_a_comparison_of_percentiles_has_one_ratio_of_all_rounds() -> None:
    sides = [WaitingSide("ours", [1, 1, 7], []), WaitingSide("theirs", [2, 2, 3.5], [])]
    comparisons = [
        Comparison("ours", "theirs", 2, percentile=50),
        Comparison("ours", "theirs", 2, percentile=99),
    ]
    outcome = run_contest(Contest("fake", "transactions", lambda: 10, lambda: sides, comparisons, 3))
    assert [outcome.ratios(each) for each in comparisons] == [[2], [0.5]]
    assert outcome.missed == 1
    assert "ours / theirs, p50  2.00x" in as_text(outcome)
    found = json.loads(as_json([outcome], {}))["contests"][0]["comparisons"]
    assert [each["percentile"] for each in found] == [50, 99]
