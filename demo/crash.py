"""A broker is killed in the middle of a transaction; afterwards each payment is read exactly once.

Nothing is simulated: the broker is a process with ``txnkafka serve``, the clients use librdkafka, the signal
is SIGKILL.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer

from txnkafka import LogDir

if TYPE_CHECKING:
    from demo.steps import Demo

__all__ = ["after_a_kill", "check_once"]

TOPIC = "payments"
FIRST = [b"payment %d" % i for i in range(1, 5)]
SECOND = [b"payment %d" % i for i in range(5, 9)]
SECONDS = 30
QUIET = {"log_level": 0}  # the client's complaints that its broker has died


def after_a_kill(demo: Demo, root: Path, directory: str = "build/demo-crash") -> None:
    """Run the scene in ``root/directory``, which is deleted before."""
    path = root / directory
    shutil.rmtree(path, ignore_errors=True)
    demo.step(
        "A broker is killed",
        "A broker of one node starts on an empty directory. A program commits four payments, sends four "
        "more in a second transaction, and the broker is killed (SIGKILL) before the commit.",
    )
    with broker(path) as (process, server):
        producer = transactional(server)
        send(producer, FIRST, commit=True)
        send(producer, SECOND, commit=False)
        process.kill()
        process.wait(SECONDS)
    demo.command("show", directory, "--topic", TOPIC)
    demo.command("repair", directory)
    demo.step(
        "Is each payment there exactly once?",
        "The broker starts again. The program restarts, which aborts its open transaction, and sends the "
        "second transaction once more. A read_committed consumer reads from the beginning.",
    )
    with broker(path) as (process, server):
        send(transactional(server), SECOND, commit=True)
        consumed = read_committed(server, len(FIRST) + len(SECOND))
        process.terminate()
        process.wait(SECONDS)
    demo.command("show", directory, "--topic", TOPIC)
    on_the_disk = [record.value for record in LogDir(path).partition(TOPIC, 0).records()]
    check_once("the consumer", consumed)
    check_once("the directory", on_the_disk)
    demo.say(
        f"[bold green]✓[/] [bold]{len(consumed)} payments, each exactly once, for the consumer and in the "
        "directory;[/] the records of the killed transaction are aborted (×)."  # noqa: RUF001
    )


@contextmanager
def broker(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run ``txnkafka serve`` on ``path``; yields the process and its address."""
    command = [
        sys.executable, "-m", "txnkafka", "serve", "--data", str(path), "--listen", "127.0.0.1:0",
        "--create-topic", f"{TOPIC}:1", "--config", "group.initial.rebalance.delay.ms=0",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("listening on "):
                raise SystemExit(f"txnkafka serve did not start: {line!r}, status {process.poll()}")
            yield process, line.split()[-1]
        finally:
            process.kill()


def transactional(server: str) -> Producer:
    """Return the program's producer, with nothing of an earlier run left open."""
    producer = Producer({"bootstrap.servers": server, "transactional.id": "demo", **QUIET})
    producer.init_transactions(SECONDS)
    return producer


def send(producer: Producer, payments: list[bytes], *, commit: bool) -> None:
    """Write payments in a transaction; ``commit=False`` leaves it open, with its records in the log."""
    producer.begin_transaction()
    for payment in payments:
        producer.produce(TOPIC, payment, partition=0)
    if producer.flush(SECONDS):
        raise SystemExit("the broker of the demo did not acknowledge the payments")
    if commit:
        producer.commit_transaction(SECONDS)


def read_committed(server: str, count: int) -> list[bytes | None]:
    """Return the values of a consumer until it has ``count`` records, and of the next second."""
    settings = {"bootstrap.servers": server, "group.id": "demo", "auto.offset.reset": "earliest", **QUIET}
    consumer = Consumer(settings)
    try:
        consumer.subscribe([TOPIC])
        found = consumer.consume(count, SECONDS)
        return [message.value() for message in (*found, *consumer.consume(1, 1))]
    finally:
        consumer.close()


def check_once(reader: str, payments: list[bytes | None]) -> None:
    """Raise SystemExit unless each payment was read once, in order."""
    if payments == FIRST + SECOND:
        return
    counts = Counter(payments)
    lost = [each for each in FIRST + SECOND if not counts[each]]
    twice = [each for each, count in counts.items() if count > 1]
    raise SystemExit(
        f"{reader} has {len(payments)} payments; lost: {lost}, twice: {twice}: this is a bug in txnkafka"
    )
