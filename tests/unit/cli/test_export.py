"""``txnkafka export``: the files it writes, what it refuses, and its messages."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, TIME, Run
from tests.unit.cli.test_cat import damage
from tests.unit.logdir.logs import batch, write_log

DAY = "date=2023-11-14"


def files(output: Path) -> list[str]:
    found = (path.relative_to(output) for path in output.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.parts[0] != "_txnkafka")


def test_lines_are_those_of_cat(run: Run, log_dir: Path, tmp_path: Path) -> None:
    answer = run("export", log_dir, "--to", "jsonl", "--output", tmp_path / "out")
    assert answer.status == 0
    first, second = files(tmp_path / "out")
    assert first == f"topic=orders/{DAY}/0-00000000000000000000.jsonl"
    assert second == f"topic=orders/{DAY}/1-00000000000000000000.jsonl"
    lines = [line for name in (first, second) for line in (tmp_path / "out" / name).read_text().splitlines()]
    assert lines == run("-q", "cat", log_dir).lines
    assert re.fullmatch(r"4 records of 2 partitions in 2 files \([\d.]+ K?i?B\) in \S+/out\n", answer.stdout)
    assert "open transaction" in answer.stderr


def test_every_csv_file_has_its_header(run: Run, log_dir: Path, tmp_path: Path) -> None:
    run("export", log_dir, "--to", "csv", "--output", tmp_path / "out", "--partition-by", "none")
    names = files(tmp_path / "out")
    assert names == ["0-00000000000000000000-orders.csv", "1-00000000000000000000-orders.csv"]
    for name, count in zip(names, (3, 1), strict=True):
        rows = list(csv.DictReader((tmp_path / "out" / name).read_text().splitlines()))
        assert (len(rows), rows[0]["topic"]) == (count, "orders")


def test_parquet_has_the_wanted_columns(run: Run, log_dir: Path, tmp_path: Path) -> None:
    columns = ("--columns", "topic,offset,value")
    command = ("export", log_dir, "--to", "parquet", "--output", tmp_path / "out", "--partition-by", "date")
    run(*command, *columns)
    table = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert table.schema.names == ["topic", "offset", "value", "date"]
    assert sorted(zip(*(table[name].to_pylist() for name in ("offset", "value")), strict=True)) == [
        (0, b"\x00\xff"), (0, "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode()), (1, None), (2, b"committed")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("--isolation-level read_uncommitted", 6),
        ("--partition 1", 1),
        ("--start-offset 1 --partition 0", 2),
        ("--end-offset 1", 2),
        (f"--start-time {TIME + 1000} --partition 0", 2),
        (f"--end-time {TIME + 1000}", 2),
        ("--up-to high-watermark --partition 0 --end-offset 1", 1),
        (f"--start-time {TIME + 60_000}", 0),
    ],
)
def test_what_is_read(run: Run, log_dir: Path, tmp_path: Path, options: str, count: int) -> None:
    command = ("export", log_dir, "--to", "jsonl", "--output", tmp_path / "out", "--format", "json")
    answer = run(*command, "--topic", "orders", *options.split())
    assert (answer.status, json.loads(answer.stdout)["rows"]) == (0, count)


def test_a_high_watermark_that_is_not_known_is_an_error(run: Run, log_dir: Path, tmp_path: Path) -> None:
    options = ("--topic", "orders", "--up-to", "high-watermark")
    for command in (("cat",), ("export", "--to", "jsonl", "--output", tmp_path / "out")):
        answer = run(*command, log_dir, *options)
        assert answer.status == 2, answer.stderr
        assert "replication-offset-checkpoint has no high watermark of orders-1;" in answer.stderr


def test_again_does_nothing_and_incremental_adds(run: Run, log_dir: Path, tmp_path: Path) -> None:
    command = ("-q", "export", log_dir, "--to", "jsonl", "--output", tmp_path / "out", "--format", "json")
    assert json.loads(run(*command).stdout)["new_rows"] == 4
    before = files(tmp_path / "out")
    path = log_dir / "orders-1" / FIRST_SEGMENT
    path.write_bytes(path.read_bytes() + batch(1, 3))
    again = json.loads(run(*command).stdout)
    assert (again["round"], again["new_rows"], files(tmp_path / "out")) == (0, 0, before)
    added = json.loads(run(*command, "--incremental").stdout)
    assert (added["round"], added["rows"], added["new_rows"]) == (1, 3, 3)
    (new,) = set(files(tmp_path / "out")) - set(before)
    assert new == "topic=orders/date=1970-01-01/1-00000000000000000001.jsonl"
    nothing = json.loads(run(*command, "--incremental").stdout)
    assert (nothing["round"], nothing["new_rows"]) == (1, 0)


def test_other_options_are_refused(run: Run, log_dir: Path, tmp_path: Path) -> None:
    command = ("-q", "export", log_dir, "--output", tmp_path / "out", "--to")
    run(*command, "jsonl")
    answer = run(*command, "csv", "--topic", "orders")
    assert (answer.status, answer.stdout) == (2, "")
    assert "other options (to was jsonl, now csv, topic was none, now orders)" in answer.stderr


def test_a_directory_with_other_things_is_refused(run: Run, log_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear all")
    answer = run("export", log_dir, "--to", "jsonl", "--output", tmp_path)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"txnkafka: error: {tmp_path} is not empty and contains no export")


@pytest.mark.parametrize(
    "names",
    [["_txnkafka/letter"], ["_txnkafka"], ["letter", "_txnkafka/lock"], ["_txnkafka/export.json/"]],
    ids=["foreign folder", "file", "beside a lock", "directory"],
)
def test_a_folder_named_like_an_exports_is_no_export(
    run: Run, log_dir: Path, tmp_path: Path, names: list[str]
) -> None:
    output = tmp_path / "out"
    for name in names:
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_text("dear all")
    before = sorted(output.rglob("*"))
    answer = run("export", log_dir, "--to", "jsonl", "--output", output)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"txnkafka: error: {output} is not empty and contains no export")
    assert sorted(output.rglob("*")) == before


@pytest.mark.parametrize("left", [[], ["lock"], ["lock", "export.json.tmp"]])
def test_an_export_that_was_stopped_as_it_began_is_begun_again(
    run: Run, log_dir: Path, tmp_path: Path, left: list[str]
) -> None:
    folder = tmp_path / "out" / "_txnkafka"
    folder.mkdir(parents=True)
    for name in left:
        (folder / name).touch()
    answer = run("-q", "export", log_dir, "--to", "jsonl", "--output", tmp_path / "out")
    assert answer.status == 0, answer.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--to jsonl --columns key", "jsonl always has the fields of cat"),
        ("--to parquet --columns key,kye", "columns: unknown name kye"),
        ("--to parquet --partition-by topic,hour", "partition_by: unknown name hour"),
        ("--to parquet --partition-by date,date", "each may be there once"),
        ("--to iceberg --columns key", "name it too"),
        ("--to iceberg --table records", "table must be like kafka.records"),
        ("--to parquet --start-offset 1 --start-time now", "exclude each other"),
    ],
)
def test_invalid_arguments(run: Run, log_dir: Path, tmp_path: Path, options: str, message: str) -> None:
    answer = run("export", log_dir, "--output", tmp_path / "out", *options.split())
    assert (answer.status, answer.stdout) == (2, "")
    assert message in answer.stderr
    assert not (tmp_path / "out").exists()


def test_the_output_is_a_directory_of_this_machine(run: Run, log_dir: Path, tmp_path: Path) -> None:
    for address in ("s3://bucket/x", "memory://x", "hdfs:/x"):
        answer = run("export", log_dir, "--to", "jsonl", "--output", address)
        assert (answer.status, answer.stdout) == (2, "")
        assert f"--output {address}: only a directory of this machine can be written to" in answer.stderr
    assert run("export", log_dir, "--to", "jsonl", "--output", f"file://{tmp_path}/out/").status == 0
    assert len(files(tmp_path / "out")) == 2


def test_nothing_is_written_into_what_is_read(run: Run, log_dir: Path) -> None:
    answer = run("export", log_dir, "--to", "jsonl", "--output", log_dir / "out")
    assert answer.status == 2
    assert "which is only read" in answer.stderr
    assert not (log_dir / "out").exists()


def test_damage_ends_its_partition_only(run: Run, log_dir: Path, tmp_path: Path) -> None:
    damage(log_dir, 90)
    command = ("-q", "export", log_dir, "--to", "jsonl", "--output")
    stopped = run(*command, tmp_path / "stop")
    assert (stopped.status, len(files(tmp_path / "stop"))) == (1, 1)
    assert "position 0, offset 0" in stopped.stderr
    assert "--on-corrupt skip reads on, into another --output\n" in stopped.stderr
    skipped = run(*command, tmp_path / "skip", "--on-corrupt", "skip", "--format", "json")
    assert (skipped.status, json.loads(skipped.stdout)["rows"]) == (1, 2)
    assert skipped.stderr.startswith("txnkafka: error: left out: ")


def test_internal_topics_only_when_they_are_named(run: Run, tmp_path: Path) -> None:
    for name in ("t-0", "__consumer_offsets-0"):
        write_log(tmp_path / "data", name, {0: [batch(0)]})
    for options, count in (((), 1), (("--topic", "__consumer_offsets"), 1)):
        output = tmp_path / f"out{len(options)}"
        answer = run("export", tmp_path / "data", "--to", "jsonl", "--output", output, *options)
        assert (answer.status, len(files(output))) == (0, count)
    assert files(tmp_path / "out2")[0].startswith("topic=__consumer_offsets/")


@pytest.mark.parametrize(
    ("to", "package"),
    [("delta", "deltalake"), ("iceberg", "pyiceberg"), ("delta", "pyarrow"), ("iceberg", "pyarrow")],
)
def test_a_missing_package_is_named(
    run: Run, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    answer = run("export", log_dir, "--to", to, "--output", tmp_path / "out")
    assert (answer.status, answer.stdout) == (2, "")
    assert f"pip install 'txnkafka[{to}]'" in answer.stderr, "one extra has all that it needs"
    assert not (tmp_path / "out").exists()


def test_records_and_partitions_are_chosen_as_in_cat(run: Run, log_dir: Path, tmp_path: Path) -> None:
    choice = ("--where", "offset != 1", "-o", -6, "--isolation-level", "read_uncommitted")
    answer = run("export", log_dir, "--to", "jsonl", "--output", tmp_path / "out", *choice)
    assert answer.status == 0, answer.stderr
    texts = [(tmp_path / "out" / name).read_text() for name in files(tmp_path / "out")]
    lines = [line for text in texts for line in text.splitlines()]
    assert lines == run("-q", "cat", log_dir, *choice).lines
    assert [json.loads(line)["offset"] for line in lines] == [2, 4, 6, 0]


def test_an_unknown_column_has_a_hint(run: Run, log_dir: Path, tmp_path: Path) -> None:
    command = ("export", log_dir, "--to", "parquet", "--output", tmp_path / "out")
    assert "columns: unknown name val: did you mean value?" in run(*command, "--columns", "val").stderr
    assert "--where: one of topic" in run(*command, "--where", "x = 1").stderr


def test_ctrl_c_says_how_it_goes_on(
    run: Run, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    command = ("export", log_dir, "--to", "jsonl", "--output", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr("txnkafka.export.run.stage_unit", interrupted)
        answer = run(*command, "--threads", 1)
    assert answer.status == 130
    assert "note: nothing is lost: the same command continues the export\n" in answer.stderr
    assert run(*command).status == 0
