"""Writes the answers of Kafka's own TransactionCoordinator that the unit tests compare with ours:

    python -m tests.conformance.record_coordinator

Apache Kafka's jars and a JDK are needed, as for the tests of this package.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from tests.conformance.test_transaction_coordinator import Kafka
from tests.unit.coordinator.kafka_twin import compare_sequences
from tests.unit.coordinator.test_recorded_answers import LEVELS, MAX_PARKED, RECORDED, SEQUENCES


class Recorder:
    """Kafka's coordinator; ``lines`` are its answers, one after the other."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self.lines: list[str] = []

    def ask(self, *words: object) -> str:
        answer = self._kafka.ask(*words)
        question = " ".join(map(str, words))
        self.lines.append(f"{question} > {answer}")
        return answer


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        kafka = Kafka(Path(directory) / "errors")
        recorder = Recorder(kafka)
        for version in LEVELS:
            compare_sequences(
                recorder, random.Random(version), SEQUENCES, version=version, max_parked=MAX_PARKED
            )
        kafka.close()
    RECORDED.write_text("\n".join([*recorder.lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
