"""Records the demo's directory with a real Apache Kafka: ``python -m demo.record``. Needs Maven.

A shop's payments: two programs write transactions, some of which they abort; a third has lost track of a
partition, so that its transaction there never ends, and everything behind it waits. Kafka runs without the
verification of partitions (KIP-890), as brokers before 3.6 do, or this could not happen. ``payments`` is what
it leaves of these topics and the coordinators, ``consumed.json`` what its own Java consumer got of them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Where

from tests.conformance.broker import KafkaBroker, java
from tests.conformance.clients import Clients, Message, send
from txnkafka import TopicPartition

LOG_DIR, CONSUMED = Path(__file__).with_name("payments"), Path(__file__).with_name("consumed.json")
TOPIC, PARTITIONS, GROUP = "payments", 3, "ledger"
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.partition.verification.enable": "false",
}
ACCOUNTS = ("anna", "ben", "chloe", "dmitri", "emre", "fatima")
SHOPS = ("books", "coffee", "bicycles", "records")
KEPT = (
    "payments-*", "refunds-*", "__transaction_state-*", "__consumer_offsets-*", "*-checkpoint",
    "meta.properties", ".kafka*",
)  # fmt: skip


def payments() -> Iterator[tuple[int, Message]]:
    """Payments without an end, and their partitions: an account's are in one."""
    number = 1000
    while True:
        number += 1
        account = ACCOUNTS[number * 7 % len(ACCOUNTS)]
        payment = {
            "payment": number, "account": account, "shop": SHOPS[number * 5 % len(SHOPS)],
            "amount": round(number * 37 % 9973 / 100, 2),
        }  # fmt: skip
        partition = ACCOUNTS.index(account) % PARTITIONS
        yield partition, Message(account.encode(), json.dumps(payment, separators=(",", ":")).encode())


def write(kafka: KafkaBroker) -> None:
    """All that happens to the topic."""
    clients, todo = Clients(kafka), payments()
    clients.create(TOPIC, PARTITIONS)
    clients.create("refunds", 1)
    billing = [clients.transactional(f"billing-{number}") for number in range(2)]
    for transaction in range(8):
        transact(billing[transaction % 2], todo, 2 + transaction % 3, commit=transaction not in (2, 5))
    commit_offsets(kafka)
    clients.leave_hanging(TopicPartition(TOPIC, 0), TopicPartition("refunds", 0), "billing-2")
    for transaction in range(8, 16):
        transact(billing[transaction % 2], todo, 2 + transaction % 3, commit=transaction not in (11, 14))
    clients.close()


def transact(producer: Producer, todo: Iterator[tuple[int, Message]], count: int, *, commit: bool) -> None:
    producer.begin_transaction()
    for _ in range(count):
        partition, message = next(todo)
        send(producer, TOPIC, [message], partition)
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


def commit_offsets(kafka: KafkaBroker) -> None:
    """A group has read everything up to here."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": GROUP})
    ends = [consumer.get_watermark_offsets(Where(TOPIC, number))[1] for number in range(PARTITIONS)]
    consumer.commit(
        offsets=[Where(TOPIC, number, end) for number, end in enumerate(ends)], asynchronous=False
    )
    consumer.close()


def consumed(kafka: KafkaBroker) -> dict[str, list[dict[str, Any]]]:
    """What Kafka's Java consumer gets, by partition."""
    options = f"--topic {TOPIC} --bootstrap-server {kafka.bootstrap_servers} --from-beginning"
    shown = ["print.partition=true", "print.offset=true", "print.key=true", "key.separator=\t"]
    command = java(
        "-Xmx256m", "org.apache.kafka.tools.consumer.ConsoleConsumer", *options.split(),
        "--isolation-level", "read_committed", "--timeout-ms", "5000",
        *(word for name in shown for word in ("--formatter-property", name)),
    )  # fmt: skip
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[dict[str, Any]]] = {f"{TOPIC}-{number}": [] for number in range(PARTITIONS)}
    for line in text.splitlines():
        partition, offset, key, value = line.split("\t")
        record = {"offset": int(offset.partition(":")[2]), "key": key, "value": value}
        found[f"{TOPIC}-{partition.partition(':')[2]}"].append(record)
    return found


def main() -> None:
    """Write the directory anew."""
    with tempfile.TemporaryDirectory() as place:
        kafka = KafkaBroker(Path(place), PROPERTIES)
        with kafka:
            write(kafka)
            expected = consumed(kafka)
        shutil.rmtree(LOG_DIR, ignore_errors=True)
        LOG_DIR.mkdir()
        for path in (found for pattern in KEPT for found in kafka.log_dir.glob(pattern)):
            if path.is_dir():
                shutil.copytree(path, LOG_DIR / path.name)
            else:
                shutil.copy(path, LOG_DIR)
    CONSUMED.write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
