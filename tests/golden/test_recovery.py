"""Every directory opened by an owner: intact ones stay as they are, killed and broken ones become as after
the broker's own recovery, or better, with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.golden.answers import producer_row
from tests.golden.cases import ISOLATION_LEVELS, Case, case, cases
from tests.golden.consumer import consume
from tests.golden.damage import DAMAGED, INTACT, TABLE, Answer, Row
from tests.golden.directories import ANSWERED, Directory
from tests.unit.storage.reads import read
from txnkafka import LogDir
from txnkafka.config import LogConfig
from txnkafka.env import LocalFileSystem
from txnkafka.env.overlay import OverlayFiles
from txnkafka.logdir.verify import verify
from txnkafka.model import IsolationLevel, ProducerStateEntry
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats import EpochEntry, parse_leader_epoch_checkpoint, parse_producer_snapshot
from txnkafka.storage.log.partition_log import PartitionLog

Json = Any
CLEAN = sorted({(each.case.name, each.name) for each in ANSWERED})  # the undamaged ones
DAY_MS = 86_400_000


def opened(files: OverlayFiles, path: str, now_ms: int) -> DataDirectory:
    return DataDirectory(files, path, lambda _: LogConfig(), now_ms=now_ms)


def overlay() -> OverlayFiles:
    return OverlayFiles(LocalFileSystem())


def contents(files: OverlayFiles, path: str) -> dict[str, bytes]:
    """Return all files below a directory."""
    found = {}
    for entry in files.list(path):
        below = files.join(path, entry.name)
        if entry.is_directory:
            found |= {f"{entry.name}/{name}": content for name, content in contents(files, below).items()}
        elif entry.name != ".lock":
            found[entry.name] = files.read(below, 1 << 30)
    return found


def changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@dataclass(frozen=True)
class Better:
    """An answer that differs from the table in damage.py, which is for readers: an owner truncates or refuses
    where a reader stops. With a ``refusal`` the partition is not opened, and the error has that text; without
    any answer it is the broker's own."""

    why: str
    answer: Answer | None = None
    refusal: str = ""


CUT_AT_88 = Answer("crash_flip_last_payload", (31, 69), last_stable_offset=64, log_end_offset=88)
CUT = "no batch is appended after an invalid one; above the recovery point it is truncated"
OWNER = {
    "crash_bad_magic/logs": Better(CUT, CUT_AT_88),
    "crash_flip_last_offset/logs": Better(CUT, CUT_AT_88),
    "crash_flip_last_offset/recovered": Better(
        "the broker stopped cleanly after it, and then only the tail is checked, as in Kafka",
    ),
    "clean_torn_tail/logs": Better(
        "the broker loses durable data; here the owner of the data has to decide",
        refusal="00000000000000000086.log, position 757, offset 92",
    ),
    "clean_no_snapshot/recovered": Better(
        "valid snapshots without open transactions are trusted, as in Kafka",
    ),
}


each_clean = pytest.mark.parametrize(("name", "directory"), CLEAN)
each_answered = pytest.mark.parametrize("directory", ANSWERED, ids=str)
each_row = pytest.mark.parametrize("row", [row for row in TABLE if "stray" not in row.directory], ids=str)


@each_clean
def test_a_clean_directory_is_opened_as_it_is(name: str, directory: str) -> None:
    files, root = overlay(), str(case(name).root / directory)
    before = contents(files, root)
    found = opened(files, root, case(name).recorded_at_ms)
    assert (found.repairs, found.refused) == ([], {})
    found.close()
    after = contents(files, root)
    for each in changed(before, after):
        if each.endswith(".snapshot"):  # one of no segment is removed, as in Kafka; one at the log end is new
            assert each not in before or each not in after
        else:  # nothing else in a partition; logs of old brokers get the file that they lack
            assert "/" not in each or (each.endswith("leader-epoch-checkpoint") and each not in before)
    _reopened(files, root, after, case(name).recorded_at_ms)


def _reopened(files: OverlayFiles, root: str, before: Mapping[str, bytes], now_ms: int) -> None:
    """Check that opening and closing a directory again changes nothing."""
    again = opened(files, root, now_ms)
    assert again.repairs == []
    again.close()
    assert changed(before, contents(files, root)) == set()


@each_answered
def test_answers_of_an_undamaged_directory(directory: Directory) -> None:
    files, case = overlay(), directory.case
    found = opened(files, directory.path, case.recorded_at_ms)
    log, facts = found.logs[directory.partition], case.facts(directory.partition)
    assert offsets(log) == (facts["log_start_offset"], facts["lso"], facts["high_watermark"])
    for level in ISOLATION_LEVELS:
        records = case.expected_records(directory.partition, level)
        for max_bytes in (1, 1 << 20):
            assert consume(log, level, max_bytes=max_bytes) == (records, None)
    if "describe_producers" in facts:
        expected = remembered(facts["describe_producers"], case.recorded_at_ms)
        if (case.name, *directory.partition) == ("deleted_restarted", "gone", 3):
            # all data is below the log start, where the broker does not look; the batches still exist
            assert expected == []
            assert producers(log) != []
        else:
            assert producers(log) == expected


@each_answered
def test_fetches_of_an_undamaged_directory(directory: Directory) -> None:
    found = opened(overlay(), directory.path, directory.case.recorded_at_ms)
    log = found.logs[directory.partition]
    for fetch in directory.case.facts(directory.partition).get("fetch", ()):
        if fetch["error"] != "NONE":
            continue
        level = IsolationLevel[fetch["isolation"].upper()]
        answer = read(log, fetch["offset"], max_bytes=fetch["partition_max_bytes"], isolation_level=level)
        assert len(answer.records) == fetch["complete_batch_bytes"]
        assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (
            fetch["high_watermark"],
            fetch["last_stable_offset"],
            fetch["log_start_offset"],
        )
        aborted = answer.aborted_transactions
        if aborted is None or fetch["aborted_transactions"] is None:
            assert aborted == fetch["aborted_transactions"]
            continue
        theirs = [(each["producer_id"], each["first_offset"]) for each in fetch["aborted_transactions"]]
        ours = [(each.producer_id, each.first_offset) for each in aborted]
        assert set(ours) <= set(theirs)
        end = fetch.get("last_batch_last_offset", -1)  # both lists may have later transactions
        assert sorted(each for each in ours if each[1] <= end) == sorted(
            each for each in theirs if each[1] <= end
        )


@each_row
def test_broken_directories(row: Row) -> None:
    found = opened(overlay(), row.path, case("crash").recorded_at_ms)
    better = OWNER.get(str(row))
    if better is not None and better.refusal:
        assert better.refusal in str(found.refused[DAMAGED])
        return
    log = found.logs[DAMAGED]
    if better is not None and better.answer is None:
        facts = row.case.facts(DAMAGED)
        assert offsets(log) == (facts["log_start_offset"], facts["lso"], facts["high_watermark"])
        for level in ISOLATION_LEVELS:
            assert consume(log, level) == (row.case.expected_records(DAMAGED, level), None)
        return
    answer = row.answer if better is None or better.answer is None else better.answer
    assert offsets(log) == (answer.log_start_offset, answer.last_stable_offset, answer.log_end_offset)
    for level in ISOLATION_LEVELS:
        records, error = consume(log, level)
        assert records == answer.records(level)
        assert (error is not None) == answer.meets_damage(level)
    if answer is INTACT:
        assert producers(log) == case("crash").facts(DAMAGED)["describe_producers"]


def offsets(log: PartitionLog) -> tuple[int, int, int]:
    return log.log_start_offset, log.last_stable_offset, log.log_end_offset


def remembered(described: list[Json], now_ms: int) -> list[Json]:
    """Return the producers that a broker would still have after a start: without a transaction they expire
    after a day."""
    return [
        each
        for each in described
        if each["current_txn_start_offset"] is not None or each["last_timestamp"] > now_ms - DAY_MS
    ]


def producers(log: PartitionLog) -> list[Json]:
    return sorted(map(producer_row, log.producers.entries()), key=lambda each: each["producer_id"])


# Problems that an owner does not check at its start: closed segments are checked when they are read, and
# files that Kafka trusts are trusted. `txnkafka repair --full` checks all of them.
STILL_WRONG = {
    "clean_bad_index": {"bad-index"},
    "clean_bad_timeindex": {"bad-timeindex"},
    "clean_bad_txnindex": {"bad-txnindex"},
    "clean_flip_last_payload": {"corrupt-batch"},
    "clean_lying_index": {"bad-index"},
    "clean_lying_txnindex": {"txnindex-contradicts-log"},
    "clean_missing_segment": {"missing-segment", "undecided-transaction"},
    "clean_no_partition_metadata": {"missing-partition-metadata"},
    "clean_no_txnindex": {"missing-txnindex"},
    "clean_torn_tail": {  # refused
        "high-watermark-beyond-log-end",
        "recovery-point-beyond-log-end",
        "snapshot-beyond-log-end",
        "torn-tail",
    },
    "clean_torn_txnindex": {"bad-txnindex"},
    "crash_flip_last_epoch": {"leader-epoch-mismatch"},
    "crash_flip_old_payload": {"corrupt-batch"},
    "crash_no_txnindex": {"missing-txnindex"},
    "crash_repeated_tail": {"repeated-batch"},
}
KILLED = [each for each in cases() if each.meta.get("crash_image") and not each.refused]
each_killed = pytest.mark.parametrize("case", KILLED, ids=lambda case: case.name)
# The broker leaves these as they were: it checks nothing below the recovery point.
NOT_REWRITTEN = {"crash_no_txnindex"}


@each_killed
def test_recovery_leaves_the_files_that_the_brokers_own_left(case: Case) -> None:
    assert case.recovered is not None
    files, root = overlay(), str(case.logs)
    opened(files, root, case.recorded_at_ms).close()
    for partition in case.partitions():
        if f"{case.name}/logs" in OWNER and partition == DAMAGED:
            continue
        ours = contents(files, f"{root}/{partition}")
        theirs = contents(files, f"{case.recovered}/{partition}")
        kinds = (".log",) if case.name in NOT_REWRITTEN else (".log", ".txnindex")
        differing = {name for name in changed(ours, theirs) if name.endswith(kinds)}
        assert not any(ours.get(name) or theirs.get(name) for name in differing)  # empty equals absent
        end_offset = case.facts(partition)["high_watermark"]
        if case.name != "crash_flip_last_epoch":  # the next leader's epoch is lower there: all others go
            assert _epochs(ours, end_offset) == _epochs(theirs, end_offset)
        assert _snapshot(ours, end_offset) == _snapshot(theirs, end_offset)


def _epochs(files: dict[str, bytes], end_offset: int) -> list[EpochEntry]:
    """Return the epochs without that of the broker that became the leader after its recovery, and has written
    nothing yet."""
    entries = parse_leader_epoch_checkpoint(files["leader-epoch-checkpoint"])
    return [entry for entry in entries if entry.start_offset < end_offset]


def _snapshot(files: dict[str, bytes], end_offset: int) -> list[ProducerStateEntry]:
    content = files.get(f"{end_offset:020}.snapshot")
    return [] if content is None else sorted(parse_producer_snapshot(content))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_recovered_twice_is_recovered_once(case: Case) -> None:
    """Each owner is killed after opening the directory."""
    files, root = overlay(), str(case.logs)
    now_ms = case.meta["recorded_at_ms"] or 0
    opened(files, root, now_ms)
    die(files)
    if (case.logs / ".kafka_cleanshutdown").exists():  # its files were trusted; from now on it is recovered
        opened(files, root, now_ms)
        die(files)
    once = contents(files, root)
    assert opened(files, root, now_ms).repairs == []
    assert changed(once, contents(files, root)) == set()


def die(files: OverlayFiles) -> None:
    """Kill the process: the files stay as they are, without the lock."""
    files.__dict__["_locked"].clear()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_recovered_directory_is_valid_and_does_not_change(case: Case) -> None:
    files, root = overlay(), str(case.logs)
    now_ms = case.meta["recorded_at_ms"] or 0
    found = opened(files, root, now_ms)
    found.close()
    assert files.exists(f"{root}/.kafka_cleanshutdown") == (not found.refused)
    before = contents(files, root)
    again = opened(files, root, now_ms)
    again.close()
    assert again.repairs == []
    assert again.refused.keys() == found.refused.keys()
    assert changed(before, contents(files, root)) <= {"recovery-point-offset-checkpoint"}
    report = verify(LogDir(root, file_system=files))
    codes = {finding.code for finding in report.findings if finding.severity != "note"}
    assert codes == STILL_WRONG.get(case.name, set())
