"""The settings of ``txnkafka serve``: a file in Kafka's format, options, and their precedence."""

from __future__ import annotations

import logging
from pathlib import Path

import click
import pytest
from confluent_kafka.admin import AdminClient

from tests.server.serving import Serving
from tests.unit.cli.conftest import Run
from txnkafka.cli.serve_settings import serve_settings

DISTRIBUTED = r"""
# As in config/server.properties of Apache Kafka 4.3
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "server.properties"
    path.write_text(text, encoding="latin-1")
    return str(path)


def test_the_file_of_kafkas_distribution(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Settings without effect are logged in one line."""
    found = serve_settings(None, [], {}, written(tmp_path, DISTRIBUTED))
    assert found.data == "/tmp/kraft-combined-logs"
    assert found.node_id == 1
    (listener,) = found.listeners
    assert str(listener.listen) == "PLAINTEXT://:9092"
    assert str(listener.advertised) == "PLAINTEXT://localhost:9092"
    assert found.config.socket_request_max_bytes == 104_857_600
    assert found.config.topic_defaults["retention.ms"] == str(168 * 3_600_000)
    (record,) = caplog.records
    assert record.getMessage().startswith("settings without effect on one node: process.roles=broker,")
    assert "num.io.threads=8" in record.getMessage()
    assert "num.partitions" not in record.getMessage()


def test_options_beat_the_file(tmp_path: Path) -> None:
    """Also where the file has the same setting in another unit, which Kafka would prefer."""
    path = written(tmp_path, DISTRIBUTED + "log.retention.ms=1\nadvertised.listeners=\n")
    found = serve_settings(
        "elsewhere", [("127.0.0.1", 0)], {"num.partitions": "7", "log.retention.hours": "2"}, path
    )
    assert (found.data, found.config.num_partitions) == ("elsewhere", 7)
    assert [str(each.listen) for each in found.listeners] == ["PLAINTEXT://127.0.0.1:0"]
    assert found.config.topic_defaults["retention.ms"] == str(2 * 3_600_000)


def test_without_a_file() -> None:
    found = serve_settings("data", [], {"node.id": "3", "listeners": "PLAINTEXT://h:1"}, None)
    assert (found.data, found.node_id) == ("data", 3)
    assert [str(each.listen) for each in found.listeners] == ["PLAINTEXT://h:1"]
    (default,) = serve_settings("data", [], {}, None).listeners
    assert str(default.listen) == "PLAINTEXT://127.0.0.1:9092"


def test_java_spellings(tmp_path: Path) -> None:
    text = "log.dirs : /tmp/a\\ b\n! comment\nnum.part\\u0069tions 3\n"
    text += "group.consumer.assignors=range,\\\n    uniform\n"
    found = serve_settings(None, [], {}, written(tmp_path, text))
    assert (found.data, found.config.num_partitions) == ("/tmp/a b", 3)
    assert found.config.group_consumer_assignors == "range,uniform"


def test_a_setting_that_a_file_has_twice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, "num.partitions=1\nnode.id=1\nnode.id=1\nnum.partitions=2\n")
    with caplog.at_level(logging.WARNING):
        assert serve_settings("data", [], {}, path).config.num_partitions == 2
    assert [each.getMessage() for each in caplog.records] == [
        f"{path} has num.partitions in lines 1 and 4: the last one counts"
    ]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("num.partitions=0", ["line 1: num.partitions must be 1 to"]),
        ("\nlog.retention.hour=1", ["line 2: a broker has no setting log.retention.hour; did you mean"]),
        (
            "ssl.keystore.location=x\nxyzzy=1\nauthorizer.class.name=y",
            ["line 1: ssl.keystore", "line 2: a broker has no setting xyzzy", "line 3: authorizer.class"],
        ),
        ("#\n\nlisteners=SASL_SSL://:9092", ["line 3: listeners: SASL_SSL cannot have the protocol"]),
        ("listeners=x", ["line 1: listeners: 'x' is not NAME://HOST:PORT"]),
        ("process.roles=broker", ["line 1: process.roles cannot be 'broker'"]),
        ("controller.quorum.voters=1@a:1,2@b:1,3@c:1", ["line 1: controller.quorum.voters cannot have 3"]),
        ("zookeeper.connect=localhost:2181", ["line 1: zookeeper.connect cannot be set"]),
        ("config.providers=env", ["line 1: config.providers cannot be set"]),
        ("node.id=-1", ["line 1: node.id must be a number from 0 to"]),
        ("metadata.log.dir=/elsewhere", ["line 1: metadata.log.dir cannot be /elsewhere"]),
        ("a=1\nb=\\u00", ["line 2: cannot read"]),
    ],
)
def test_a_file_that_is_refused(run: Run, tmp_path: Path, text: str, reasons: list[str]) -> None:
    """With the place of each fault; nothing is created."""
    data = tmp_path / "data"
    result = run("serve", "--data", data, "--config-file", written(tmp_path, text))
    assert result.status == 2
    assert [reason for reason in reasons if reason not in result.stderr] == []
    assert "server.properties, line" in result.stderr
    assert not data.exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "no data directory: give --data DIR, or --config-file with log.dirs"),
        (["--config", "listeners=PLAINTEXT://:1", "--listen", "a:1", "--data", "d"], "cannot be combined"),
        (["--config-file", "missing"], "'missing' does not exist"),
        (["--config-file", "."], "'.' is a directory"),
    ],
)
def test_options_that_are_refused(run: Run, options: list[str], reason: str) -> None:
    result = run("serve", *options)
    assert (result.status, reason in result.stderr) == (2, True), result.stderr


def test_several_directories(tmp_path: Path) -> None:
    path = written(tmp_path, "log.dirs=/a,/b")
    with pytest.raises(click.UsageError, match="has 2 directories, and the data directory is one"):
        serve_settings(None, [], {}, path)
    assert serve_settings("/a", [], {}, path).data == "/a"


def test_a_new_directory_gets_the_node_id(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Serving(data, "--config", "node.id=7") as serving:
        admin = AdminClient({"bootstrap.servers": serving.address, "log_level": 0})
        assert list(admin.list_topics(timeout=30).brokers) == [7]
        assert serving.stop() == 0
    assert "node.id=7\n" in (data / "meta.properties").read_text()


def test_the_directory_of_another_node(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=1\ncluster.id=bhDGh5xtTyzEvcYk2A_VxQ\nnode.id=2\n")
    result = run("serve", "--data", data, "--listen", "127.0.0.1:0", "--config", "node.id=1")
    assert result.status == 2
    assert "has node.id=2, not 1: the directory belongs to another cluster or node" in result.stderr
