"""A data directory for the commands that have ``--data``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.unit.cli.conftest import Run
from txnkafka import Broker
from txnkafka.testing import broker_faults
from txnkafka.testing.settings import SETTINGS


@contextmanager
def broker_on(data: Path) -> Iterator[Broker]:
    """Open the directory for the time of a with block."""
    with Broker.open(data, **SETTINGS) as broker:
        yield broker


def hang(broker: Broker, topic: str, partition: int, records: int) -> int:
    """Hang a transaction, once a broker that was just opened has loaded its coordinators."""
    with broker.admin() as admin:
        admin.fence_producers("loaded")
    return broker_faults.hang_transaction(broker, topic, partition, records)


def rows(run: Run, *arguments: object, status: int = 0) -> list[dict[str, Any]]:
    """The rows of a command, which are the same in both JSON formats."""
    answer = run(*arguments, "--format", "json")
    assert (answer.status, answer.stderr) == (status, "")
    document: list[dict[str, Any]] = json.loads(answer.stdout)
    lines = run(*arguments, "--format", "jsonl").lines
    assert [set(json.loads(line)) for line in lines] == [set(row) for row in document]
    return document
