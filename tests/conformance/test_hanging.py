"""A transaction that really hangs: `txnkafka lso` finds it in the files, and what it advises ends it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from typing import Any

import pytest
from click.testing import CliRunner

from tests.conformance.broker import KafkaBroker, java
from tests.conformance.clients import Clients
from txnkafka import LogDir, TopicPartition
from txnkafka.cli.main import cli

STRAY = TopicPartition("stray", 0)
TOOL = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture(scope="module")
def hanging(kafka: KafkaBroker) -> KafkaBroker:
    clients = Clients(kafka)
    clients.create("stray", 2)
    clients.leave_hanging(STRAY, TopicPartition("stray", 1), "stray")
    return kafka


def lso(kafka: KafkaBroker, *options: str) -> tuple[int, str]:
    arguments = ["lso", str(kafka.log_dir), "--topic", STRAY.topic, "--partition", "0", *options]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value or 0, result.stdout


def verdict(kafka: KafkaBroker, *options: str) -> tuple[int, str]:
    status, text = lso(kafka, "--format", "json", *options)
    reports: list[Any] = json.loads(text)
    return status, reports[0]["verdict"]


def kafka_transactions(kafka: KafkaBroker, *arguments: str) -> str:
    command = java("-Xmx256m", TOOL, "--bootstrap-server", kafka.bootstrap_servers, *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_found_and_ended(hanging: KafkaBroker) -> None:
    found = kafka_transactions(hanging, "find-hanging", "--topic", "stray", "--max-transaction-timeout", "0")
    # it is seconds old, and a running broker's files may be of different moments
    assert verdict(hanging) == (0, "OPEN_WITHIN_TIMEOUT")
    assert verdict(hanging, "--max-transaction-timeout", "0") == (1, "HANGING_PARTITION_NOT_IN_TXN")
    with hanging.stopped():
        assert verdict(hanging) == (1, "HANGING_PARTITION_NOT_IN_TXN")
        _, text = lso(hanging)
    assert "stray" in found
    advised = re.search(r"kafka-transactions\.sh --bootstrap-server HOST:PORT (abort .*)", text)
    assert advised, text
    kafka_transactions(hanging, *shlex.split(advised[1]))
    deadline = time.monotonic() + 30
    while verdict(hanging) == (0, "HW_BEHIND") and time.monotonic() < deadline:
        time.sleep(0.1)  # the broker notes its high watermark now and then
    assert verdict(hanging) == (0, "NOT_STUCK")
    assert [each.outcome for each in LogDir(str(hanging.log_dir)).partition(*STRAY).transactions()] == [
        "aborted"
    ]
