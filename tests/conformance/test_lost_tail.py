"""Consumers notice that a log came back without its end and has grown again, on ours and on Apache Kafka
(KIP-320): the broker is killed, the end of the log is cut as by a power cut, other records follow.

Java's and librdkafka's consumers go back to the cut by themselves, or raise an error when they may not reset
their position. franz-go's consumer reports the loss, and goes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as OffsetOf
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.both_brokers import BROKERS
from tests.conformance.broker import KafkaBroker
from tests.conformance.transactional_clients import LEFT_OUT, started
from tests.server.client_commands import Client, ClientError
from tests.server.serving import Serving
from txnkafka._core.scan import scan

SECONDS = 30.0
KEPT, READ, WRITTEN = 5, 10, 10
NAMES = [name for name in ("java-4.4", "librdkafka", "franz-go") if name not in LEFT_OUT]
RESETS = ("earliest", "latest", "none")
PLACES = ("position", "committed")
CASES = [(name, reset, place) for name in NAMES for reset in RESETS for place in PLACES]
ALL_NEW = [f"0:{offset}:second {offset - KEPT}" for offset in range(KEPT, KEPT + WRITTEN)]


class Librdkafka:
    """librdkafka's consumer, by the commands of ``follow`` in GroupCommands.java."""

    def __init__(self) -> None:
        self._consumers: dict[str, Consumer] = {}

    def ask(self, command: str, *, consumer: str, **options: str) -> list[str]:
        """Do it. Raises ClientError."""
        try:
            if command == "follow":
                self._follow(consumer, **options)
            elif command == "poll":
                return self._poll(self._consumers[consumer], int(options["count"]))
            elif command == "commit":
                self._consumers[consumer].commit(asynchronous=False)
            elif command == "leave":
                self._consumers.pop(consumer).close()
        except KafkaException as raised:
            raise ClientError(raised.args[0].name(), raised.args[0].str()) from None
        return []

    def _follow(self, name: str, server: str, group: str, topic: str, reset: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": server, "group.id": group, "enable.auto.commit": False, "log_level": 0,
                "auto.offset.reset": {"none": "error"}.get(reset, reset), "error_cb": lambda _: None,
            }
        )  # fmt: skip
        (committed,) = consumer.committed([OffsetOf(topic, 0)], SECONDS)
        consumer.assign([committed if committed.offset >= 0 else OffsetOf(topic, 0, 0)])
        self._consumers[name] = consumer

    def _poll(self, consumer: Consumer, count: int) -> list[str]:
        found: list[str] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < count:
            message = consumer.poll(0.2)
            if message is None:
                if time.monotonic() > deadline:
                    raise ClientError("TimeoutException", f"{len(found)} records of {count}")
            elif message.error() is not None:
                raise KafkaException(message.error())
            else:
                found.append(f"{message.partition()}:{message.offset()}:{(message.value() or b'').decode()}")
        return found

    def close(self) -> None:
        """Leave all groups."""
        for consumer in self._consumers.values():
            consumer.close()


class Noticed(NamedTuple):
    """The names of errors and the records, up to the end of the log, that a consumer got after the cut."""

    errors: list[str]
    values: list[str]


Outcomes = dict[tuple[str, str, str], Noticed]


class Running(NamedTuple):
    """A broker; ``start_again`` kills it, calls, and starts it."""

    address: str
    data: Path
    start_again: Callable[[Callable[[], None]], None]


def write(server: str, name: str, count: int) -> None:
    """Append a batch for each record to the topics of all cases."""
    producer = Producer({"bootstrap.servers": server, "linger.ms": 0, "log_level": 0})
    for number in range(count):
        for case in CASES:
            producer.produce(topic_of(case), f"{name} {number}", partition=0)
        assert producer.flush(SECONDS) == 0


def topic_of(case: tuple[str, str, str]) -> str:
    return "-".join(case)


def cut(data: Path, topic: str) -> None:
    """Remove the end of the log of partition 0."""
    log = data / f"{topic}-0" / f"{0:020}.log"
    content = log.read_bytes()
    index = scan(content)
    position = index.position[list(index.base_offset).index(KEPT)]
    with log.open("r+b") as file:
        file.truncate(position)


def follow(clients: dict[str, Client], server: str, case: tuple[str, str, str]) -> None:
    name, reset, place = case
    topic = topic_of(case)
    group = "" if name == "franz-go" and place == "position" else f"of-{topic}"
    clients[name].ask("follow", consumer=topic, server=server, group=group, topic=topic, reset=reset)


def outcome(client: Client, topic: str, *, goes_on: bool) -> Noticed:
    """Poll; with ``goes_on`` once more after an error."""
    errors: list[str] = []
    while True:
        try:
            return Noticed(errors, client.ask("poll", consumer=topic, count=str(WRITTEN)))
        except ClientError as error:
            errors.append(error.name)
            if len(errors) > goes_on:
                return Noticed(errors, [])


def story(running: Running, clients: dict[str, Client]) -> Outcomes:
    """Each case with its own topic and consumer, through one cut."""
    server = running.address
    admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
    for future in admin.create_topics([NewTopic(topic_of(case), 1, 1) for case in CASES]).values():
        future.result(SECONDS)
    write(server, "first", READ)
    for case in CASES:
        name, _, place = case
        follow(clients, server, case)
        seen = clients[name].ask("poll", consumer=topic_of(case), count=str(READ))
        assert seen == [f"0:{offset}:first {offset}" for offset in range(READ)]
        if place == "committed":
            clients[name].ask("commit", consumer=topic_of(case))
            clients[name].ask("leave", consumer=topic_of(case))

    def cut_all() -> None:
        for case in CASES:
            cut(running.data, topic_of(case))

    running.start_again(cut_all)
    write(server, "second", WRITTEN)
    found: Outcomes = {}
    for case in CASES:
        name, _, place = case
        if place == "committed":
            follow(clients, server, case)
        found[case] = outcome(clients[name], topic_of(case), goes_on=name == "franz-go")
    return found


@pytest.fixture(scope="module", params=BROKERS)
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    directory = tmp_path_factory.mktemp("lost-tail")
    logs = {name: directory / f"{name}.log" for name in NAMES}
    clients: dict[str, Client] = {
        name: Librdkafka() if name == "librdkafka" else started(name, logs[name]) for name in NAMES
    }
    config = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    try:
        if request.param == "txnkafka":
            options = [word for item in config.items() for word in ("--config", "=".join(item))]
            options += ["--durability", "page_cache"]
            serving = Serving(directory / "data", *options)

            def start_again(meanwhile: Callable[[], None]) -> None:
                nonlocal serving
                serving.kill()
                meanwhile()
                serving.close()
                serving = Serving(directory / "data", *options, port=serving.port)

            try:
                yield story(Running(serving.address, directory / "data", start_again), clients)
            finally:
                serving.close()
        else:
            with KafkaBroker(directory, config) as kafka:

                def kafka_again(meanwhile: Callable[[], None]) -> None:
                    kafka.kill()
                    meanwhile()
                    kafka.start()

                yield story(Running(kafka.bootstrap_servers, kafka.log_dir, kafka_again), clients)
    finally:
        for client in clients.values():
            client.close()


EXPECTED = {
    ("java-4.4", "none"): Noticed(["LogTruncationException"], []),
    ("librdkafka", "none"): Noticed(["_AUTO_OFFSET_RESET"], []),
    "java-4.4": Noticed([], ALL_NEW),
    "librdkafka": Noticed([], ALL_NEW),
    "franz-go": Noticed(["*kgo.ErrDataLoss"], ALL_NEW),
}


@pytest.mark.parametrize("case", CASES, ids=topic_of)
def test_a_consumer_notices_that_the_log_was_cut(outcomes: Outcomes, case: tuple[str, str, str]) -> None:
    print(case, outcomes[case])
    assert outcomes[case] == EXPECTED.get(case[:2], EXPECTED.get(case[0]))


def test_leader_epochs_rise_from_start_to_start_of_both(tmp_path: Path) -> None:
    """Apache Kafka continues from our epochs, and our broker from Apache Kafka's."""
    kafka = KafkaBroker(tmp_path, {"offsets.topic.num.partitions": "1"}, is_static=True)

    def append(server: str) -> None:
        producer = Producer({"bootstrap.servers": server, "log_level": 0})
        producer.produce("t", b"value", partition=0)
        assert producer.flush(SECONDS) == 0

    for life in ("ours", "ours", "kafka", "kafka", "ours"):
        if life == "ours":
            with Serving(kafka.log_dir, "--create-topic", "t:1") as ours:
                append(ours.address)
                assert ours.stop() == 0
        else:
            kafka.start()
            try:
                append(kafka.bootstrap_servers)
            finally:
                kafka.stop()
    index = scan((kafka.log_dir / "t-0" / f"{0:020}.log").read_bytes())
    assert list(index.base_offset) == list(range(5))
    assert sorted(set(index.partition_leader_epoch)) == list(index.partition_leader_epoch)
    assert index.partition_leader_epoch[0] == 0
