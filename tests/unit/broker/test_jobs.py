"""Work of a broker: one piece after the other, whatever becomes of each."""

from __future__ import annotations

from functools import partial

import pytest

from txnkafka.broker.failures import Failures
from txnkafka.broker.jobs import Job, Jobs


class Work:
    def __init__(self, fails_in: str = "") -> None:
        self.fails_in = fails_in

    def run(self) -> None:
        """Nothing."""

    def finish(self, error: Exception | None) -> None:
        if self.fails_in == "finish":
            raise ZeroDivisionError("finish")


def run_all(jobs: Jobs, errors: list[Exception | None] | None = None) -> int:
    count = 0
    while (work := jobs.begin()) is not None:
        jobs.finish(work, errors.pop(0) if errors else None)
        count += 1
    assert not len(jobs)
    return count


def begins(fails_in: str) -> Work | None:
    if fails_in == "begin":
        raise ZeroDivisionError("begin")
    return None if fails_in == "no work" else Work(fails_in)


@pytest.mark.parametrize("fails_in", ["begin", "finish", "done", "no work", ""])
def test_a_job_that_fails_stops_no_other(fails_in: str, caplog: pytest.LogCaptureFixture) -> None:
    failures = Failures()
    jobs, heard, told = Jobs(failures), list[str](), list[Exception]()

    def done(error: Exception | None) -> None:
        heard.append(str(error))
        if fails_in == "done":
            raise ZeroDivisionError("done")

    failures.owner = told.append
    jobs.add(lambda: begins(fails_in), done)
    failures.owner = None
    jobs.add(Work, lambda error: heard.append("next"))
    run_all(jobs)
    assert heard == [fails_in if fails_in in ("begin", "finish") else "None", "next"]
    assert [str(error) for error in told] == (["done"] if fails_in == "done" else [])
    assert ("ZeroDivisionError" in caplog.text) == (fails_in in ("begin", "finish", "done"))


def test_the_background_waits_for_everything_else() -> None:
    jobs, order = Jobs(Failures()), list[str]()
    left = [1, 2, 3]

    def background() -> Job | None:
        return Job(Work, lambda _: order.append(f"background {left.pop(0)}")) if left else None

    jobs.add_background(background)
    work = jobs.begin()
    assert work is not None
    jobs.add(Work, lambda _: order.append("asked for"))
    jobs.add_first(Job(Work, lambda _: order.append("first")))
    jobs.finish(work, None)
    run_all(jobs)
    assert order == ["background 1", "first", "asked for", "background 2", "background 3"]


def test_a_background_that_has_to_wait_is_not_asked_for_ever() -> None:
    jobs = Jobs(Failures())
    asked: list[None] = []

    def waits() -> None:
        asked.append(None)

    jobs.add_background(lambda: Job(waits, lambda _: None))  # type: ignore[arg-type]
    assert jobs.begin() is None
    assert len(asked) == 1


def test_jobs_without_work_are_done_some_at_a_time() -> None:
    """Each call is uninterrupted: requests come between two of them, and so does what they ask for first."""
    jobs, order = Jobs(Failures()), list[int]()
    for number in range(1_000):
        jobs.add(lambda: None, partial(lambda number, _: order.append(number), number))
    counts = list[int]()
    while (work := jobs.begin()) is not None:
        counts.append(len(order) - sum(counts))
        work.run()
        assert not jobs.has_next
        jobs.finish(work, None)
    assert max(counts, default=1_000) <= 100
    assert order == list(range(1_000))
    assert not len(jobs)
