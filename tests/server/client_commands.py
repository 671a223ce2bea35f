"""Transactional clients that take commands: confluent-kafka, and whatever else has ``ask``.

The commands and their options are those of ``tests/conformance/java/clients/ClientProcess.java``. What one of
them is refused raises ClientError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

__all__ = ["Client", "ClientError", "ConfluentClient", "Transactional"]

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


class ConfluentClient:
    """librdkafka, in this process; ``seconds`` is how long a call may take."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
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
            "init": lambda: producer.init_transactions(self._seconds),
            "begin": producer.begin_transaction,
            "commit": lambda: producer.commit_transaction(self._seconds),
            "abort": lambda: producer.abort_transaction(self._seconds),
            "send": lambda: self._send(producer, options),
            "close": lambda: self._producers.pop(options["producer"]),
        }
        steps[command]()

    def _send(self, producer: Producer, options: Mapping[str, str]) -> None:
        failed: KafkaError | None = None

        def delivered(error: KafkaError | None, _: object) -> None:
            nonlocal failed  # and no call of a method: flush() may have set an exception before it calls this
            if failed is None:
                failed = error

        for record in options["records"].split(","):
            partition, value = record.split(":", 1)
            padded = value.ljust(int(options["size"]), ".")
            producer.produce(options["topic"], padded, partition=int(partition), on_delivery=delivered)
        if options["wait"] == "yes" and producer.flush(self._seconds):
            raise ClientError("not flushed", f"{len(producer)} records")
        if failed is not None:
            raise KafkaException(failed)

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
