"""Real clients that take the same commands: Java 4.3, Java 3.9, franz-go (each a process) and confluent-kafka.

The commands are those of ``java/clients/ClientProcess.java``. What one of them is refused raises ClientError.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.conformance.maven import BUILD, kafka_3_9_clients, kafka_jars

__all__ = ["CLIENTS", "LEFT_OUT", "Client", "ClientError", "Transactional", "see", "started", "values"]

HERE = Path(__file__).resolve().parent
PROGRAMS = BUILD / "conformance" / "clients"
JVM = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
JVM += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
SECONDS = 60.0
QUIET: dict[str, Any] = {"log_level": 0}
Records = Iterable[tuple[int, str]]


class ClientError(Exception):
    """A command was refused. ``name`` is that of Kafka's error, or the client's own word."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name


class Client(Protocol):
    """Whatever takes commands."""

    def ask(self, command: str, **options: str) -> list[str]:
        """What is consumed; nothing for other commands. Raises ClientError."""

    def close(self) -> None:
        """End without finishing anything."""


class ClientProcess:
    """A client that is driven over its pipes, one command and one answer at a time."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def ask(self, command: str, **options: str) -> list[str]:
        """Write the line, read the line."""
        assert self._process.stdin
        assert self._process.stdout
        words = [command, *(f"{name}={value}" for name, value in options.items())]
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the client's process ended at: {words[:2]}")
        found: dict[str, Any] = json.loads(line)
        if found.get("error") is not None:
            raise ClientError(found["error"], found["detail"])
        return found.get("values") or []

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


class ConfluentClient:
    """librdkafka, in this process."""

    def __init__(self) -> None:
        self._producers: dict[str, Producer] = {}

    def ask(self, command: str, **options: str) -> list[str]:
        """Do it; an error of librdkafka that is none of a broker has a name that begins with _."""
        try:
            if command == "consume":
                return self._consume(**options)
            if command == "open":
                self._open(options)
            else:
                self._run(command, self._producers[options["producer"]], options)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            raise ClientError(error.name(), error.str()) from None
        return []

    def _open(self, options: Mapping[str, str]) -> None:
        configs = {
            name.removeprefix("config."): value
            for name, value in options.items()
            if name.startswith("config.")
        }
        # without error_cb, a fatal error is raised in whatever is called next, before it has done its work
        settings = {"bootstrap.servers": options["server"], "error_cb": lambda _: None, **QUIET, **configs}
        self._producers[options["producer"]] = Producer(settings)

    def _run(self, command: str, producer: Producer, options: Mapping[str, str]) -> None:
        steps: dict[str, Callable[[], object]] = {
            "init": lambda: producer.init_transactions(SECONDS),
            "begin": producer.begin_transaction,
            "commit": lambda: producer.commit_transaction(SECONDS),
            "abort": lambda: producer.abort_transaction(SECONDS),
            "send": lambda: self._send(producer, options),
            "close": lambda: self._producers.pop(options["producer"]),
        }
        steps[command]()

    def _send(self, producer: Producer, options: Mapping[str, str]) -> None:
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error)

        for record in options["records"].split(","):
            partition, value = record.split(":", 1)
            padded = value.ljust(int(options["size"]), ".")
            producer.produce(options["topic"], padded, partition=int(partition), on_delivery=delivered)
        if options["wait"] == "yes" and producer.flush(SECONDS):
            raise ClientError("not flushed", f"{len(producer)} records")
        if failed:
            raise KafkaException(failed[0])

    def _consume(self, server: str, topic: str, partition: str, level: str) -> list[str]:
        settings: dict[str, Any] = {
            "bootstrap.servers": server, "group.id": "none", "isolation.level": level,
            "enable.auto.commit": False, "enable.partition.eof": True, **QUIET,
        }  # fmt: skip
        consumer, found, deadline = Consumer(settings), list[str](), time.monotonic() + SECONDS
        consumer.assign([TopicPartition(topic, int(partition), 0)])
        try:
            while time.monotonic() < deadline:
                message = consumer.poll(1)
                if message is None:
                    continue
                if message.error() is not None:
                    if message.error().code() == KafkaError._PARTITION_EOF:
                        return found
                    raise KafkaException(message.error())
                found.append((message.value() or b"").decode())
        finally:
            consumer.close()
        raise ClientError("no end", f"{len(found)} records")

    def close(self) -> None:
        """Drop the producers."""
        self._producers.clear()


class Transactional:
    """A transactional producer of a client. Settings have _ for the dots."""

    def __init__(
        self, client: Client, server: str, transactional_id: str, name: str = "", **configs: object
    ) -> None:
        self._client, self._name = client, name or transactional_id
        settings = {"transactional_id": transactional_id, "linger_ms": 0, **configs}
        options = {f"config.{key.replace('_', '.')}": str(value) for key, value in settings.items()}
        client.ask("open", producer=self._name, server=server, **options)

    def init(self) -> Transactional:
        """As the newest instance of its transactional id."""
        return self._do("init")

    def begin(self) -> Transactional:
        """Open a transaction."""
        return self._do("begin")

    def send(self, topic: str, *values: str, size: int = 0) -> Transactional:
        """Send to partition 0, and wait for all of it."""
        return self.send_to(topic, [(0, value) for value in values], size=size)

    def send_to(self, topic: str, records: Records, *, size: int = 0, wait: bool = True) -> Transactional:
        """Send to partitions; values are padded with dots to ``size``."""
        words = ",".join(f"{partition}:{value}" for partition, value in records)
        return self._do("send", topic=topic, records=words, size=str(size), wait="yes" if wait else "no")

    def commit(self) -> Transactional:
        """Commit."""
        return self._do("commit")

    def abort(self) -> Transactional:
        """Abort."""
        return self._do("abort")

    def close(self) -> None:
        """Leave, whatever is open."""
        self._do("close")

    def _do(self, command: str, **options: str) -> Transactional:
        self._client.ask(command, producer=self._name, **options)
        return self


def values(client: Client, server: str, topic: str, level: str = "read_committed") -> list[str]:
    """What a consumer of the client gets of partition 0 from its beginning to its end."""
    return client.ask("consume", server=server, topic=topic, partition="0", level=level)


def see(client: Client, server: str, topic: str, *expected: str) -> None:
    """A read_committed consumer gets these. A commit is answered before consumers see it, so it may take a
    moment; what should never be seen must not be seen meanwhile."""
    wanted, deadline = list(expected), time.monotonic() + SECONDS
    while (found := values(client, server, topic)) != wanted and time.monotonic() < deadline:
        assert found == wanted[: len(found)]
    assert found == wanted


def _java(name: str, jars: Path) -> list[str]:
    """The program, compiled against the jars unless it was."""
    source, classes = HERE / "java" / "clients" / "ClientProcess.java", PROGRAMS / name
    stamp = classes / "ClientProcess.class"
    if not stamp.exists() or stamp.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(source)], check=True)
    return ["java", *JVM, "-cp", f"{classes}:{jars}/*", "ClientProcess"]


def _go() -> list[str]:
    """The program, built; Go's own cache knows whether there is anything to do."""
    program = PROGRAMS / "franz-go"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "go", check=True)
    return [str(program)]


PROCESSES: dict[str, Callable[[], list[str]]] = {
    "java-4.3": lambda: _java("java-4.3", kafka_jars()),
    "java-3.9": lambda: _java("java-3.9", kafka_3_9_clients()),
    "franz-go": _go,
}
LEFT_OUT = (
    {"franz-go": "there is no go: install Go 1.24 or newer (Debian, Ubuntu: golang; macOS: brew install go)"}
    if shutil.which("go") is None
    else {}
)
CLIENTS = [name for name in ("confluent-kafka", *PROCESSES) if name not in LEFT_OUT]


def started(name: str, log: Path) -> Client:
    """A client by its name in CLIENTS."""
    return ClientProcess(PROCESSES[name](), log) if name in PROCESSES else ConfluentClient()
