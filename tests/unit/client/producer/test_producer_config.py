"""Defaults and contradictions of a producer's settings."""

from __future__ import annotations

from typing import Any

import pytest

from txnkafka.client.client_config import read_config
from txnkafka.client.producer import ProducerConfig


def config(**settings: Any) -> ProducerConfig:
    return read_config(ProducerConfig, settings)


def test_the_defaults_are_those_of_kafka_4() -> None:
    found = config()
    assert (found.linger_ms, found.batch_size, found.buffer_memory) == (5, 16_384, 32 << 20)
    assert (found.max_block_ms, found.delivery_ms, found.request_timeout_ms) == (60_000, 120_000, 30_000)
    assert (found.max_in_flight_requests_per_connection, found.max_request_size) == (5, 1 << 20)
    assert (found.required_acks, found.is_idempotent, found.retries) == (-1, True, 2**31 - 1)
    assert (found.transactional_id, found.transaction_ms) == (None, 60_000)


def test_idempotence_is_off_where_acks_or_retries_prevent_it() -> None:
    assert not config(acks="1").is_idempotent
    assert not config(acks=0).is_idempotent
    assert not config(retries=0).is_idempotent
    assert not config(**{"enable.idempotence": "false"}).is_idempotent
    assert config(acks="-1").is_idempotent


def test_the_delivery_timeout_grows_with_linger_and_request_timeout() -> None:
    assert config(linger_ms=200_000).delivery_ms == 230_000
    assert config(linger_ms=10, request_timeout_ms=40, delivery_timeout_ms=50).delivery_ms == 50


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"enable_idempotence": True, "acks": "1"}, "enable.idempotence needs acks=all"),
        ({"enable_idempotence": True, "retries": 0}, "needs retries above 0"),
        ({"transactional_id": "a", "acks": "1"}, "transactional.id needs an idempotent producer"),
        ({"transactional_id": "a", "enable_idempotence": False}, "transactional.id needs an idempotent"),
        ({"transactional_id": ""}, "must not be empty"),
        ({"max_in_flight_requests_per_connection": 6}, "must be at most 5 for an idempotent producer"),
        ({"delivery_timeout_ms": 100}, r"at least linger.ms \+ request.timeout.ms, which is 30005"),
        ({"compression_gzip_level": 0}, "1 to 9"),
        ({"compression_type": "brotli"}, "one of none, gzip"),
        ({"acks": "2"}, "one of all"),
        ({"batch.sise": 1}, "do you mean batch.size"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**settings)


def test_without_idempotence_more_requests_may_be_in_flight() -> None:
    assert (
        config(acks="1", max_in_flight_requests_per_connection=9).max_in_flight_requests_per_connection == 9
    )


@pytest.mark.parametrize(
    ("codec", "level"), [("none", None), ("snappy", None), ("gzip", -1), ("lz4", 9), ("zstd", 3)]
)
def test_each_codec_has_its_level(codec: str, level: int | None) -> None:
    assert config(compression_type=codec).compression_level == level
