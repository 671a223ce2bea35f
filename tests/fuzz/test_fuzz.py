"""Every target from its corpus: no fault, enough inputs, and enough of them past the door.

Without TXNKAFKA_LONG a run is the same every time. With it each target runs for minutes from a fresh seed;
TXNKAFKA_FUZZ_SECONDS and TXNKAFKA_FUZZ_SEED choose others.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.conftest import LONG
from tests.fuzz.campaign import TARGETS, corpus_of, describe, run

SECONDS = float(os.environ.get("TXNKAFKA_FUZZ_SECONDS", "120"))
SEED = int(os.environ.get("TXNKAFKA_FUZZ_SEED", str(time.time_ns() % 10**9) if LONG else "1"))
LONG_FACTOR = 5  # a long run has at least so many times the inputs of a short one
MAX_CORPUS_BYTES = 1 << 20


@pytest.mark.parametrize("name", TARGETS)
def test_target(name: str, tell: list[str]) -> None:
    target = TARGETS[name]
    iterations = 1 << 60 if LONG else target.iterations
    report = run(target, seed=SEED, iterations=iterations, seconds=SECONDS if LONG else None)
    text = describe(target, SEED, report)
    tell.append(text.splitlines()[-1] if report.failure else text)
    if report.failure is not None:
        pytest.fail(text, pytrace=False)
    assert report.executions >= target.iterations * (LONG_FACTOR if LONG else 1)
    assert report.missing(target) == []


def test_the_corpus_is_small_and_nobody_has_too_little() -> None:
    corpora = {target.corpus or name: corpus_of(target) for name, target in TARGETS.items()}
    assert sum(len(content) for corpus in corpora.values() for content in corpus) < MAX_CORPUS_BYTES
    assert [name for name, corpus in corpora.items() if len(corpus) < 5] == []
