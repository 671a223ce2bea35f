"""Delta and Iceberg tables: the same rows, one transaction per round, however often it was tried."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tests.unit.export.outputs import run_export
from tests.unit.export.test_files import DAY, NO_UTF8, RUNS, log_of
from tests.unit.logdir.logs import batch
from txnkafka import KafkaError
from txnkafka.export.manifest import Round


def iceberg(output: Path) -> Table:
    catalog = load_catalog("txnkafka", type="sql", uri=f"sqlite:///{output}/_txnkafka/catalog.db")
    return catalog.load_table("kafka.records")


def delta_offsets(output: Path) -> list[int]:
    return sorted(DeltaTable(output).to_pyarrow_table()["offset"].to_pylist())


def iceberg_offsets(output: Path) -> list[int]:
    return sorted(iceberg(output).scan().to_arrow()["offset"].to_pylist())


OFFSETS: dict[str, Callable[[Path], list[int]]] = {"delta": delta_offsets, "iceberg": iceberg_offsets}
each_format = pytest.mark.parametrize("to", ["delta", "iceberg"])


@each_format
def test_a_second_round_adds(tmp_path: Path, to: str) -> None:
    path = log_of(tmp_path / "data", RUNS) / "t-0" / f"{0:020}.log"
    run_export(tmp_path / "data", tmp_path / "out", to, file_bytes=300)
    path.write_bytes(path.read_bytes() + batch(40))
    run_export(tmp_path / "data", tmp_path / "out", to, file_bytes=300)
    assert OFFSETS[to](tmp_path / "out") == list(range(40))
    run_export(tmp_path / "data", tmp_path / "out", to, file_bytes=300, incremental=True)
    assert OFFSETS[to](tmp_path / "out") == list(range(42))


@each_format
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, when: str
) -> None:
    log_of(tmp_path / "data", RUNS)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if when == "before":
            patch.setattr("txnkafka.export.run.commit_table", crash)
        else:
            patch.setattr(Round, "finish", crash)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                run_export(tmp_path / "data", tmp_path / "out", to)
    run_export(tmp_path / "data", tmp_path / "out", to)
    assert OFFSETS[to](tmp_path / "out") == list(range(40))


def test_a_catalog_that_fails_is_said_and_its_password_not_kept(tmp_path: Path) -> None:
    log_of(tmp_path / "data", RUNS)
    catalog = (("type", "sql"), ("uri", "sqlite:////no/such/place.db?secret=swordfish"))
    with pytest.raises(KafkaError, match="iceberg could not commit them to its table"):
        run_export(tmp_path / "data", tmp_path / "out", "iceberg", catalog=catalog)
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path for path in kept if b"swordfish" in path.read_bytes()] == []
    run_export(tmp_path / "data", tmp_path / "out", "iceberg")
    assert iceberg_offsets(tmp_path / "out") == list(range(40))


def test_delta_knows_dates_and_counts(tmp_path: Path) -> None:
    run_export(log_of(tmp_path / "data", [DAY, 1 << 62]), tmp_path / "out", "delta")
    table = DeltaTable(tmp_path / "out")
    assert table.metadata().partition_columns == ["topic", "date"]
    assert table.to_pyarrow_table()["date"].to_pylist() == [date(1970, 1, 2), None]
    assert sum(table.get_add_actions(flatten=True)["num_records"].to_pylist()) == 2


@each_format
def test_a_topic_whose_name_means_something_in_a_path(tmp_path: Path, to: str) -> None:
    run_export(log_of(tmp_path / "data", [DAY], "a=b%3Dc-0"), tmp_path / "out", to)
    assert OFFSETS[to](tmp_path / "out") == [0]


@each_format
@pytest.mark.parametrize("by", [("topic", "date"), ()])
def test_a_topic_that_is_no_utf8_is_escaped_as_in_json(tmp_path: Path, to: str, by: tuple[str, ...]) -> None:
    run_export(log_of(tmp_path / "data", [DAY], NO_UTF8), tmp_path / "out", to, partition_by=by)
    out = tmp_path / "out"
    found = DeltaTable(out).to_pyarrow_table() if to == "delta" else iceberg(out).scan().to_arrow()
    assert found["topic"].to_pylist() == [r"caf\xe9"]


def test_iceberg_leaves_out_what_a_filter_cannot_need(tmp_path: Path) -> None:
    run_export(log_of(tmp_path / "data", RUNS), tmp_path / "out", "iceberg")
    table = iceberg(tmp_path / "out")
    moment = datetime.fromtimestamp(RUNS[-1] / 1000, UTC).isoformat()
    scan = table.scan(f"timestamp >= '{moment}'")
    assert len(list(scan.plan_files())) == 1
    assert scan.to_arrow()["offset"].to_pylist() == [39]


@each_format
@pytest.mark.parametrize("by", [("topic", "date"), ("topic",), ()])
def test_times_outside_of_the_calendar(tmp_path: Path, to: str, by: tuple[str, ...]) -> None:
    in_microseconds = 1_700_000_000_000_000  # by mistake
    times = [DAY, in_microseconds, 2 * DAY, in_microseconds + DAY, -(1 << 62), DAY]
    run_export(log_of(tmp_path / "data", times), tmp_path / "out", to, partition_by=by)
    assert OFFSETS[to](tmp_path / "out") == list(range(len(times)))


def test_iceberg_finds_times_of_the_calendar_beside_others(tmp_path: Path) -> None:
    log_dir = log_of(tmp_path / "data", [DAY, 1 << 60])
    run_export(log_dir, tmp_path / "out", "iceberg", partition_by=("topic",))
    early = "timestamp < '1971-01-01T00:00:00+00:00'"
    found = iceberg(tmp_path / "out").scan(early, selected_fields=("offset",))
    assert found.to_arrow()["offset"].to_pylist() == [0]
