"""The coordinator gives the answers that Apache Kafka's TransactionCoordinator gave to the same requests.

The reviewed table (test_transition_table.py) notices every change of a transition; here it shows whether a
transition is the one of Kafka, without Kafka. ``make conformance`` asks many more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tests.unit.coordinator.kafka_twin import compare_sequences

RECORDED = Path(__file__).with_name("kafka_answers.txt")  # of Apache Kafka 4.3.1
LEVELS, SEQUENCES, MAX_PARKED = (0, 1, 2), 25, 32


class Recorded:
    """Kafka's coordinator, as it has answered these questions."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def ask(self, *words: object) -> str:
        question, _, answer = next(self._lines).partition(" > ")
        asked = " ".join(map(str, words))
        assert asked == question, "the state before is another one than Kafka's"
        return answer


def test_the_answers_and_states_are_those_that_kafka_has_given() -> None:
    kafka = Recorded(iter(RECORDED.read_text(encoding="utf-8").splitlines()))
    for version in LEVELS:
        seen = compare_sequences(
            kafka, random.Random(version), SEQUENCES, version=version, max_parked=MAX_PARKED
        )
        for wanted in ("continue: PRODUCER_FENCED", "add: NONE", "end: INVALID_TXN_STATE", "end: NONE"):
            assert seen[wanted] > 3, (version, wanted, seen)
