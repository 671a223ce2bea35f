"""Partitions, topics and directories as tables, and ``where`` in all that reads records."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import LogDir
from txnkafka.errors import MissingPackageError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txnkafka.logdir import ReadRequest
from txnkafka.logdir.requested import offsets_of

ABORTED = batch(3, 2, transactional=True, producer_id=1, producer_epoch=0)
ORDERS = {0: [batch(0, 3), ABORTED, marker(5, "abort", 1)], 6: [batch(6, 2), batch(8, 40)]}
WHERE = "offset >= 2 and value < '7' and timestamp != 1010"


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDir:
    write_log(tmp_path, "orders-0", ORDERS)
    write_log(tmp_path, "orders-1", {0: [batch(0, 5)]})
    write_log(tmp_path, "refunds-0", {0: [batch(0, 4)]})
    write_log(tmp_path, "__consumer_offsets-7", {0: [batch(0, 3)]})
    return LogDir(tmp_path)


def wanted(offset: int) -> bool:
    return offset >= 2 and str(offset) < "7" and offset != 10


def test_where_selects_the_same_records_however_they_are_read(log_dir: LogDir) -> None:
    orders = log_dir.partition("orders", 0)
    expected = [record.offset for record in orders.records() if wanted(record.offset)]
    assert 20 < len(expected) < 44
    assert [record.offset for record in orders.records(where=WHERE)] == expected
    assert [offset for columns in orders.read(where=WHERE) for offset in columns.offsets] == expected
    assert orders.to_arrow(["offset"], where=WHERE)["offset"].to_pylist() == expected
    assert orders.count(where=WHERE) == len(expected)
    assert orders.to_arrow(["value"], where=WHERE)["value"].to_pylist() == [str(i).encode() for i in expected]


def test_where_of_a_header_needs_no_headers_in_the_result(log_dir: LogDir) -> None:
    orders = log_dir.partition("orders", 0)
    assert orders.count(where="header('trace') is null") == orders.count()
    assert list(orders.read(where="header('trace') = 'x'")) == []


def test_columns_that_are_kept_are_not_overwritten(log_dir: LogDir) -> None:
    orders = log_dir.partition("orders", 0)
    kept = [np.asarray(columns.offsets) for columns in orders.read(where=WHERE)]
    assert np.concatenate(kept).tolist() == [record.offset for record in orders.records(where=WHERE)]


def test_bounds_of_where_leave_units_out(log_dir: LogDir) -> None:
    orders = log_dir.partition("orders", 0)
    assert {Path(unit.path).name for unit in orders.plan(where="offset >= 6")} == {f"{6:020}.log"}
    assert {Path(unit.path).name for unit in orders.plan(where="timestamp > 1005")} == {f"{6:020}.log"}
    assert orders.plan(where="topic = 'refunds'") == orders.plan(where="offset > 99") == []


def test_a_topic_and_a_directory_are_tables(log_dir: LogDir) -> None:
    whole = log_dir.to_arrow(["topic", "partition", "offset"])
    counts = {name: whole["topic"].to_pylist().count(name) for name in set(whole["topic"].to_pylist())}
    assert counts == {"orders": 50, "refunds": 4}
    assert log_dir.topic("orders").to_arrow(["offset"], where="partition = 1").num_rows == 5
    assert log_dir.topic("orders", "ref*").count() == log_dir.topic("*").count() == 54
    assert log_dir.count() == 54
    assert log_dir.topic("__consumer_offsets").to_arrow().num_rows == 3
    assert log_dir.topic("__*").to_pandas(["offset"])["offset"].tolist() == [0, 1, 2]
    assert log_dir.to_polars(["key", "offset"], where="topic = 'refunds'").rows()[0] == (b"k", 0)
    frame = log_dir.to_pandas(start_offset=-2)
    assert list(zip(frame.topic, frame.partition, frame.offset, strict=True)) == [
        *[("orders", 0, 46), ("orders", 0, 47), ("orders", 1, 3), ("orders", 1, 4)],
        *[("refunds", 0, 2), ("refunds", 0, 3)],
    ]
    assert repr(log_dir.topic("orders")) == "Partitions(orders-0, orders-1)"


def test_a_directory_with_nothing_but_kafkas_own_topics_is_read(tmp_path: Path) -> None:
    write_log(tmp_path, "__consumer_offsets-7", {0: [batch(0, 3)]})
    assert LogDir(tmp_path).to_arrow().num_rows == 3


def test_the_last_offsets(log_dir: LogDir) -> None:
    orders = log_dir.partition("orders", 0)
    assert [record.offset for record in orders.records(start_offset=-3)] == [45, 46, 47]
    assert [record.offset for record in orders.records(start_offset=-4, end_offset=6)] == [2]
    assert orders.count(start_offset=-1000) == 45
    assert offsets_of(orders, ReadRequest(start_offset=-2)) == (46, 48)
    with pytest.raises(OffsetOutOfRangeError):
        orders.plan(start_offset=49)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda d: d.partition("orders", 0).to_arrow("key"), TypeError, r"a list of names, as in \['key'\]"),
        (lambda d: d.to_arrow(["val"]), ValueError, "no column val: did you mean value?"),
        (lambda d: d.to_arrow(start_ofset=3), TypeError, "start_ofset: did you mean start_offset?"),
        (lambda d: d.to_arrow(where="ofset > 5"), ValueError, "'ofset', at position 1 of 'ofset > 5'"),
        (lambda d: d.to_arrow(where=5), TypeError, "where must be the text of a predicate"),
        (lambda d: d.topic("order"), UnknownTopicOrPartitionError, "no topic order in .*mean orders?"),
        (lambda d: d.topic(3), TypeError, "a topic is named by a str, not by 3"),
    ],
)
def test_what_is_wrong_is_said_at_once(
    log_dir: LogDir, call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(log_dir)


@pytest.mark.parametrize(
    ("package", "method", "extra"),
    [("pyarrow", "to_arrow", "arrow"), ("pandas", "to_pandas", "pandas"), ("polars", "to_polars", "polars")],
)
def test_a_missing_package_is_named_with_its_extra(
    log_dir: LogDir, monkeypatch: pytest.MonkeyPatch, package: str, method: str, extra: str
) -> None:
    def import_module(name: str) -> object:
        if name == package:
            raise ImportError(f"No module named {name!r}")
        return importlib.import_module(name)

    monkeypatch.setattr("txnkafka.env.packages.import_module", import_module)
    with pytest.raises(MissingPackageError, match=rf"needs {package} .*pip install 'txnkafka\[{extra}\]'"):
        getattr(log_dir, method)()
    assert issubclass(MissingPackageError, ImportError)


def test_a_topic_that_is_no_utf8_is_escaped_as_in_json(tmp_path: Path) -> None:
    """Arrow has only Unicode: it was a UnicodeEncodeError."""
    write_log(tmp_path, os.fsdecode(b"caf\xe9-0"), {0: [batch(0)]})
    log_dir = LogDir(tmp_path)
    assert log_dir.to_arrow(["topic"])["topic"].to_pylist() == [r"caf\xe9"] * 2
    assert log_dir.to_pandas(["topic"])["topic"].tolist() == [r"caf\xe9"] * 2
    assert log_dir.to_polars(["topic"])["topic"].to_list() == [r"caf\xe9"] * 2
    assert [log_dir.count(where=rf"topic {sign} 'caf\xe9'") for sign in ("=", "!=")] == [2, 0]
