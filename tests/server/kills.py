"""Transactional clients write and a consumer reads, while the server is killed; then both are compared."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from click.testing import CliRunner

from tests.server.killed_server import KilledServer
from tests.server.transaction_history import problems
from tests.server.transaction_load import Reader, Writer, Writing
from txnkafka import LogDir
from txnkafka.cli.main import cli

__all__ = ["IMPATIENT", "PARTITIONS", "TOPIC", "kill_under_load", "records"]

TOPIC, PARTITIONS = "kills", 3
SECONDS = (0.2, 2.2)  # that a server lives once it serves
IMPATIENT = {"delivery_timeout_ms": 3000, "max_block_ms": 1500, "request_timeout_ms": 1500}
Records = dict[int, list[tuple[int, str]]]


class Reading(Protocol):
    """A read_committed consumer of a topic; see ``Reader``."""

    @property
    def records(self) -> Records:
        """What it has seen."""

    @property
    def failures(self) -> list[str]:
        """What it should not have met."""

    def start(self) -> None:
        """Begin to read."""

    def end(self) -> None:
        """Read what is there, and stop."""

    def close(self) -> None:
        """Stop, if ``end`` was not called."""


def kill_under_load(
    clients: Mapping[str, Writing],
    data: Path,
    *,
    kills: int,
    seed: int,
    readers: Mapping[str, Callable[[str, str, int], Reading]] = {"librdkafka": Reader},
) -> str:
    """Kill the server so many times, and stop it. What was acknowledged is there, once and in order, what was
    aborted is not, the consumers saw the log and nothing else, and `verify` finds nothing. Returns counts.
    ``readers`` makes consumers of a topic with so many partitions at an address."""
    rng = random.Random(seed)
    server = KilledServer(data, rng, "--create-topic", f"{TOPIC}:{PARTITIONS}")
    reading: dict[str, Reading] = {}
    try:
        server.start()
        reading = {name: reader(server.address, TOPIC, PARTITIONS) for name, reader in readers.items()}
        writers = [Writer(name, writing, server.address, TOPIC, seed) for name, writing in clients.items()]
        for each in (*reading.values(), *writers):
            each.start()
        server.kill_now_and_then(kills, SECONDS)
        for writer in writers:
            writer.end()
        for reader in reading.values():
            reader.end()
        assert server.stop() == 0
        assert not re.search(r"\berror\b|Traceback", server.log()), server.log()[-4000:]
    finally:
        server.close()
        for reader in reading.values():
            reader.close()
        for writing in clients.values():
            writing.client.close()
    log = records(data)
    for name, reader in reading.items():
        assert not reader.failures, f"{name}: {reader.failures}"
        assert reader.records == log, f"the consumer of {name} has seen another log"
    values = {partition: [value for _, value in found] for partition, found in log.items()}
    wrong = list(problems({writer.name: writer.transactions for writer in writers}, values))
    assert not wrong, "\n".join(wrong[:20])
    assert not (found := findings(data)), found
    for writer in writers:
        assert writer.counts()["committed"] > kills // 10, f"{writer.name}: {writer.counts()} {writer.errors}"
    lines = [f"{server.kills} kills, {server.kills_of_starts} of them during a start, seed {seed}"]
    lines.append(f"consumers that saw the log: {', '.join(reading)}")
    lines += [f"{writer.name}: {writer.counts()}, errors {dict(writer.errors)}" for writer in writers]
    return "\n".join(lines)


def records(data: Path) -> Records:
    """Offsets and values that a read_committed consumer gets of the stopped directory."""
    log_dir = LogDir(str(data))
    return {
        partition: [
            (record.offset, (record.value or b"").decode().rstrip("."))
            for record in log_dir.partition(TOPIC, partition).records()
        ]
        for partition in range(PARTITIONS)
    }


def findings(data: Path) -> list[object]:
    """What `txnkafka verify` says, without notes."""
    arguments = ["verify", str(data), "--level", "records", "--format", "json"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return [each for each in json.loads(result.stdout)["findings"] if each["severity"] != "note"]
