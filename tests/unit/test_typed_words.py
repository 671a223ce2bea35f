"""Wrong words for options are refused twice: by mypy, and with an error when the program runs.

``ci/types`` checks this file. Each comment ``type: ignore[…]`` is an error of mypy that must exist: strict
checking reports those that are not needed.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, partition
from txnkafka import LogDir
from txnkafka.logdir import PartitionView
from txnkafka.logdir.tables import Tables
from txnkafka.spark.options import read_options

SELECTION = (
    "isolation_level", "start_offset", "end_offset", "start_time", "end_time", "up_to", "on_corrupt", "where",
)  # fmt: skip


def test_wrong_words_of_reading(tmp_path: Path) -> None:
    view: PartitionView = partition(tmp_path, {0: [batch(0, 3)]})
    with pytest.raises(ValueError, match="isolation level must be"):
        view.records(isolation_level="read_comitted")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="up_to must be"):
        view.count(up_to="high_watermark")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_corrupt must be"):
        view.to_arrow(on_corrupt="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="isolation level must be"):
        view.offset_for_timestamp(0, "commited")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="did you mean start_offset"):
        view.read(start_ofset=1)  # type: ignore[call-arg]
    log_dir = LogDir(tmp_path)
    with pytest.raises(TypeError, match="did you mean end_offset"):
        log_dir.records(end_ofset=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="io must be auto, mmap or pread"):
        LogDir(tmp_path, io="map")  # type: ignore[arg-type]


def test_wrong_words_of_spark() -> None:
    with pytest.raises(ValueError, match="isolation level must be"):
        read_options(isolation_level="committed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="io must be auto, mmap or pread"):
        read_options(io="map")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be error or latest"):
        read_options(starting_offsets_by_timestamp_strategy="newest")  # type: ignore[arg-type]


@pytest.mark.parametrize("owner", [LogDir, PartitionView])
def test_help_shows_each_keyword_of_reading(owner: type[Tables]) -> None:
    names = ["count", "records", "arrow_batches", "to_arrow", "to_pandas", "to_polars"]
    if owner is PartitionView:
        names += ["plan", "read"]
    for name in names:
        parameters = inspect.signature(getattr(owner, name)).parameters
        assert tuple(parameters)[-len(SELECTION) :] == SELECTION, name
        assert "read_uncommitted" in str(parameters["isolation_level"].annotation)


def test_public_names_of_a_partition(tmp_path: Path) -> None:
    """A name more is a promise more: it needs a line in docs/python.md."""
    view: PartitionView = partition(tmp_path, {0: [batch(0, 3)]})
    assert {name for name in dir(view) if not name.startswith("_")} == {
        "aborted_transactions", "arrow_batches", "close", "count", "explain", "files", "findings",
        "high_watermark", "iter_transactions", "last_stable_offset", "log_end_offset", "log_start_offset",
        "offset_for_timestamp", "open_transactions", "partition", "path", "plan", "producer_state",
        "producers", "read", "records", "segments", "source", "to_arrow", "to_pandas", "to_polars", "topic",
        "topic_id", "topic_partition", "transactions",
    }  # fmt: skip
