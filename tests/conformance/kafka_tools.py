"""Apache Kafka's command line tools, and what they print without that which differs from run to run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping

from tests.conformance.broker import java

__all__ = ["Tools"]

MAIN_CLASSES = {
    "configs": "ConfigCommand",
    "console-consumer": "consumer.ConsoleConsumer",
    "console-producer": "ConsoleProducer",
    "consumer-groups": "consumer.group.ConsumerGroupCommand",
    "consumer-performance": "ConsumerPerformance",
    "delete-records": "DeleteRecordsCommand",
    "features": "FeatureCommand",
    "get-offsets": "GetOffsetShell",
    "leader-election": "LeaderElectionCommand",
    "log-dirs": "LogDirsCommand",
    "metadata-quorum": "MetadataQuorumCommand",
    "producer-performance": "ProducerPerformance",
    "reassign-partitions": "reassign.ReassignPartitionsCommand",
    "topics": "TopicCommand",
    "transactions": "TransactionsCommand",
    "verifiable-consumer": "VerifiableConsumer",
    "verifiable-producer": "VerifiableProducer",
}
QUIET = ["-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
SECONDS = 120
MILLISECONDS = re.compile(r"\d{13}")
UUID = re.compile(r"TopicId: \S{22}")


class Tools:
    """The tools on one broker. Producer ids are numbered in the order in which they are seen."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._server = bootstrap_servers
        self._producer_ids: dict[str, str] = {}

    def show(self, tool: str, line: str, said: str = "") -> tuple[str, list[str]]:
        """The command line, and what it prints in a form that is the same on every broker: exit status and
        sorted lines. ``said`` is its standard input."""
        main = f"org.apache.kafka.tools.{MAIN_CLASSES[tool]}"
        command = java("-Xmx256m", *QUIET, main, "--bootstrap-server", self._server, *line.split())
        done = subprocess.run(command, capture_output=True, text=True, input=said, timeout=SECONDS)
        if "ClassNotFoundException" in done.stderr:  # would be the same on both brokers
            raise RuntimeError(f"this Kafka has no {main}")
        if done.returncode:
            print(f"{tool} {line}: {done.stderr[-4000:]}")  # pytest shows it if the test fails
        rows = [re.split(r"\s*\t\s*|\s{2,}", row.strip()) for row in done.stdout.splitlines()]
        names = rows[0] if tool == "transactions" and rows else []
        found = [self._row(dict(zip(names, row, strict=False)), row) for row in sorted(rows)]
        return f"{tool} {line}", [f"exit {done.returncode}", *found]

    def _row(self, named: Mapping[str, str], row: list[str]) -> str:
        cells = self._cells(named) if len(named) == len(row) else row
        return UUID.sub("TopicId: …", " ".join(cells))

    def _cells(self, named: Mapping[str, str]) -> Iterator[str]:
        for name, cell in named.items():
            if name == "ProducerId" != cell:
                yield self._producer_ids.setdefault(cell, f"producer {len(self._producer_ids)}")
            elif "Duration" in name != cell or MILLISECONDS.fullmatch(cell):
                yield "…"
            else:
                yield cell
