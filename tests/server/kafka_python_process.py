"""kafka-python's producer, driven over a pipe like ``ClientProcess.java``; it has no ``consume``.

A process of its own, because kafka-python leaves sockets to the garbage collector.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping

import kafka
from kafka.errors import KafkaError

SECONDS = 10.0  # kafka-python has calls that wait without an end, such as a commit after some errors


class KafkaPythonClient:
    """Producers by their names."""

    def __init__(self) -> None:
        self._producers: dict[str, kafka.KafkaProducer] = {}

    def run(self, command: str, options: Mapping[str, str]) -> None:
        """Do what the line says."""
        if command == "open":
            self._open(options)
        else:
            self._run(command, self._producers[options["producer"]], options)

    def _open(self, options: Mapping[str, str]) -> None:
        settings = {
            name.removeprefix("config.").replace(".", "_"): int(value) if value.isdigit() else value
            for name, value in options.items()
            if name.startswith("config.")
        }
        self._producers[options["producer"]] = kafka.KafkaProducer(
            bootstrap_servers=options["server"], **settings
        )

    def _run(self, command: str, producer: kafka.KafkaProducer, options: Mapping[str, str]) -> None:
        steps: dict[str, Callable[[], object]] = {
            "init": producer.init_transactions,
            "begin": producer.begin_transaction,
            "commit": producer.commit_transaction,
            "abort": producer.abort_transaction,
            "send": lambda: self._send(producer, options),
            "close": lambda: _in_background(lambda: self._producers.pop(options["producer"]).close(0)),
        }
        steps[command]()

    def _send(self, producer: kafka.KafkaProducer, options: Mapping[str, str]) -> None:
        sent = []
        for record in options["records"].split(","):
            partition, value = record.split(":", 1)
            padded = value.ljust(int(options["size"]), ".").encode()
            sent.append(producer.send(options["topic"], padded, partition=int(partition)))
        # Always: a batch that is too old fails its futures, but not the transaction, which would be committed
        # without it (3.0.12).
        for future in sent:
            future.get(SECONDS)


def _in_background(step: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=step, daemon=True)
    thread.start()
    return thread


def _answered(producers: KafkaPythonClient, line: str) -> dict[str, object]:
    command, *words = line.split()
    answers: list[dict[str, object]] = []

    def step() -> None:
        try:
            producers.run(command, dict(word.split("=", 1) for word in words))
        except KafkaError as error:
            answers.append({"error": type(error).__name__, "detail": str(error)})
        else:
            answers.append({"error": None})

    _in_background(step).join(SECONDS)
    return answers[0] if answers else {"error": "no answer", "detail": f"{command} after {SECONDS} s"}


def main() -> None:
    """One command a line on stdin, one JSON object a line on stdout; an error has the name of its class."""
    producers = KafkaPythonClient()
    for line in sys.stdin:
        print(json.dumps(_answered(producers, line)), flush=True)


if __name__ == "__main__":
    main()
