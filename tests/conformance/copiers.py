"""Copiers of different libraries as processes that are killed, paused and started again, and the writer of
what they copy."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from tests.conformance.copy_history import Copying, journal
from tests.conformance.maven import kafka_jars
from tests.conformance.transactional_clients import java_program

__all__ = ["COPIERS", "Copier", "Work", "Writer"]

SECONDS = 60.0
COPIERS = {
    "librdkafka": lambda: [sys.executable, "-m", "tests.conformance.endless_copy_process"],
    "java-4.4": lambda: java_program("java-4.4", kafka_jars(), "EndlessCopyProcess"),
}


class Work:
    """From where to where is copied, and by which group."""

    def __init__(self, server: str, source: str, target: str, group: str) -> None:
        self.arguments = (server, source, target, group)


class Copier:
    """A member of the group. It starts again whenever it has ended, as under a supervisor."""

    def __init__(self, name: str, work: Work, directory: Path) -> None:
        self.name = name
        self.kills = self.pauses = self.starts = 0
        self._command = [*COPIERS[name](), *work.arguments, name]
        self._journal, self._log = directory / f"{name}.journal", directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self._forget()
        self.starts += 1
        with self._journal.open("ab") as said, self._log.open("ab") as log:
            command = [*self._command, str(self.starts)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=log)

    def kill(self) -> None:
        """End it as a crash does, or as ``close``."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self.kills += 1
        self._forget()

    def pause(self) -> None:
        """Let it stand still until ``resume``."""
        self._signal(signal.SIGSTOP)
        self.pauses += 1

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Let it finish its transaction and leave the group."""
        assert self._process is not None
        try:
            self._process.communicate(b"\n", SECONDS)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name} does not end: {self.log()}") from None
        assert self._process.returncode == 0, f"{self.name}: {self.log()}"

    def transactions(self) -> list[Copying]:
        """What it has done, in all its starts."""
        return journal(self._journal.read_text().splitlines())

    def log(self) -> str:
        """The end of its journal and of what it has said."""
        return "\n".join(path.read_text()[-2000:] for path in (self._journal, self._log))

    def report(self) -> str:
        """Counts of what has happened to it."""
        outcomes = Counter(each.outcome.value for each in self.transactions())
        lines = (line.split() for line in self._journal.read_text().splitlines())
        errors = Counter(" ".join(words[1:]) for words in lines if words[1] in ("error", "ended"))
        happened = f"{self.starts} starts, {self.kills} kills, {self.pauses} pauses"
        return f"{self.name}: {happened}, {dict(outcomes)}, {dict(errors)}"

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _forget(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


class Writer(threading.Thread):
    """An idempotent producer with endless patience. ``sent`` are the values by partition."""

    def __init__(self, server: str, topic: str, partitions: int, seed: int, per_second: int) -> None:
        super().__init__(name="writer", daemon=True)
        self.sent: dict[int, list[str]] = {number: [] for number in range(partitions)}
        self.failures: list[str] = []
        self._topic, self._pause = topic, 1 / per_second
        self._rng = random.Random(f"writer {seed}")
        self._is_ending = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": server, "enable.idempotence": True, "message.timeout.ms": 0,
                "linger.ms": 5, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0,
                "error_cb": lambda _: None,
            }
        )  # fmt: skip

    def run(self) -> None:
        """Write until ``end``."""
        while not self._is_ending.is_set():
            burst = self._rng.randint(1, 40)
            for _ in range(burst):
                partition = self._rng.randrange(len(self.sent))
                value = f"{partition}.{len(self.sent[partition])}"
                self.sent[partition].append(value)
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)
            time.sleep(burst * self._pause)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failures.append(error.str())

    def end(self) -> None:
        """Stop, and wait until everything is acknowledged."""
        self._is_ending.set()
        self.join(SECONDS)
        if left := self._producer.flush(SECONDS):
            self.failures.append(f"{left} records are not acknowledged")
