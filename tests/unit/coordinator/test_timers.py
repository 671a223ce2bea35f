"""Timers: when calls are made, and which."""

from __future__ import annotations

import random

import pytest

from txnkafka.coordinator.timers import NEVER, Timers


def test_calls_come_in_the_order_of_their_deadlines() -> None:
    timers, called = Timers(), []
    for name, deadline in (("c", 30), ("a", 10), ("b", 20), ("a2", 10)):
        timers.set((name,), deadline, lambda name=name: called.append(name))
    assert timers.next() == 10
    timers.run(9)
    assert called == []
    timers.run(25)
    assert called == ["a", "a2", "b"]
    assert timers.next() == 30
    timers.run(30)
    assert (called[-1], timers.next()) == ("c", NEVER)


def test_a_deadline_is_put_off_brought_forward_and_cancelled() -> None:
    timers, called = Timers(), []
    timers.set(("a",), 10, lambda: called.append("early"))
    timers.set(("a",), 50, lambda: called.append("late"))
    timers.run(49)
    assert called == []
    timers.set(("a",), 45, lambda: called.append("forward"))
    timers.run(49)
    assert called == ["forward"]
    timers.set(("a",), 60, lambda: called.append("cancelled"))
    timers.cancel(("a",))
    timers.run(100)
    assert called == ["forward"]


def test_a_call_that_raises_takes_no_other_with_it() -> None:
    timers, called = Timers(), []
    timers.set(("a",), 10, lambda: called.append("a"))
    timers.set(("b",), 20, lambda: called.append(1 // 0))
    timers.set(("c",), 30, lambda: called.append("c"))
    with pytest.raises(ZeroDivisionError):
        timers.run(40)
    assert (called, timers.next()) == (["a"], 30)
    timers.run(40)
    assert (called, timers.next()) == (["a", "c"], NEVER)


def test_a_call_may_set_and_cancel_others() -> None:
    timers, called = Timers(), []

    def first() -> None:
        called.append("first")
        timers.cancel(("second",))
        timers.set(("first",), 10, first)  # due at once: with the next run

    timers.set(("first",), 10, first)
    timers.set(("second",), 10, lambda: called.append("second"))
    timers.run(10)
    assert called == ["first"]
    timers.run(10)
    assert called == ["first", "first"]


def test_as_a_dictionary_of_deadlines_would_do() -> None:
    rng = random.Random(1)
    timers, called, expected, model, now = Timers(), [], [], {}, 0
    count = 0
    for step in range(20_000):
        key = (str(rng.randrange(20)),)
        action = rng.random()
        if action < 0.5:
            deadline = now + rng.randrange(100)
            timers.set(key, deadline, lambda step=step: called.append(step))
            model[key] = deadline, step
        elif action < 0.6:
            timers.cancel(key)
            model.pop(key, None)
        else:
            now += rng.randrange(30)
            timers.run(now)
            due = sorted((entry, key) for key, entry in model.items() if entry[0] <= now)
            expected += [entry[1] for entry, _ in due]
            for _, key in due:
                del model[key]
            assert timers.next() <= min((entry[0] for entry in model.values()), default=NEVER)
            assert sorted(called) == sorted(expected)
            count += len(called)
            called.clear()
            expected.clear()
    assert count > 1000
