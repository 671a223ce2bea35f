"""The schedule of checks, with a virtual clock: when a half is checked, how often, and what follows."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.coordinator.half.check_schedule import (
    NEVER,
    Check,
    CheckRules,
    CheckSchedule,
    PolicyDecision,
)
from txnkafka.coordinator.half.half_image import Half, HalfState
from txnkafka.wire.records.half_records import Outcome

HOUR = 3_600_000
WALL = 1_700_000_000_000


class Clock:
    """A running clock, and a wall clock that can be set."""

    def __init__(self) -> None:
        self.now = 0
        self.set_by = 0

    @property
    def wall(self) -> int:
        return WALL + self.now + self.set_by


class Listeners:
    """Listeners of one group that confirm each check, until ``absent`` is set."""

    def __init__(self, rules: CheckRules | None = None) -> None:
        self.rules = rules or CheckRules()
        self.clock = Clock()
        self.schedule = CheckSchedule(self.rules)
        self.absent = False
        self.checks: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.decisions: list[tuple[int, PolicyDecision]] = []
        self.halves: dict[str, Half] = {}

    def half(self, name: str = "a", *, immunity_ms: int = -1, check_max: int = -1, asks: int = 0) -> Half:
        """Return a new half, which the schedule does not know yet."""
        half = self.halves[name] = Half(
            name, "g", HalfState.PREPARED, 0, 1, self.clock.wall, immunity_ms, check_max, asks,
            self.clock.wall if asks else -1,
        )  # fmt: skip
        return half

    def update(self, half: Half, *, is_live: bool = True) -> None:
        """Replay a record of a half."""
        self.schedule.update(half, self.clock.now, self.clock.wall, is_live=is_live)

    def restart(self) -> None:
        """Build the schedule again, as a new owner does."""
        self.schedule = CheckSchedule(self.rules)
        for half in self.halves.values():
            self.update(half, is_live=False)

    def confirm(self, name: str) -> None:
        """Replay that a listener got the next check of a half."""
        half = self.halves[name]
        half.asks, half.last_ms = half.asks + 1, self.clock.wall
        self.update(half)

    def run(self, ms: int) -> None:
        """Let time pass."""
        until = self.clock.now + ms
        while self.schedule.next <= until:
            self.clock.now = max(self.clock.now, self.schedule.next)
            for step in self.schedule.due(self.clock.now, 100):
                if isinstance(step, PolicyDecision):
                    self.decisions.append((self.clock.now, step))
                    self.halves[step.transaction_id].state = HalfState.DECIDED
                    self.update(self.halves[step.transaction_id])
                else:
                    self.checks[step.transaction_id].append((self.clock.now, step.ask_no))
                    if not self.absent:
                        self.confirm(step.transaction_id)
        self.clock.now = until


def test_with_default_settings_a_half_is_checked_after_six_seconds_and_then_every_thirty() -> None:
    world = Listeners()
    world.update(world.half())
    world.run(5_999)
    assert not world.checks
    world.run(HOUR)
    assert world.checks["a"] == [(6_000 + 30_000 * n, n + 1) for n in range(15)]
    ((at, decision),) = world.decisions
    assert (at, decision.outcome) == (6_000 + 15 * 30_000, Outcome.PARK)
    assert decision.remark == "undecided after 15 checks"


def test_an_answer_to_the_last_check_counts_for_one_more_interval() -> None:
    world = Listeners(CheckRules(check_max=1))
    half = world.half()
    world.update(half)
    world.run(6_000 + 29_999)
    assert (len(world.checks["a"]), world.decisions) == (1, [])
    half.state = HalfState.DECIDED
    world.update(half)
    world.run(HOUR)
    assert world.decisions == []
    assert (world.schedule.next, len(world.schedule)) == (NEVER, 0)


def test_the_immunity_of_a_half_delays_only_its_own_first_check() -> None:
    world = Listeners()
    world.update(world.half("a", immunity_ms=100_000))
    world.update(world.half("b"))
    world.run(130_000)
    assert world.checks["a"] == [(100_000, 1), (130_000, 2)]
    assert world.checks["b"][0] == (6_000, 1)


def test_an_immunity_beyond_all_checks_leaves_their_number() -> None:
    world = Listeners(CheckRules(check_max=3, interval_ms=2_000))
    world.update(world.half(immunity_ms=60_000))
    world.run(HOUR)
    assert [number for _, number in world.checks["a"]] == [1, 2, 3]


def test_checks_without_a_listener_are_not_counted_and_rarely_repeated() -> None:
    world = Listeners()
    world.absent = True
    world.update(world.half())
    world.run(HOUR)
    repeats = [6_000 + 300_000 * n for n in range(12)]
    assert world.checks["a"] == [(at, 1) for at in repeats]
    world.confirm("a")  # a listener comes, and reads the check that waits
    world.absent = False
    world.run(40_000)
    assert world.checks["a"][12:] == [(HOUR + 30_000, 2)]


@pytest.mark.parametrize(
    ("policy", "outcome"), [("park", Outcome.PARK), ("rollback", Outcome.ROLLBACK), ("keep", None)]
)
def test_the_policy_decides_after_the_last_check(policy: str, outcome: Outcome | None) -> None:
    world = Listeners(CheckRules(check_max=2, policy=policy, max_age_ms=10 * HOUR))
    world.update(world.half())
    world.run(9 * HOUR)
    assert [each.outcome for _, each in world.decisions] == ([] if outcome is None else [outcome])
    world.run(2 * HOUR)
    assert [each.outcome for _, each in world.decisions] == [outcome or Outcome.PARK]


def test_a_half_is_parked_at_its_greatest_age_although_nobody_was_asked() -> None:
    world = Listeners(CheckRules(max_age_ms=2 * HOUR))
    world.absent = True
    world.update(world.half())
    world.run(3 * HOUR)
    ((at, decision),) = world.decisions
    assert (at, decision.outcome) == (2 * HOUR, Outcome.PARK)
    assert "transaction.max.age" in decision.remark


def test_a_number_of_checks_of_zero_means_no_check() -> None:
    world = Listeners()
    world.update(world.half(check_max=0))
    world.run(HOUR)
    assert not world.checks
    assert [at for at, _ in world.decisions] == [6_000]


def test_a_check_that_was_not_sent_is_repeated_after_an_interval() -> None:
    schedule = CheckSchedule(CheckRules())
    half = Half("a", "g", HalfState.PREPARED, born_ms=WALL)
    schedule.update(half, 0, WALL, is_live=True)
    assert schedule.due(6_000, 10) == [Check("a", 1)]
    schedule.failed("a", 6_100)
    assert schedule.due(36_099, 10) == []
    assert schedule.due(36_100, 10) == [Check("a", 1)]
    schedule.failed("gone", 36_100)


def test_a_new_owner_continues_where_the_log_ends() -> None:
    world = Listeners()
    world.update(world.half())
    world.run(6_000)
    world.run(10_000)
    world.restart()
    world.run(20_000)
    assert world.checks["a"] == [(6_000, 1), (36_000, 2)]


def test_due_returns_no_more_than_its_limit() -> None:
    world = Listeners()
    for number in range(10):
        world.update(world.half(f"id{number}"))
    assert len(world.schedule.due(6_000, 4)) == 4
    assert len(world.schedule.due(6_000, 100)) == 6


def test_halves_that_are_decided_in_time_leave_nothing_behind() -> None:
    world = Listeners()
    for number in range(20_000):
        half = world.half(f"id{number}")
        world.update(half)
        half.state = HalfState.DECIDED
        world.update(half)
    assert len(world.schedule) == 0
    assert len(world.schedule._heap) <= 1_001


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_jump_of_the_wall_clock_moves_no_check_of_a_running_owner(jump: int) -> None:
    world = Listeners()
    world.update(world.half())
    world.run(20_000)
    world.clock.set_by = jump
    world.run(HOUR)
    assert world.checks["a"] == [(6_000 + 30_000 * n, n + 1) for n in range(15)]


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_after_a_jump_a_new_owner_checks_early_but_never_late(jump: int) -> None:
    world = Listeners()
    world.update(world.half())
    world.run(20_000)
    world.clock.set_by = jump
    world.restart()
    world.run(30_000)
    assert world.checks["a"][1:2] == [(20_000 if jump > 0 else 50_000, 2)]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("run"), st.integers(1, 200_000)),
            st.tuples(st.just("jump"), st.sampled_from([-HOUR, 0, HOUR])),
            st.tuples(st.just("restart"), st.just(0)),
            st.tuples(st.just("absent"), st.integers(0, 1)),
            st.tuples(st.just("new"), st.integers(0, 9)),
        ),
        max_size=25,
    )
)
def test_checks_are_in_order_apart_from_each_other_and_followed_by_the_policy(
    steps: list[tuple[str, int]],
) -> None:
    """Between restarts: the confirmed checks of a half have the numbers 1, 2, …, are an interval apart, and
    are followed by the policy. None is lost: at the end, with listeners, all halves are decided."""
    world = Listeners(CheckRules(check_max=4))
    restarts = [0]
    for name, value in steps:
        if name == "run":
            world.run(value)
        elif name == "jump":
            world.clock.set_by = value
        elif name == "restart":
            world.restart()
            restarts.append(world.clock.now)
        elif name == "absent":
            world.absent = bool(value)
        elif f"id{value}" not in world.halves:
            world.update(world.half(f"id{value}"))
    world.absent = False
    world.run(3 * HOUR)
    assert all(half.state is HalfState.DECIDED for half in world.halves.values())
    for name, checks in world.checks.items():
        numbers = [number for _, number in checks]
        assert numbers == sorted(numbers)
        assert set(numbers) == {1, 2, 3, 4}
        (decided,) = [at for at, decision in world.decisions if decision.transaction_id == name]
        for (before, _), (after, _) in zip(checks, [*checks[1:], (decided, 0)], strict=True):
            assert after - before >= 30_000 or any(before <= at <= after for at in restarts)
