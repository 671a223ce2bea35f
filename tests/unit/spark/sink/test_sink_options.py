"""Options and columns of the sink: names, defaults, and errors before anything is written."""

from __future__ import annotations

import pytest

from tests.unit.spark.sink.sinks import columns
from txnkafka.spark.sink.row_columns import check_rows
from txnkafka.spark.sink.sink_options import SinkOptions, parse_sink_options

DIRECTORY = {"path": "/data/kafka"}
BROKERS = {"kafka.bootstrap.servers": "a:1,b:2", "stagingPath": "/shared/staging"}


def parsed(*, is_stream: bool = True, **options: str) -> SinkOptions:
    return parse_sink_options(options, is_stream=is_stream)


def test_a_directory() -> None:
    found = parsed(path="/data//kafka/", topic="out", CHECKPOINTLOCATION="/cp/job")
    assert (found.directory, found.servers, found.staging) == ("/data/kafka", None, "/data/kafka.staging")
    assert (found.topic, found.compression, found.transactional_id) == ("out", "none", None)
    assert found.producer_settings()["transaction.timeout.ms"] == 900_000


def test_brokers_stage_beside_the_checkpoint() -> None:
    found = parsed(**{"kafka.bootstrap.servers": "a:1"}, checkpointLocation="file:///cp/job")
    assert (found.directory, found.servers, found.staging) == (None, "a:1", "/cp/job.staging")


def test_settings_of_clients() -> None:
    found = parsed(**BROKERS, **{"kafka.Transaction.Timeout.ms": "5000", "kafka.request.timeout.ms": "100"})
    settings = found.producer_settings()
    assert settings["transaction.timeout.ms"] == "5000"
    assert found.admin_settings() == {"request.timeout.ms": "100"}


@pytest.mark.parametrize("name", ["compression", "kafka.compression.type"])
def test_compression(name: str) -> None:
    assert parsed(**DIRECTORY, **{name: "ZSTD"}).compression == "zstd"


def test_the_names_of_delta() -> None:
    found = parsed(**DIRECTORY, txnAppId="nightly", txnVersion="17", is_stream=False)
    assert (found.transactional_id, found.version) == ("nightly", 17)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "give either the option path"),
        (DIRECTORY | BROKERS, "give either the option path"),
        ({"kafka.bootstrap.servers": "a:1"}, "option stagingPath is missing"),
        ({"kafka.bootstrap.servers": "a:1", "checkpointLocation": "s3://b/cp"}, "stagingPath is missing"),
        (DIRECTORY | {"stagingPath": "/data/kafka/staging"}, "must not be within the data directory"),
        (DIRECTORY | {"stagingPath": "/data/kafka"}, "must not be within the data directory"),
        (DIRECTORY | {"stagingPath": "s3://b/staging"}, "option stagingPath must be a local or mounted"),
        ({"path": "s3://b/kafka"}, "option path must be a local or mounted"),
        (DIRECTORY | {"subscribe": "orders"}, "unknown option subscribe of the sink"),
        (DIRECTORY | {"transactionalid": ""}, "option transactionalId is empty"),
        (DIRECTORY | {"txnAppId": "a", "txnVersion": "1"}, "are for batch writes"),
        (DIRECTORY | {"kafka.acks": "1"}, "option kafka.acks is set by the sink"),
        (DIRECTORY | {"kafka.transactional.id": "a"}, "use the option transactionalId"),
        (DIRECTORY | {"kafka.lingr.ms": "1"}, "do you mean linger.ms"),
        (DIRECTORY | {"compression": "brotli"}, "options of the producer"),
        (DIRECTORY | {"kafka.transaction.timeout.ms": "soon"}, "transaction.timeout.ms"),
    ],
)
def test_wrong_options(options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_sink_options(options, is_stream=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"txnAppId": "a"}, "need each other"),
        ({"txnVersion": "1"}, "need each other"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "must be a whole number from 0 on, not '-1'"),
        ({"txnAppId": "a", "txnVersion": "1", "transactionalId": "b"}, "name the same id"),
    ],
)
def test_wrong_options_of_batch_writes(options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_sink_options(DIRECTORY | options, is_stream=False)


@pytest.mark.parametrize(
    ("given", "topic"),
    [
        ("value string", "out"),
        ("key binary, value binary, topic string", None),
        ("value binary, partition int, timestamp timestamp, topic string", "out"),
        ("value binary, headers headers", "out"),
        ("value binary, topic string, offset bigint, timestampType int", None),  # as the source has them
    ],
)
def test_columns(given: str, topic: str | None) -> None:
    check_rows(columns(given), topic)


@pytest.mark.parametrize(
    ("given", "topic", "text"),
    [
        ("key string", "out", "column value is missing; the columns are key"),
        ("value string", None, "no topic: give the option topic, or a column topic"),
        ("value bigint", "out", "column value must be string or binary, not bigint: cast it"),
        ("value string, partition bigint", "out", "column partition must be int, not bigint"),
        ("value string, topic binary", None, "column topic must be string, not binary"),
        ("value string, timestamp bigint", "out", "column timestamp must be timestamp"),
        ("value string, headers map", "out", "column headers must be array"),
        ("value string, price double", "out", r"unknown column price: .* leave it out with select"),
    ],
)
def test_wrong_columns(given: str, topic: str | None, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        check_rows(columns(given), topic)
