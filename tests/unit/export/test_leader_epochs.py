"""An export that continues compares leader epochs: the log may have been truncated, and have grown again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.export.outputs import run_export, visible
from tests.unit.logdir.logs import batch, write_log
from txnkafka import KafkaError


def offsets(output: Path) -> list[int]:
    lines = b"".join(visible(output).values()).splitlines()
    return [json.loads(line)["offset"] for line in lines]


def epoch(base_offset: int, count: int, leader_epoch: int) -> bytes:
    return batch(base_offset, count, partition_leader_epoch=leader_epoch)


def test_a_log_that_was_truncated_and_grew_again_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [epoch(0, 2, 1), epoch(2, 2, 1)]})
    run_export(tmp_path / "data", tmp_path / "out")
    write_log(tmp_path / "data", "t-0", {0: [epoch(0, 2, 1), epoch(2, 3, 2)]})
    with pytest.raises(KafkaError, match="4 with leader epoch 1 and has leader epoch 2 there now"):
        run_export(tmp_path / "data", tmp_path / "out", incremental=True)


@pytest.mark.parametrize(
    ("second_epoch_begins", "is_another"), [(2, True), (3, True), (4, False), (6, False)]
)
def test_a_log_that_grew_again_and_was_compacted_is_refused(
    tmp_path: Path, second_epoch_begins: int, is_another: bool
) -> None:
    """The batch at the exported end is gone; ``leader-epoch-checkpoint`` has the end of its epoch."""
    path = write_log(tmp_path / "data", "t-0", {0: [epoch(0, 2, 1), epoch(2, 2, 1)]})
    run_export(tmp_path / "data", tmp_path / "out")
    write_log(tmp_path / "data", "t-0", {0: [epoch(0, 2, 1), epoch(6, 2, 2)]})
    (path / "leader-epoch-checkpoint").write_text(f"0\n2\n1 0\n2 {second_epoch_begins}\n")
    if is_another:
        says = f"with leader epoch 1, and that ends at offset {second_epoch_begins} now"
        with pytest.raises(KafkaError, match=says):
            run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    else:
        run_export(tmp_path / "data", tmp_path / "out", incremental=True)
        assert offsets(tmp_path / "out") == [0, 1, 2, 3, 6, 7]


def test_an_export_continues_behind_what_was_compacted(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [epoch(0, 2, 1), epoch(2, 2, 1)]})
    run_export(tmp_path / "data", tmp_path / "out")
    write_log(tmp_path / "data", "t-0", {0: [epoch(0, 2, 1), epoch(6, 2, 2)]})
    run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    assert offsets(tmp_path / "out") == [0, 1, 2, 3, 6, 7]
