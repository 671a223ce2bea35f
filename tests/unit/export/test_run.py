"""An export over several runs: where it resumes, what it refuses, in which order units count."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord, legacy_entry, legacy_wrapper
from tests.unit.export.outputs import run_export, visible
from tests.unit.logdir.logs import batch, write_log
from txnkafka import KafkaError, LogDirError
from txnkafka.env import LocalDataFiles
from txnkafka.env.data_files import LocalDataFile
from txnkafka.export import ExportOptions, LocalEngine, StagedUnit, UnitTask, stage_unit
from txnkafka.export.manifest import MANIFEST, Manifest


def offsets(output: Path) -> list[int]:
    lines = b"".join(visible(output).values()).splitlines()
    return [json.loads(line)["offset"] for line in lines]


def backwards(tasks: Iterable[UnitTask]) -> list[StagedUnit]:
    return [stage_unit(LocalDataFiles(), task) for task in reversed(list(tasks))]


def staged_and_killed(tasks: Iterable[UnitTask]) -> list[StagedUnit]:
    backwards(tasks)
    raise KeyboardInterrupt


def never(tasks: Iterable[UnitTask]) -> list[StagedUnit]:
    assert list(tasks) == []
    return []


def damaged_log(root: Path) -> Path:
    broken = bytearray(batch(2))
    broken[-1] ^= 1
    write_log(root, "t-0", {0: [batch(0), bytes(broken), batch(4)], 6: [batch(6)]})
    return root


def test_any_order_gives_the_same(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)], 4: [batch(4)]})
    run_export(tmp_path / "data", tmp_path / "one", file_bytes=1)
    run_export(tmp_path / "data", tmp_path / "other", file_bytes=1, engine=backwards)
    assert offsets(tmp_path / "one") == list(range(6))
    assert visible(tmp_path / "one") == visible(tmp_path / "other")


@pytest.mark.parametrize("threads", [1, 3])
def test_so_many_at_once_and_how_far_it_is(tmp_path: Path, threads: int) -> None:
    shown: list[tuple[int, int]] = []
    log = write_log(tmp_path / "data", "t-0", {0: [batch(2 * i) for i in range(9)]}) / f"{0:020}.log"
    run_export(
        tmp_path / "data",
        tmp_path / "out",
        file_bytes=1,
        engine=LocalEngine(LocalDataFiles(), threads),
        progress=lambda done, total: shown.append((done, total)),
    )
    assert offsets(tmp_path / "out") == list(range(18))
    size = log.stat().st_size
    assert (len(shown), shown[-1], shown == sorted(shown)) == (9, (size, size), True)


@pytest.mark.parametrize("engine", [None, backwards])
def test_nothing_behind_damage_counts_whatever_was_staged_first(tmp_path: Path, engine: object) -> None:
    log_dir = damaged_log(tmp_path / "data")
    report = run_export(log_dir, tmp_path / "out", file_bytes=1, engine=engine)
    assert offsets(tmp_path / "out") == [0, 1]
    (stopped,) = report.stopped
    assert "offset 2" in stopped
    assert not report.is_sound
    again = run_export(log_dir, tmp_path / "out", file_bytes=1, engine=never)
    assert (again.stopped, again.rows) == (report.stopped, 2)


@pytest.mark.parametrize("bound", ["start_time", "end_time"])
def test_damage_in_the_search_for_a_time_is_of_its_partition_only(tmp_path: Path, bound: str) -> None:
    log_dir = damaged_log(tmp_path / "data")
    write_log(log_dir, "u-0", {0: [batch(0), batch(2), batch(4)]})
    report = run_export(log_dir, tmp_path / "out", **{bound: 1003})
    assert not report.is_sound
    assert offsets(tmp_path / "out") == ([3, 4, 5] if bound == "start_time" else [0, 1, 0, 1, 2])
    write_log(log_dir, "t-0", {0: [batch(0), batch(2), batch(4)], 6: [batch(6)]})
    report = run_export(log_dir, tmp_path / "out", incremental=True, **{bound: 1003})
    assert report.is_sound
    wanted = [3, 4, 5, 3, 4, 5, 6, 7] if bound == "start_time" else [0, 1, 0, 1, 2, 2]
    assert sorted(offsets(tmp_path / "out")) == sorted(wanted)


def test_an_export_continues_after_a_repair(tmp_path: Path) -> None:
    log_dir = damaged_log(tmp_path / "data")
    run_export(log_dir, tmp_path / "out", file_bytes=1)
    still = run_export(log_dir, tmp_path / "out", file_bytes=1, incremental=True)
    assert (len(still.stopped), offsets(tmp_path / "out")) == (1, [0, 1])
    write_log(log_dir, "t-0", {0: [batch(0), batch(2), batch(4)]})
    report = run_export(log_dir, tmp_path / "out", file_bytes=1, incremental=True)
    assert report.is_sound
    assert offsets(tmp_path / "out") == list(range(8))


@pytest.mark.parametrize("first", [0, 10])
def test_an_export_continues_with_all_of_a_repaired_wrapper(tmp_path: Path, first: int) -> None:
    """The header of a compressed set of magic 0 or 1 has the offset of its last record only."""
    wrappers = [
        legacy_wrapper([legacy_entry(i, b"k", b"v") for i in range(10)], last, codec=1) for last in (9, 19)
    ]
    damaged = wrappers.copy()
    damaged[first // 10] = damaged[first // 10][:-1] + b"\1"
    write_log(tmp_path / "data", "t-0", {0: [*damaged, batch(20)], 22: [batch(22)]})
    report = run_export(tmp_path / "data", tmp_path / "out")
    (stopped,) = report.stopped
    assert f"offset {first})" in stopped
    assert offsets(tmp_path / "out") == list(range(first))
    write_log(tmp_path / "data", "t-0", {0: [*wrappers, batch(20)], 22: [batch(22)]})
    assert run_export(tmp_path / "data", tmp_path / "out", incremental=True).is_sound
    assert offsets(tmp_path / "out") == list(range(24))


def test_what_was_staged_is_not_read_again(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)], 4: [batch(4)]})
    with pytest.raises(KeyboardInterrupt):
        run_export(tmp_path / "data", tmp_path / "out", file_bytes=1, engine=staged_and_killed)
    assert visible(tmp_path / "out") == {}
    report = run_export(tmp_path / "data", tmp_path / "out", file_bytes=1, engine=never)
    assert (report.new_rows, offsets(tmp_path / "out")) == (6, list(range(6)))
    assert not (tmp_path / "out" / MANIFEST / "00000" / "staged").exists()


class FullDisk(LocalDataFiles):
    """Has no room for the bytes of records."""

    def create(self, path: str) -> LocalDataFile:
        made = super().create(path)
        if path.endswith(".jsonl.staged"):
            made.write(0, [b"half a line"])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return made


def test_what_a_failed_attempt_has_written_is_removed(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)]})
    full = FullDisk()
    with pytest.raises(OSError, match="No space left"):
        run_export(tmp_path / "data", tmp_path / "out", engine=LocalEngine(full), files=full)
    assert list((tmp_path / "out" / MANIFEST / "00000" / "staged").iterdir()) == []
    run_export(tmp_path / "data", tmp_path / "out")
    assert offsets(tmp_path / "out") == [0, 1, 2, 3]


def test_a_second_attempt_at_a_unit_counts_once(tmp_path: Path) -> None:
    def twice(tasks: Iterable[UnitTask]) -> list[StagedUnit]:
        return [stage_unit(LocalDataFiles(), task) for task in list(tasks) * 2]

    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)]})
    report = run_export(tmp_path / "data", tmp_path / "out", file_bytes=1, engine=twice)
    assert (report.rows, offsets(tmp_path / "out")) == (4, list(range(4)))


@pytest.mark.parametrize("change", ["other", "gone", "shorter"])
def test_a_log_that_changed_below_the_plan_is_refused(tmp_path: Path, change: str) -> None:
    data = tmp_path / "data"
    path = write_log(data, "t-0", {0: [batch(0), batch(2)], 4: [batch(4)]}) / f"{0:020}.log"
    with pytest.raises(KeyboardInterrupt):
        run_export(data, tmp_path / "out", engine=interrupted)
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(batch(0) if change == "shorter" else batch(0, 1) + batch(3, 1) + bytes(99))
    with pytest.raises(KafkaError, match=r"restore it|has changed since the export was planned"):
        run_export(data, tmp_path / "out")
    assert visible(tmp_path / "out") == {}


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ("length", "is not what it was when the read was planned"),
        ("end", "has changed since the export was planned"),
    ],
)
def test_a_large_unit_that_changed_is_refused(tmp_path: Path, changed: str, text: str) -> None:
    """The change is at its end, or is detected only by reading. It is no damaged batch, at which an export
    may stop."""
    data = tmp_path / "data"
    batches = [batch(500 * i, 500) for i in range(5)]
    path = write_log(data, "t-0", {0: batches}) / f"{0:020}.log"
    with pytest.raises(KeyboardInterrupt):
        run_export(data, tmp_path / "out", engine=interrupted)
    content = bytearray(b"".join(batches))
    length = len(batches[0]) + len(batches[1]) + 8
    assert 4096 < length < len(content) - 4096
    if changed == "length":
        content[length : length + 4] = bytes(4)
    else:
        content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(KafkaError, match=text):
        run_export(data, tmp_path / "out")
    assert visible(tmp_path / "out") == {}


def interrupted(tasks: Iterable[UnitTask]) -> list[StagedUnit]:
    raise KeyboardInterrupt


def test_what_is_appended_after_the_plan_waits_for_the_next_round(tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = write_log(data, "t-0", {0: [batch(0)]}) / f"{0:020}.log"
    with pytest.raises(KeyboardInterrupt):
        run_export(data, tmp_path / "out", engine=interrupted)
    path.write_bytes(path.read_bytes() + batch(2))
    assert run_export(data, tmp_path / "out").rows == 2
    assert run_export(data, tmp_path / "out", incremental=True).rows == 2
    assert offsets(tmp_path / "out") == list(range(4))


def test_a_partition_that_came_later_is_added(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0)]})
    run_export(tmp_path / "data", tmp_path / "out")
    write_log(tmp_path / "data", "t-1", {0: [batch(0)]})
    report = run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    assert (report.round, report.rows) == (1, 2)
    assert offsets(tmp_path / "out") == [0, 1, 0, 1]


def test_records_that_were_deleted_before_they_were_exported(tmp_path: Path) -> None:
    path = write_log(tmp_path / "data", "t-0", {0: [batch(0)]})
    run_export(tmp_path / "data", tmp_path / "out")
    (path / f"{0:020}.log").unlink()
    write_log(tmp_path / "data", "t-0", {6: [batch(6)]})
    report = run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    (finding,) = report.findings
    assert finding.message == "deleted before it was exported: offsets 2 to 5"
    assert not report.is_sound
    assert offsets(tmp_path / "out") == [0, 1, 6, 7]


def test_what_was_not_wanted_may_be_deleted(tmp_path: Path) -> None:
    path = write_log(tmp_path / "data", "t-0", {0: [batch(0)], 2: [batch(2)]})
    run_export(tmp_path / "data", tmp_path / "out", end_offset=1)
    (path / f"{0:020}.log").unlink()
    report = run_export(tmp_path / "data", tmp_path / "out", incremental=True, end_offset=1)
    assert (report.findings, offsets(tmp_path / "out")) == ([], [0])


@pytest.mark.parametrize("bound", [{"end_time": 1002}, {"end_offset": 2}])
def test_an_export_that_reached_its_end_is_complete(tmp_path: Path, bound: dict[str, int]) -> None:
    path = write_log(tmp_path / "data", "t-0", {0: [batch(0)], 2: [batch(2)]})
    run_export(tmp_path / "data", tmp_path / "out", **bound)
    for name in path.iterdir():
        name.unlink()
    early = Batch(records=[PlainRecord(b"k", b"v", 7)], base_offset=8).encode()
    write_log(tmp_path / "data", "t-0", {8: [early, batch(9)]})
    report = run_export(tmp_path / "data", tmp_path / "out", incremental=True, **bound)
    assert (report.findings, offsets(tmp_path / "out")) == ([], [0, 1])


def test_damage_in_what_was_exported_stops_no_later_round(tmp_path: Path) -> None:
    log_dir = tmp_path / "data"
    write_log(log_dir, "t-0", {0: [batch(0), batch(2)], 4: [batch(4)]})
    run_export(log_dir, tmp_path / "out", start_time=1002)
    damaged_log(log_dir)
    report = run_export(log_dir, tmp_path / "out", start_time=1002, incremental=True)
    assert report.is_sound
    assert offsets(tmp_path / "out") == [2, 3, 4, 5, 6, 7]


def test_a_log_that_was_truncated_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)]})
    run_export(tmp_path / "data", tmp_path / "out")
    write_log(tmp_path / "data", "t-0", {0: [batch(0)]})
    with pytest.raises(KafkaError, match="was exported up to offset 4 and now ends at 2"):
        run_export(tmp_path / "data", tmp_path / "out", incremental=True)


def test_a_topic_that_was_created_again_is_refused(tmp_path: Path) -> None:
    path = write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)]})
    (path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    run_export(tmp_path / "data", tmp_path / "out")
    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2), batch(4)]})
    run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    (path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n")
    write_log(tmp_path / "data", "t-0", {0: [batch(0, 9)]})
    with pytest.raises(KafkaError, match="id was AAAAAAAAAAAAAAAAAAAAAQ and is AAAAAAAAAAAAAAAAAAAAAg now"):
        run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    assert offsets(tmp_path / "out") == list(range(6))


def test_nothing_new_is_no_round_whatever_is_found(tmp_path: Path) -> None:
    path = write_log(tmp_path / "data", "t-0", {0: [batch(0), b"torn"]})
    first = run_export(tmp_path / "data", tmp_path / "out")
    again = run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    assert again == first._replace(new_rows=0)
    assert [each.code for each in again.findings] == ["torn-tail"]
    (path / f"{0:020}.log").write_bytes(batch(0) + bytes(7))
    other = run_export(tmp_path / "data", tmp_path / "out", incremental=True)
    assert (other.round, len(other.findings)) == (0, 2)


def test_the_output_directory_may_move_in_between(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)]})
    with pytest.raises(KeyboardInterrupt):
        run_export(tmp_path / "data", tmp_path / "out", file_bytes=1, engine=staged_and_killed)
    (tmp_path / "out").rename(tmp_path / "moved")
    run_export(tmp_path / "data", tmp_path / "moved", file_bytes=1, engine=never)
    assert offsets(tmp_path / "moved") == list(range(4))


def test_one_at_a_time(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0)]})
    run_export(tmp_path / "data", tmp_path / "out")
    lock = LocalDataFiles().lock(str(tmp_path / "out" / MANIFEST / "lock"))
    assert lock is not None
    with pytest.raises(KafkaError, match=r"another export into .* is running"):
        run_export(tmp_path / "data", tmp_path / "out")
    lock.close()
    run_export(tmp_path / "data", tmp_path / "out")


def test_a_file_of_the_export_that_is_gone_while_it_is_not_finished(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0), batch(2)]})

    def first_only(tasks: Iterable[UnitTask]) -> Iterable[StagedUnit]:
        yield stage_unit(LocalDataFiles(), next(iter(tasks)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_export(tmp_path / "data", tmp_path / "out", file_bytes=1, engine=first_only)
    (name,) = visible(tmp_path / "out")
    (tmp_path / "out" / name).unlink()
    with pytest.raises(KafkaError, match="a file of this export, is gone"):
        run_export(tmp_path / "data", tmp_path / "out", file_bytes=1)


def test_a_log_that_cannot_be_read_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(LogDirError):
        run_export(tmp_path / "nothing", tmp_path / "out")


def test_rounds_have_the_order_of_their_numbers(tmp_path: Path) -> None:
    """From round 100000 on their names are longer than five digits."""
    write_log(tmp_path / "data", "t-0", {0: [batch(0)]})
    run_export(tmp_path / "data", tmp_path / "out")
    folder = tmp_path / "out" / MANIFEST
    for number in (9, 10000, 99999, 100000):
        shutil.copytree(folder / "00000", folder / f"{number:05}")
    options = ExportOptions(to="jsonl", paths=(str(tmp_path / "data"),))
    with closing(Manifest(LocalDataFiles(), str(tmp_path / "out"), options)) as manifest:
        assert [past.number for past in manifest.rounds()] == [0, 9, 10000, 99999, 100000]


def test_the_longest_topic_has_files(tmp_path: Path) -> None:
    names = ["t" * 248 + end for end in "ab"]
    for name in names:
        write_log(tmp_path / "data", f"{name}-0", {0: [batch(0)]})
    for to in ("jsonl", "parquet"):
        output = tmp_path / to
        run_export(tmp_path / "data", output, to=to, partition_by=())
        assert len(visible(output)) == 2


def test_an_export_without_a_column_in_its_files_is_refused() -> None:
    with pytest.raises(ValueError, match="no column is left for the files"):
        ExportOptions(to="parquet", paths=("x",), columns=("topic",), partition_by=("topic",))
