"""Settings of all tests: their three sizes, the marker ``slow``, and the Python of Spark's workers.

Plain ``pytest`` runs every test at its ordinary size. TXNKAFKA_BRIEF is set by ``make test`` and ``make
quick``: smaller sizes, and tests with the marker ``slow`` are deselected (by ``ci/pytest`` and ``ci/quick``,
with ``-m "not slow"``). TXNKAFKA_LONG is set by ``make long``: all tests at their largest size.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

LONG, BRIEF = (os.environ.get(f"TXNKAFKA_{name}", "0") not in ("", "0") for name in ("LONG", "BRIEF"))

# A failure must be repeatable, so only `make long` looks for new examples.
EXAMPLES = int(os.environ.get("TXNKAFKA_EXAMPLES", "300" if LONG else "100"))  # of each property test
settings.register_profile("check", max_examples=EXAMPLES, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=EXAMPLES, deadline=None, print_blob=True)
settings.load_profile("long" if LONG else "check")

# Otherwise Spark's workers run the first "python3" on the PATH.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# A script that runs the tests in the background ignores SIGINT in them, and in what they start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with SIGHUP. The tests themselves go on ignoring it. Programs that they start get the default
# action: exec resets a signal whose handler is a function.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def sampled(cases: Iterable[Any], *, every: int, first: int = 0) -> list[Any]:
    """Return the values of one parameter of a test; all but each ``every``-th get the marker ``slow``.

    The cases keep their ids. ``first`` is the number of the first value without the marker.
    """
    return [
        case if number % every == first else pytest.param(case, marks=pytest.mark.slow)
        for number, case in enumerate(cases)
    ]


def sample_matrices(items: Sequence[pytest.Item], *, most: int, whole: Collection[str] = ()) -> None:
    """Give the marker ``slow`` to cases of tests that have more than ``most`` cases, until as many are left.

    The cases without the marker are evenly spaced and begin at another case in each test. Their distance is
    odd, so that they have all values of a parameter with two or four values. ``whole`` are the ids of tests
    that keep all cases.
    """
    tests = dict[str, list[pytest.Item]]()
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        if len(cases) > most and name not in whole:
            every = -(-len(cases) // most) | 1
            chosen = cases[crc32(name.encode()) % every :: every]
            for item in set(cases).difference(chosen):
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Let no collection walk the fourteen thousand tests that were found, and what they have imported."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if LONG:
        passed = terminalreporter.getreports("passed")
        slow = sum("slow" in report.keywords for report in passed)
        terminalreporter.write_line(f"{slow} of the {len(passed)} tests that passed are not in make test")


@pytest.fixture
def without_collections() -> Iterator[None]:
    """For tests that measure time: a collection of all objects of earlier tests takes longer than they do."""
    gc.disable()
    yield
    gc.enable()
