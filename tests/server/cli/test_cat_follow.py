"""``txnkafka cat --follow``: everything that is appended, once, whatever happens to the log."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.logdir.logs import batch, marker
from txnkafka import LogDirError, logdir
from txnkafka.cli import cat_follow
from txnkafka.logdir import read_ahead
from txnkafka.logdir.partition_files import list_partition

FORMAT = ("--format", r"%t-%p@%o=%s\n")
Step = Callable[[Path], None]


def segment(log_dir: Path, base_offset: int = 0, name: str = "t-0") -> Path:
    (log_dir / name).mkdir(parents=True, exist_ok=True)
    return log_dir / name / f"{base_offset:020}.log"


def appends(*batches: bytes, to: int = 0, name: str = "t-0") -> Step:
    def append(log_dir: Path) -> None:
        with segment(log_dir, to, name).open("ab") as file:
            file.write(b"".join(batches))

    return append


def txn(base_offset: int) -> bytes:
    return batch(base_offset, transactional=True, producer_id=1, producer_epoch=0)


@pytest.fixture
def followed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that follows a directory, performs a step between two rounds, and returns the records
    as ``t-0@offset=value``; Ctrl-C comes behind the last step."""

    def follow(
        *steps: Step, options: tuple[object, ...] = (), status: int = 130, said: str = ""
    ) -> list[str]:
        waiting = list(steps)

        def sleep(_: float) -> None:
            if not waiting:
                raise KeyboardInterrupt
            waiting.pop(0)(tmp_path)

        monkeypatch.setattr(cat_follow.time, "sleep", sleep)
        answer = run("cat", tmp_path, "--follow", *FORMAT, *options)
        assert answer.status == status, answer.stderr
        assert said in answer.stderr
        if not said:
            assert answer.stderr == ""
        return answer.lines

    appends(batch(0))(tmp_path)
    return follow


def records(*offsets: int, name: str = "t-0") -> list[str]:
    return [f"{name}@{offset}={offset}" for offset in offsets]


def nothing(_: Path) -> None:
    pass


def test_what_is_appended_is_printed_once(followed: Callable[..., list[str]]) -> None:
    steps = appends(batch(2)), nothing, appends(batch(4), batch(6)), nothing, nothing
    assert followed(*steps) == records(*range(8))


def test_transactions_are_printed_when_they_are_decided(followed: Callable[..., list[str]]) -> None:
    steps = appends(txn(2)), appends(batch(4)), appends(marker(6, "commit", 1), txn(7)), nothing
    assert followed(*steps, appends(marker(9, "abort", 1), batch(10))) == records(0, 1, 2, 3, 4, 5, 10, 11)


def test_uncommitted_records_are_printed_at_once(followed: Callable[..., list[str]]) -> None:
    lines = followed(appends(txn(2)), nothing, options=("--isolation-level", "read_uncommitted"))
    assert lines == records(0, 1, 2, 3)


def test_segments_are_rolled_and_deleted(followed: Callable[..., list[str]]) -> None:
    def delete(log_dir: Path) -> None:
        segment(log_dir).unlink()

    steps = appends(batch(2), to=2), appends(batch(4), to=4), delete, appends(batch(6), to=4)
    assert followed(*steps) == records(*range(8))


def test_what_retention_took_first_is_said(followed: Callable[..., list[str]]) -> None:
    def delete(log_dir: Path) -> None:
        segment(log_dir).unlink()
        appends(batch(9), to=9)(log_dir)

    lines = followed(delete, nothing, said="t-0: deleted before it was printed: offsets 2 to 8")
    assert lines == records(0, 1, 9, 10)


def test_a_truncation_is_said_and_nothing_is_printed_twice(followed: Callable[..., list[str]]) -> None:
    def truncate(log_dir: Path) -> None:
        segment(log_dir).write_bytes(batch(0))

    steps = appends(batch(2), batch(4)), truncate, appends(batch(2, 1)), nothing
    said = "t-0: the log was truncated, and ends at 2: printing continues there"
    assert followed(*steps, said=said) == records(0, 1, 2, 3, 4, 5, 2)


def test_a_log_that_is_compacted_goes_on(followed: Callable[..., list[str]]) -> None:
    def compact(log_dir: Path) -> None:
        segment(log_dir).write_bytes(batch(3, 1))
        (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 4\n")

    steps = appends(batch(2)), compact, nothing, appends(batch(4))
    assert followed(*steps) == records(0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("listing", "base_offset", "printed"),
    [(1, 0, [1, 4, 5, 6, 7, 8, 9]), (3, 4, [1, 2, 3, 4, 5, 8, 9])],
)
def test_a_segment_that_is_replaced_while_it_is_planned(
    followed: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listing: int,
    base_offset: int,
    printed: list[int],
) -> None:
    """By the cleaner, behind the listing of a round: the next round prints what is there then."""
    calls = 0

    def listed(*arguments: Any) -> Any:
        nonlocal calls
        found = list_partition(*arguments)
        calls += 1
        if calls == listing:
            segment(tmp_path, base_offset).write_bytes(batch(base_offset))
        return found

    def roll(log_dir: Path) -> None:
        appends(batch(6), to=4)(log_dir)
        appends(batch(8), to=8)(log_dir)
        (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 8\n")

    appends(batch(2))(tmp_path)
    appends(batch(4), to=4)(tmp_path)
    monkeypatch.setattr(logdir.log_view, "list_partition", listed)
    assert followed(roll, nothing, options=("--start-offset", 1)) == records(*printed)


def test_half_a_batch_is_waited_for(followed: Callable[..., list[str]]) -> None:
    whole = batch(2)
    assert followed(appends(whole[:50]), nothing, appends(whole[50:]), nothing) == records(0, 1, 2, 3)


def test_new_partitions_are_printed_from_their_beginning(followed: Callable[..., list[str]]) -> None:
    steps = appends(batch(0), name="t-1"), appends(batch(2), name="t-1")
    assert followed(*steps, options=("-o", -1)) == [*records(1), *records(0, 1, 2, 3, name="t-1")]


def test_a_topic_that_is_created_again(followed: Callable[..., list[str]], tmp_path: Path) -> None:
    def create(topic_id: str) -> Step:
        def written(log_dir: Path) -> None:
            segment(log_dir).write_bytes(batch(0))
            (log_dir / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")

        return written

    create("LO2dyRT9TU2kZpbmI5Tv5Q")(tmp_path)
    lines = followed(create("AO2dyRT9TU2kZpbmI5Tv5Q"), nothing, said="t-0 was recreated")
    assert lines == records(0, 1, 0, 1)


def test_a_start_time_that_has_not_come_yet(followed: Callable[..., list[str]]) -> None:
    steps = appends(batch(2)), appends(batch(4)), nothing
    assert followed(*steps, options=("--start-time", "1970-01-01T00:00:01.004Z")) == records(4, 5)


def test_where_and_max_records(followed: Callable[..., list[str]]) -> None:
    steps = appends(batch(2)), appends(batch(4), batch(6)), nothing
    options = ("--where", "offset != 2", "-n", 4)
    assert followed(*steps, options=options, status=0) == records(0, 1, 3, 4)


def damaged(base_offset: int) -> bytes:
    whole = bytearray(batch(base_offset))
    whole[-1] ^= 1
    return bytes(whole)


def test_damage_ends_a_partition_and_no_other(followed: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    steps = appends(damaged(2), batch(4)), appends(batch(0), name="t-1"), nothing
    lines = followed(*steps, said="--on-corrupt skip reads on after it")
    assert lines == [*records(0, 1), *records(0, 1, name="t-1")]


def test_damage_at_the_end_is_said_when_it_stays(followed: Callable[..., list[str]]) -> None:
    steps = appends(damaged(2)), *[nothing] * (cat_follow.PATIENCE - 1)
    assert followed(*steps) == records(0, 1)
    assert followed(*steps, nothing, nothing, said="[corrupt-tail]") == records(0, 1)


def test_a_plan_that_was_printed_in_part_is_not_printed_again(
    followed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [LogDirError("the segment is gone")]

    def read_unit(segment: Any, unit: Any, *rest: Any) -> Any:
        if unit.start_offset == 4 and failures:
            raise failures.pop()
        return logdir.read_unit(segment, unit, *rest)

    monkeypatch.setattr(read_ahead, "read_unit", read_unit)

    def roll(log_dir: Path) -> None:
        appends(batch(2), to=2)(log_dir)
        appends(batch(4), to=4)(log_dir)

    lines = followed(nothing, roll, nothing, nothing, said="the segment is gone")
    assert lines == records(0, 1, 2, 3, 4, 5)


def test_a_process_ends_with_the_status_of_ctrl_c(tmp_path: Path) -> None:
    appends(batch(0))(tmp_path)
    command = [sys.executable, "-m", "txnkafka", "cat", str(tmp_path), "--follow", *FORMAT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert [process.stdout.readline() for _ in range(2)] == ["t-0@0=0\n", "t-0@1=1\n"]
        appends(batch(2))(tmp_path)
        assert [process.stdout.readline() for _ in range(2)] == ["t-0@2=2\n", "t-0@3=3\n"]
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == process.stderr.read() == ""
    assert process.returncode == 130
