"""``txnkafka spark-bundle``: the archive, options for spark-submit on stdout, instructions on stderr."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from txnkafka.spark.bundle import bundle


@pytest.mark.slow
def test_an_archive_and_the_options(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "executors.tgz"
    answer = run("spark-bundle", "-o", path)
    assert (answer.status, answer.stdout) == (0, f"--archives {path}#txnkafka\n")
    assert path.read_bytes() == bundle().content
    assert answer.stderr == (
        f"txnkafka: note: for executors with {bundle().build} and "
        "numpy, pyarrow, cramjam, isal, xxhash, lz4, zstandard\n"
        "txnkafka: note: in the program, txnkafka.spark.register(spark) makes the format known\n"
    )


@pytest.mark.slow
def test_its_own_name(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("-q", "spark-bundle") == (0, f"--archives {tmp_path}/{bundle().name}#txnkafka\n", "")
    assert [each.name for each in tmp_path.iterdir()] == [bundle().name]


def test_a_name_that_spark_would_not_unpack(run: Run, tmp_path: Path) -> None:
    answer = run("spark-bundle", "--output", tmp_path / "executors.whl")
    assert (answer.status, answer.stdout) == (2, "")
    assert "only when its name ends in .tar.gz or .tgz" in answer.stderr


@pytest.mark.slow
def test_an_unwritable_output(run: Run, tmp_path: Path) -> None:
    answer = run("spark-bundle", "-o", tmp_path / "gone" / "a.tgz")
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"txnkafka: error: {tmp_path}/gone/")


def test_without_pyspark(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("pyspark", "txnkafka.spark"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    answer = run("spark-bundle")
    assert (answer.status, answer.stdout) == (2, "")
    assert "pip install 'txnkafka[spark]'" in answer.stderr
