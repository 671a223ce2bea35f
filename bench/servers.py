"""The servers that clients of the benchmarks talk to, each in a process of its own: txnkafka, Apache Kafka,
and franz-go's kfake, which keeps everything in memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bench.compiled import c_program, go_program
from bench.harness import Missing
from bench.java import BUILD
from tests.conformance.broker import KafkaBroker

__all__ = [
    "PLACE",
    "BareServer",
    "Kafka",
    "Kfake",
    "Server",
    "Txnkafka",
    "cpu_seconds",
    "fresh",
    "kfake",
    "resident_bytes",
]

PLACE = BUILD / "bench" / "servers"
STOP_SECONDS = 30
# what kafka-server-start.sh gives the JVM
SCRIPT_OPTIONS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
SETTINGS = {"transaction.state.log.num.partitions": "4"}
# a broker that is stopped while others have their turn is not taken for dead by its controller
KAFKA_SETTINGS = {**SETTINGS, "broker.session.timeout.ms": "600000"}


class Server(Protocol):
    """A server that can be started, stopped, and started again on what it has written."""

    name: str

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def process_id(self) -> int: ...

    def start(self) -> None:
        """Start, and return when clients can connect."""

    def stop(self) -> None:
        """Stop cleanly."""


def cpu_seconds(process_id: int) -> float:
    """CPU time of all threads of a process, living and ended: what clock_getcpuclockid(3) gives, without the
    ticks of 10 ms of /proc/PID/stat."""
    return time.clock_gettime((~process_id << 3) | 2)


def resident_bytes(process_id: int) -> int:
    """The memory of a process, pages of files that it has mapped included."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    return 0


def fresh(name: str, place: Path = PLACE) -> Path:
    """An empty directory for a server of this name."""
    directory = place / name.replace(" ", "-").replace(",", "")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


class _Process:
    """A process whose first line on stdout is ``listening on HOST:PORT``; what it says else is in a log."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.bootstrap_servers = ""
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None

    @property
    def process_id(self) -> int:
        """Of the running server."""
        assert self._process is not None
        return self._process.pid

    @property
    def command(self) -> list[str]:
        """What is run."""
        raise NotImplementedError

    def start(self) -> None:
        """Start, and return when it listens."""
        log = self._directory / "server.log"
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            self.stop()
            raise RuntimeError(f"{self.name} does not listen: {log.read_text()[-2000:]}")
        self.bootstrap_servers = line.split()[-1]

    def stop(self) -> None:
        """Stop cleanly: SIGTERM, and the end of its standard input."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._process = None


class Txnkafka(_Process):
    """``txnkafka serve`` on an empty directory; the durability page_cache syncs as little as Kafka does.
    It ``resolves`` check-back messages if asked to."""

    def __init__(
        self,
        durability: str = "fsync",
        settings: Mapping[str, str] | None = None,
        *,
        name: str = "txnkafka",
        place: Path = PLACE,
        resolves: bool = False,
    ) -> None:
        super().__init__(name, fresh(name, place))
        self.log_dir = self._directory / "data"
        self._options = ["--durability", durability, *(["--resolve"] if resolves else [])]
        for key, value in {**SETTINGS, **(settings or {})}.items():
            self._options += ["--config", f"{key}={value}"]

    @property
    def command(self) -> list[str]:
        """The command line; the port is that of the last start, so that clients find it again."""
        address = self.bootstrap_servers or "127.0.0.1:0"
        serve = ["serve", "--data", str(self.log_dir), "--listen", address]
        program = [sys.executable, "-c", "from txnkafka.cli.main import main; main()"]
        return [*program, *serve, *self._options]


class Kfake(_Process):
    """franz-go's broker in memory."""

    def __init__(self, program: Path) -> None:
        super().__init__("kfake", fresh("kfake"))
        self._program = program

    @property
    def command(self) -> list[str]:
        """The compiled program."""
        return [str(self._program)]


class Kafka:
    """Apache Kafka in an empty directory, with the JVM options of its start script."""

    def __init__(
        self, name: str = "kafka", settings: Mapping[str, str] | None = None, *, place: Path = PLACE
    ) -> None:
        self.name = name
        self._broker = KafkaBroker(
            fresh(name, place), {**KAFKA_SETTINGS, **(settings or {})}, jvm_options=SCRIPT_OPTIONS
        )
        self._is_formatted = False
        self.log_dir = self._broker.log_dir

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return self._broker.bootstrap_servers

    @property
    def process_id(self) -> int:
        """Of the running broker."""
        return self._broker.process_id

    def start(self) -> None:
        """Start, and return when the broker says that it has; the first time after formatting."""
        if self._is_formatted:
            self._broker.start()
        else:
            self._broker.__enter__()
            self._is_formatted = True

    def stop(self) -> None:
        """Stop cleanly."""
        self._broker.stop()


class BareServer(_Process):
    """Writes the records of produce requests to ``file``, and does nothing else: an epoll loop in C, or a
    protocol of asyncio."""

    def __init__(self, name: str = "C, epoll", *, place: Path = PLACE) -> None:
        super().__init__(name, fresh(name, place))
        self.file = self._directory / "records"

    @property
    def command(self) -> list[str]:
        """The program of its language."""
        if self.name == "asyncio":
            return [sys.executable, "-m", "bench.produce_in_asyncio", str(self.file)]
        return [str(c_program("produce_server")), str(self.file)]


def kfake() -> Kfake | Missing:
    """A kfake; or why there is none, which needs Go and its module proxy."""
    built = go_program()
    return Kfake(built) if isinstance(built, Path) else Missing("kfake", built)
