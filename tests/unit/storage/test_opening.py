"""Opening a data directory from Python: defaults, and errors that name the next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import txnkafka
import txnkafka.log
from txnkafka.errors import LogDirError
from txnkafka.log import DataDirectory, LocalDataFiles, LogConfig, TopicPartition, build_batch, random_uuid


def test_open_needs_a_path_only(tmp_path: Path) -> None:
    with DataDirectory.open(str(tmp_path / "data"), LogConfig(segment_bytes=1000)) as data:
        log = data.create(TopicPartition("orders", 0), random_uuid(), now_ms=1)
        log.append(build_batch([(b"key", b"value", 1)]), now_ms=1)
        assert log.config.segment_bytes == 1000
        assert repr(log) == "PartitionLog('orders-0', 0 to 1)"
        assert repr(data) == f"DataDirectory('{tmp_path}/data', 1 logs)"
    assert repr(data) == f"DataDirectory('{tmp_path}/data', 1 logs, closed)"
    with DataDirectory.open(str(tmp_path / "data")) as data:
        assert data.logs[TopicPartition("orders", 0)].log_end_offset == 1


ORDERS = TopicPartition("orders", 0)
WRONG: list[tuple[type[Exception], str, Callable[[DataDirectory], object]]] = [
    (
        TypeError, "not 'orders-0'",
        lambda data: data.create("orders-0", random_uuid(), now_ms=1),  # type: ignore[arg-type]
    ),
    (ValueError, "22 characters, as random_uuid", lambda data: data.create(ORDERS, "x", now_ms=1)),
    (
        KeyError, r"a key is TopicPartition\(\"orders\", 0\); logs here: none",
        lambda data: data.logs["orders-0"],  # type: ignore[index]
    ),
    (KeyError, "logs here: none", lambda data: data.logs[ORDERS]),
    (ValueError, "at least one record", lambda data: build_batch([])),
    (LogDirError, "/proc/x cannot be created", lambda data: DataDirectory.open("/proc/x")),
    (
        TypeError, "must be a function: lambda topic",
        lambda data: DataDirectory(
            LocalDataFiles(), data.path, LogConfig(), now_ms=0,  # type: ignore[arg-type]
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text", "call"), WRONG)
def test_a_wrong_argument_is_named(
    tmp_path: Path, error: type[Exception], text: str, call: Callable[[DataDirectory], object]
) -> None:
    with DataDirectory.open(str(tmp_path)) as data, pytest.raises(error, match=text):
        call(data)


def test_modules_list_their_public_names_only() -> None:
    assert dir(txnkafka) == sorted(txnkafka.__all__)
    assert dir(txnkafka.log) == sorted(txnkafka.log.__all__)
