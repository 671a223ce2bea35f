"""The time by which a directory is judged: that of its files, unless a broker has locked it or --now is
given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.coordinator_log import transaction_key, transaction_value
from tests.unit.logdir.logs import batch, write_log
from txnkafka.env import LocalDataFiles
from txnkafka.logdir import LogDir
from txnkafka.logdir.clock import AGREEMENT_MS, DirectoryClock, Moment

HOUR_MS = 3_600_000
WRITTEN_MS = 1_700_000_000_000  # the coordinator's last write
TODAY_MS = WRITTEN_MS + 1000 * HOUR_MS
CHECKPOINT = "replication-offset-checkpoint"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A transaction is open in a-0; every file has the time of the copy."""
    data = batch(0, producer_id=7, producer_epoch=0, transactional=True)  # in 1970
    write_log(tmp_path, "a-0", {0: [data]})
    value = transaction_value(7, state=1, topics={"a": [0]}, start_ms=WRITTEN_MS - 5, update_ms=WRITTEN_MS)
    record = PlainRecord(transaction_key("shop"), value)
    write_log(tmp_path, "__transaction_state-0", {0: [Batch(records=[record]).encode()]})
    (tmp_path / CHECKPOINT).write_text("0\n0\n")
    touch(tmp_path, TODAY_MS)
    return tmp_path


def touch(path: Path, time_ms: int) -> None:
    for each in [path, *path.rglob("*")]:
        os.utime(each, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def at(directory: Path, override_ms: int | None = None) -> Moment:
    log_dir = LogDir(directory)
    return DirectoryClock(log_dir, TODAY_MS, override_ms).at(log_dir.partition("a", 0))


def test_what_the_coordinator_wrote_last(directory: Path) -> None:
    assert at(directory) == (WRITTEN_MS, "the newest time in this directory; --now overrides")


def test_an_end_marker_may_be_newer(directory: Path) -> None:
    marker = end_marker(0, base_offset=2, producer_id=8, producer_epoch=0, timestamp=WRITTEN_MS + 9)
    log = directory / "a-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + marker)
    assert at(directory).now_ms == WRITTEN_MS + 9


@pytest.mark.parametrize(
    ("marker", "expected_ms"), [(b'"brokerEpoch":1', 5000), (b'"repairedAfterCleanStop":true', 0)]
)
def test_files_that_a_repair_wrote_have_its_time(directory: Path, marker: bytes, expected_ms: int) -> None:
    (directory / ".kafka_cleanshutdown").write_bytes(b'{"version":0,%s}' % marker)
    touch(directory, WRITTEN_MS + 5000)
    assert at(directory).now_ms == WRITTEN_MS + expected_ms


def test_a_producer_may_write_any_time(directory: Path) -> None:
    data = Batch(records=[PlainRecord(b"", b"", TODAY_MS)], base_offset=2).encode()
    log = directory / "a-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + data)
    assert at(directory).now_ms == WRITTEN_MS


@pytest.mark.parametrize(("late_ms", "believed"), [(AGREEMENT_MS, True), (AGREEMENT_MS + 1, False)])
def test_a_checkpoint_counts_where_files_have_the_times_of_the_broker(
    directory: Path, late_ms: int, believed: bool
) -> None:
    """An idle broker wrote it three hours after the coordinator's last write."""
    touch(directory / "__transaction_state-0", WRITTEN_MS + late_ms)
    touch(directory / CHECKPOINT, WRITTEN_MS + 3 * HOUR_MS)
    assert at(directory).now_ms == WRITTEN_MS + (3 * HOUR_MS if believed else 0)


def test_a_given_time_replaces_the_clock(directory: Path) -> None:
    assert at(directory, 5) == (5, "as --now says")


def test_a_broker_that_runs_has_the_machines_clock(directory: Path) -> None:
    lock = LocalDataFiles().lock(str(directory / ".lock"))
    assert lock is not None
    assert at(directory) == (TODAY_MS, "by this machine's clock: a broker has locked the directory")
    lock.close()
    assert at(directory).now_ms == WRITTEN_MS


def test_no_time_at_all(tmp_path: Path) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0, producer_id=7, producer_epoch=0, transactional=True)]})
    assert at(tmp_path) == (TODAY_MS, "by this machine's clock: no broker's time is in this directory")


def test_the_directories_are_looked_at_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each partition: with thousands of them, that would be millions of looks."""
    looks: list[LogDir] = []
    whole = LogDir.sources.fget  # type: ignore[attr-defined]

    def sources(self: LogDir) -> object:
        looks.append(self)
        return whole(self)

    monkeypatch.setattr(LogDir, "sources", property(sources))
    log_dir = LogDir(directory)
    clock = DirectoryClock(log_dir, TODAY_MS)
    first = clock.at(log_dir.partition("a", 0))
    once = len(looks)
    assert [clock.at(log_dir.partition("a", 0)) for _ in range(9)] == [first] * 9
    assert len(looks) == once
