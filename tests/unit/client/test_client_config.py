"""Settings of clients: names, texts, limits."""

from __future__ import annotations

from typing import Any

import pytest

from txnkafka.client.client_config import ClientConfig, parse_bootstrap, read_config
from txnkafka.client.transport import Node


def test_names_have_dots_or_underscores_and_values_may_be_texts() -> None:
    config = read_config(
        ClientConfig, {"request.timeout.ms": "5000", "retry_backoff_ms": 7, "client_id": "me"}
    )
    assert (config.request_timeout_ms, config.retry_backoff_ms, config.client_id) == (5000, 7, "me")
    assert read_config(ClientConfig, {"bootstrap_servers": ["a:1", "b:2"]}).bootstrap_servers == "a:1,b:2"


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (
            {"request.timeout": 1},
            ValueError,
            r"unknown setting 'request.timeout'; do you mean request.timeout.ms",
        ),
        ({"zzz": 1}, ValueError, "unknown setting 'zzz'; the settings are"),
        ({"request_timeout_ms": 1, "request.timeout.ms": 2}, ValueError, "is given twice"),
        ({"request_timeout_ms": -1}, ValueError, "request.timeout.ms must be 0 to 2147483647, not -1"),
        ({"request_timeout_ms": "soon"}, ValueError, "must be a number, not 'soon'"),
        ({"request_timeout_ms": None}, TypeError, "must be a number, not None"),
        ({"request_timeout_ms": True}, TypeError, "must be a number, not True"),
        ({"client_id": 3}, TypeError, "client.id must be a str, not 3"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        read_config(ClientConfig, given)


def test_bootstrap_servers() -> None:
    assert parse_bootstrap("a:1, [::1]:9092,PLAINTEXT://c:3") == [
        Node(-1, "a", 1), Node(-2, "::1", 9092), Node(-3, "c", 3),
    ]  # fmt: skip
    for wrong in ("", "a", "a:", ":1", "a:0", "a:65536", "a:x", "a:1,,b:2"):
        with pytest.raises(ValueError, match="is not HOST:PORT"):
            parse_bootstrap(wrong)
