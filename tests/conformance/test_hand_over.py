"""A data directory goes from txnkafka to Apache Kafka and back, and everything on the checklist is kept:
records, producer ids, transactional ids, groups of both protocols, partitions, configs.

``tests/conformance/hand_over/`` has the items of the checklist. Ten rounds with TXNKAFKA_LONG, else two.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.broker import KafkaBroker
from tests.conformance.hand_over.story import (
    SETTINGS,
    groups_there_and_back,
    records_there_and_back,
)
from tests.conftest import LONG

ROUNDS = 10 if LONG else 2


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Not running; its directory is made by txnkafka."""
    broker = KafkaBroker(tmp_path, SETTINGS, is_static=True)
    yield broker
    broker.stop()


def test_records_go_there_and_back(kafka: KafkaBroker) -> None:
    records_there_and_back(kafka, ROUNDS)


def test_groups_and_configs_go_there_and_back(kafka: KafkaBroker) -> None:
    groups_there_and_back(kafka, ROUNDS)
