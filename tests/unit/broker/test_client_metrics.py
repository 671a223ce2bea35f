"""Subscriptions to metrics of clients; tests/unit/server/transcripts/configs.jsonl has what Kafka says."""

from __future__ import annotations

import pytest

from txnkafka.broker.config.client_metrics import shown_subscription, subscription_refusal
from txnkafka.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "2147483648"}, ErrorCode.INVALID_CONFIG),
        ({"no.such": "1"}, ErrorCode.INVALID_REQUEST),
        ({"metrics": "a,,b"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=" + "(" * 5000}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=a{99999999999}"}, ErrorCode.INVALID_CONFIG),
        ({"match": " client_id = a.* , client_source_port=1", "metrics": "*", "interval.ms": "100"}, None),
    ],
)
def test_what_a_subscription_may_be(configs: dict[str, str], expected: ErrorCode | None) -> None:
    refused = subscription_refusal("m", configs)
    assert (refused and refused[0]) == expected


def test_a_subscription_has_a_name() -> None:
    assert subscription_refusal("", {}) == (ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


def test_values_are_shown_as_they_are_understood() -> None:
    assert shown_subscription("metrics", " b , a,b ") == "b,a"
    assert shown_subscription("interval.ms", " 0100 ") == "100"
    assert shown_subscription("interval.ms", "left by somebody") == "left by somebody"
