"""Apache Kafka for the contests on Spark: it serves an input, whose partition directories are attached to
it, or takes the rows of sinks."""

from __future__ import annotations

import atexit
import functools
import shutil
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.java import BUILD
from bench.segments import Input, ready
from tests.conformance.broker import KafkaBroker
from txnkafka import Broker

__all__ = ["attach", "served", "sink_targets"]

TOPIC = "bench"
SECONDS = 30
# the generator's timestamps are years old
PROPERTIES = {"log.retention.ms": "-1"}


@functools.cache
def served(wanted: Input) -> KafkaBroker:
    """Return the broker for an input; it runs until the program ends."""
    ready(wanted)
    directory = BUILD / "bench" / "kafka" / wanted.name
    shutil.rmtree(directory, ignore_errors=True)
    broker = KafkaBroker(directory, PROPERTIES)
    atexit.register(broker.stop)
    broker.__enter__()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, wanted.partitions, 1)])[TOPIC].result(SECONDS)
    with broker.stopped():
        for partition in range(wanted.partitions):
            attach(wanted.log_dir / f"{TOPIC}-{partition}", broker.log_dir / f"{TOPIC}-{partition}")
    return broker


@functools.cache
def sink_targets(partitions: int) -> tuple[str, str]:
    """Return two targets with the empty topic: the address of a broker, which runs until the program ends,
    and a data directory."""
    directory = BUILD / "bench" / "sink"
    shutil.rmtree(directory, ignore_errors=True)
    broker = KafkaBroker(directory / "kafka", PROPERTIES)
    atexit.register(broker.stop)
    broker.__enter__()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(SECONDS)
    with Broker.open(directory / "data") as ours, ours.admin() as our_admin:
        our_admin.create_topic(TOPIC, partitions=partitions)
    return broker.bootstrap_servers, str(directory / "data")


def attach(source: Path, target: Path) -> None:
    """Replace an empty log by another; keeps ``partition.metadata`` with the topic's id."""
    for file in target.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for file in source.iterdir():
        if file.name != "partition.metadata":
            shutil.copyfile(file, target / file.name)
