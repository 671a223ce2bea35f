"""The programs of docs/compatibility.md, one row each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.client_suites.suite import NotFetchedError
from tests.conformance.maven import jars, version_in
from tests.conformance.transactional_clients import java_program
from tests.programs import connect_worker
from tests.programs.program import Input, Place, Program
from tests.programs.python_program import prepared, python_of
from tests.server.serving import free_ports

__all__ = ["AT_LEAST_ONCE", "PROGRAMS"]

Connector = Mapping[str, str | int]
HERE = Path(__file__).resolve().parent
# Flink reflects on these packages
OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("util", "lang")]
JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]


def _java(pom: str, program: str, memory: str, options: Sequence[str] = ()) -> list[str]:
    """The command of a program of ``java``, compiled against the jars of a pom."""
    found = [memory, *JVM, *options]
    return java_program(pom, jars(pom), program, sources=HERE / "java", options=found)


def _streams(guarantee: str) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        program = _java("kafka-streams", "StreamsCopy", "-Xmx384m")
        return [*program, place.server, place.source, place.target, str(place.directory), guarantee]

    return command


def _flink(naming: str) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        program = _java("flink", "FlinkCopy", "-Xmx640m", OPENED)
        return [*program, place.server, place.source, place.target, str(place.directory), naming]

    return command


def _spring(place: Place) -> list[str]:
    program = _java("spring-kafka", "SpringCopy", "-Xmx384m")
    return [*program, place.server, place.source, place.target]


def _connect(
    classpath: Callable[[], str], connector: Callable[[Place], Connector]
) -> Callable[[Place], list[str]]:
    """A worker of Connect for exactly-once sources, with one connector."""

    def command(place: Place) -> list[str]:
        (port,) = free_ports(1)
        worker = {
            "bootstrap.servers": place.server,
            "group.id": "connect",
            "exactly.once.source.support": "enabled",
            "listeners": f"http://127.0.0.1:{port}",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "config.storage.replication.factor": 1,
            "offset.storage.replication.factor": 1,
            "status.storage.replication.factor": 1,
            "offset.storage.partitions": 2,
            "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 1000,
            "scheduled.rebalance.max.delay.ms": 0,  # a killed worker is not waited for
        }
        properties = place.directory / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in worker.items()))
        main = ["org.apache.kafka.connect.cli.ConnectDistributed", str(properties)]
        java = ["java", "-Xmx384m", *JVM, "-cp", classpath(), *main]
        config = json.dumps(connector(place))
        return [sys.executable, str(connect_worker.__file__), str(port), config, *java]

    return command


def _with_lines() -> str:
    """The class path of Connect with the connector of ``java/LinesSource.java``."""
    command = _java("connect", "LinesSource", "-Xmx384m")
    return command[command.index("-cp") + 1]


def _lines(place: Place) -> Connector:
    return {
        "name": "lines",
        "connector.class": "LinesSource",
        "tasks.max": 1,
        "file": str(place.lines),
        "topic": place.target,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "exactly.once.support": "required",
    }


def _mirror(place: Place) -> Connector:
    """The source and the target cluster are the same: the copy is named after the source."""
    cluster = {
        f"{which}.cluster.{name}": value
        for which in ("source", "target")
        for name, value in (("alias", which), ("bootstrap.servers", place.server))
    }
    return {
        **cluster,
        "name": "mirror",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": 2,
        "topics": place.source,
        "replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
        "source.consumer.isolation.level": "read_committed",
        "source.consumer.auto.offset.reset": "earliest",
        "exactly.once.support": "required",
    }


def _fetched(pom: str) -> Callable[[], None]:
    def prepare() -> None:
        try:
            jars(pom)
        except RuntimeError as error:
            raise NotFetchedError(str(error)) from None

    return prepare


def _python(
    name: str,
    requirement: str,
    about: str,
    oldest: tuple[int, int] = (3, 11),
    *,
    input: Input = "transactions",
) -> Program:
    """A program of ``python``; ``oldest`` is the first Python that the package runs on."""
    script = HERE / "python" / f"{name}_copy.py"

    def command(place: Place) -> list[str]:
        arguments = [place.server, place.source, place.target, str(place.directory)]
        return [python_of(requirement), str(script), *arguments]

    package, _, version = requirement.partition("==")
    version = version if package == name else f"{version} ({package})"
    return Program(name, version, about, lambda: prepared(requirement, oldest), command, input)


STREAMS = version_in("kafka-streams", "kafka-streams")
FLINK = (
    f"{version_in('flink', 'flink-streaming-java')}, connector {version_in('flink', 'flink-connector-kafka')}"
)
PROGRAMS = (
    Program(
        "kafka-streams", STREAMS, "exactly_once_v2; counts in a state store, after a repartition",
        _fetched("kafka-streams"), _streams("exactly_once_v2"),
    ),
    Program(
        "connect", version_in("connect", "connect-runtime"),
        "exactly.once.source.support; a distributed worker with a connector that reads a file",
        _fetched("connect"), _connect(_with_lines, _lines), input="lines",
    ),
    Program(
        "flink", FLINK, "KafkaSource, KafkaSink EXACTLY_ONCE, transactional ids INCREMENTING",
        _fetched("flink"), _flink("INCREMENTING"),
    ),
    Program(
        "flink-pooling", FLINK, "as before, transactional ids POOLING",
        _fetched("flink"), _flink("POOLING"),
    ),
    Program(
        "mirrormaker-2", version_in("mirrormaker", "connect-mirror"),
        "MirrorSourceConnector on a worker with exactly.once.source.support",
        _fetched("mirrormaker"), _connect(lambda: f"{jars('mirrormaker')}/*", _mirror), target="source.in",
    ),
    Program(
        "spring-kafka", version_in("spring-kafka", "spring-kafka"),
        "listener container with KafkaTransactionManager", _fetched("spring-kafka"), _spring,
    ),
    _python("quixstreams", "quixstreams==3.28.1", 'processing_guarantee="exactly-once"; counts in its state'),
    replace(
        _python("faust", "faust-streaming==0.15.3", 'processing_guarantee="exactly_once"', input="records"),
        repeats="no: faust sends records to a topic that it does not consume itself without a transaction "
        "(its `TransactionManager.send` asks its consumer for the partitions), and repeats them after a kill",
    ),
    _python("flechtwerk", "flechtwerk==0.17.0", "a transformer that counts in its state", (3, 13)),
)  # fmt: skip
AT_LEAST_ONCE = Program(
    "at-least-once", STREAMS, "Kafka Streams with at_least_once: the trial must notice what it repeats",
    _fetched("kafka-streams"), _streams("at_least_once"),
)  # fmt: skip
