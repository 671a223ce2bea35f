"""Every target from its corpus: no fault, enough inputs, and enough of them past the door.

Without TXNKAFKA_LONG a run is the same every time. With it each target runs for a minute from a fresh seed;
TXNKAFKA_FUZZ_SECONDS and TXNKAFKA_FUZZ_SEED choose others.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.conftest import BRIEF, LONG
from tests.fuzz.campaign import TARGETS, corpus_of, describe, run
from tests.fuzz.engine import Limits

SECONDS = float(os.environ.get("TXNKAFKA_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("TXNKAFKA_FUZZ_SEED", str(time.time_ns() % 10**9) if LONG else "1"))
BRIEF_PART = 3  # a run of `make test` has so many times fewer inputs than one of CI
LONG_FACTOR = 5  # a long run has at least so many times the inputs of a short one
MAX_CORPUS_BYTES = 1 << 20


@pytest.mark.parametrize("name", TARGETS)
def test_target(name: str, tell: list[str]) -> None:
    target = TARGETS[name]
    long = Limits(1 << 60, SECONDS, least=target.iterations * LONG_FACTOR)
    inputs = target.iterations // (BRIEF_PART if BRIEF else 1)
    report = run(target, SEED, long if LONG else Limits(inputs))
    text = describe(target, SEED, report)
    tell.append(text.splitlines()[-1] if report.failure else text)
    if report.failure is not None:
        pytest.fail(text, pytrace=False)
    assert report.executions >= (long.least if LONG else inputs)
    assert report.missing(target) == []


def test_the_corpus_is_small_and_nobody_has_too_little() -> None:
    corpora = {target.corpus or name: corpus_of(target) for name, target in TARGETS.items()}
    assert sum(len(content) for corpus in corpora.values() for content in corpus) < MAX_CORPUS_BYTES
    assert [name for name, corpus in corpora.items() if len(corpus) < 5] == []
