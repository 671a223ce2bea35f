"""Settings of all tests: the number of Hypothesis examples, and the Python of Spark's workers."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

LONG, BRIEF = (os.environ.get(f"TXNKAFKA_{name}", "0") not in ("", "0") for name in ("LONG", "BRIEF"))

# A failure must be repeatable, so only `make long` looks for new examples. "brief" is for an emulated
# processor, which is twenty times slower.
settings.register_profile("brief", max_examples=20, deadline=None, derandomize=True)
settings.register_profile("check", max_examples=100, deadline=None, derandomize=True)
EXAMPLES = int(os.environ.get("TXNKAFKA_EXAMPLES", "300"))  # of each property test of `make long`
settings.register_profile("long", max_examples=EXAMPLES, deadline=None, print_blob=True)
settings.load_profile("long" if LONG else "brief" if BRIEF else "check")

# Otherwise Spark's workers run the first "python3" on the PATH.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# A script that runs the tests in the background ignores SIGINT in them, and in what they start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with SIGHUP. The tests themselves go on ignoring it. Programs that they start get the default
# action: exec resets a signal whose handler is a function.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_finish() -> None:
    """Let no collection walk the fourteen thousand tests that were found, and what they have imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def without_collections() -> Iterator[None]:
    """For tests that measure time: a collection of all objects of earlier tests takes longer than they do."""
    gc.disable()
    yield
    gc.enable()
