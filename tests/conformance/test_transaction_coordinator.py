"""Kafka's own TransactionCoordinator and ours, with the same random requests: the same answers and states.
Some of Kafka's answers are recorded for the unit tests (``python -m tests.conformance.record_coordinator``).
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.kafka_log import OPTIONS, compiled
from tests.unit.coordinator.kafka_twin import compare_sequences

SEQUENCES = 800


class Kafka:
    """The process with Kafka's coordinator."""

    def __init__(self, log: Path) -> None:
        command = ["java", *OPTIONS[:2], "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, "-cp", compiled(), "CoordinatorOfTransactions"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def ask(self, *words: object) -> str:
        assert self._process.stdin
        assert self._process.stdout
        line = " ".join(str(word).lower() if isinstance(word, bool) else str(word) for word in words)
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the Java process ended at: {line}"
        return answer.rstrip("\n")

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def coordinator_of_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path_factory.mktemp("coordinator") / "errors")
    yield kafka
    kafka.close()


@pytest.mark.parametrize("max_parked", [0, 32])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_same_answers_and_states_as_kafkas_own(
    coordinator_of_kafka: Kafka, version: int, max_parked: int
) -> None:
    """With ``max_parked`` 0 ours refuses at once what Kafka refuses."""
    seen = compare_sequences(
        coordinator_of_kafka, random.Random(version), SEQUENCES, version=version, max_parked=max_parked
    )
    for wanted in (
        "CONCURRENT_TRANSACTIONS",
        "init: NONE",
        "continue: NONE",
        "continue: PRODUCER_FENCED",
        "continue: UNKNOWN_SERVER_ERROR",
        "add: NONE",
        "add: INVALID_PRODUCER_ID_MAPPING",
        "add: PRODUCER_FENCED",
        "verify: NONE",
        "end: NONE",
        "end: INVALID_TXN_STATE",
        "end: PRODUCER_FENCED",
    ):
        assert seen[wanted] >= 10, (wanted, seen)
