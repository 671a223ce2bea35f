"""An export that is stopped anywhere and run again: no row twice, none missing, and in between readers see
whole files only."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from tests.conftest import sampled
from tests.golden.cases import case
from tests.models.builder import Batch, PlainRecord
from tests.unit.export.outputs import Stop, StoppingOutput, run_export, visible
from tests.unit.export.power import PowerCut
from tests.unit.logdir.logs import batch, marker, write_log

DAY = 86_400_000


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("logs")
    transactional = {"transactional": True, "producer_epoch": 0}
    first = [
        batch(0, 5),
        batch(5, 2, producer_id=1, **transactional),
        batch(7, 2, producer_id=2, **transactional),
        marker(9, "commit", 1),
        marker(10, "abort", 2),
    ]
    write_log(root, "t-0", {0: first, 11: [batch(11, 3), batch(14, 1)]})
    nights = [PlainRecord(None, b"v", DAY * (1 + i % 2)) for i in range(4)]
    write_log(root, "t-1", {0: [Batch(records=nights).encode()]})
    return root


@pytest.mark.parametrize("to", sampled(["jsonl", "csv", "parquet"], every=3, first=2))
def test_stopped_before_every_change_to_the_disk(logs: Path, tmp_path: Path, to: str) -> None:
    whole = run_export(logs, tmp_path / "whole", to, file_bytes=150)
    expected = visible(tmp_path / "whole")
    assert (whole.rows, whole.files) == (15, len(expected))
    assert whole.files == 5  # one of them from two segments
    limit, stopped = 0, True
    while stopped:
        output = tmp_path / f"after-{limit}"
        try:
            run_export(logs, output, to, file_bytes=150, files=StoppingOutput(limit))
            stopped = False
        except Stop:
            seen = visible(output)
            assert seen == {name: expected[name] for name in seen}, limit
        report = run_export(logs, output, to, file_bytes=150, files=StoppingOutput())
        assert visible(output) == expected, limit
        assert report.rows == whole.rows
        limit += 1
    assert limit > 60


@pytest.mark.parametrize(
    ("to", "seed"),
    [
        ("jsonl", 0),
        pytest.param("jsonl", 1, marks=pytest.mark.slow),
        pytest.param("parquet", 2, marks=pytest.mark.slow),
    ],
)
def test_power_cut_before_every_change_to_the_disk(logs: Path, tmp_path: Path, to: str, seed: int) -> None:
    run_export(logs, tmp_path / "whole", to, file_bytes=150, files=StoppingOutput())
    expected = visible(tmp_path / "whole")
    chance = random.Random(seed)
    limit, stopped = 0, True
    while stopped:
        output, disk = tmp_path / f"after-{limit}", PowerCut(limit)
        try:
            run_export(logs, output, to, file_bytes=150, files=disk)
            stopped = False
        except Stop:
            pass  # now the power is cut
        disk.cut(output, chance)
        seen = visible(output)
        assert seen == {name: expected[name] for name in seen}, limit
        assert stopped or seen == expected
        run_export(logs, output, to, file_bytes=150, files=StoppingOutput())
        assert visible(output) == expected, limit
        limit += 1
    assert limit > 60


def test_stopped_again_and_again(logs: Path, tmp_path: Path) -> None:
    run_export(logs, tmp_path / "whole", file_bytes=1)
    chance = random.Random(4)
    stops = 0
    while True:
        try:
            run_export(logs, tmp_path / "output", file_bytes=1, files=StoppingOutput(chance.randrange(1, 40)))
            break
        except Stop:
            stops += 1
    assert visible(tmp_path / "output") == visible(tmp_path / "whole")
    assert stops > 3


def test_killed_at_random_moments(tmp_path: Path) -> None:
    crash = case("interleaved")
    partition = next(each for each in crash.partitions() if each.topic == "orders")
    command = [sys.executable, "-m", "txnkafka", "-q", "export", crash.logs, "--topic", "orders"]
    command += ["--to", "parquet", "--output", tmp_path, "--file-bytes", "1500", "--threads", "2"]
    chance = random.Random(11)
    killed = 0
    while True:
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        units = tmp_path / "_txnkafka" / "00000" / "units"
        before, step = count(units), chance.randrange(1, 30)
        while process.poll() is None and count(units) < before + step:
            time.sleep(0.001)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        killed += 1
    found = ds.dataset(tmp_path, partitioning="hive").to_table().sort_by("offset").to_pylist()
    offsets = [row["offset"] for row in found if row["partition"] == partition.partition]
    assert offsets == [each["offset"] for each in crash.expected_records(partition, "read_committed")]
    assert killed >= 3


def count(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0
