"""A hand-over finds and mends every derived file that Apache Kafka would believe; a check changes nothing."""

from __future__ import annotations

import pytest

from tests.conftest import sampled
from tests.unit.broker.node import NOW, Node, Producer
from tests.unit.handover.stories import (
    COMMITTED_VALUES,
    LIES,
    PARTITION,
    SMALL,
    Lie,
    contents,
    damaged,
    replaced,
    story,
    told,
)
from txnkafka import LogDir
from txnkafka._core.scan import scan
from txnkafka.coordinator.registry.metadata_records import partition, topic
from txnkafka.env.overlay import OverlayFiles
from txnkafka.errors import LogDirError
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import HandOver, Owner
from txnkafka.testing.memory_files import MemoryFiles

CLEAN = "/data/.kafka_cleanshutdown"
PRODUCER_IDS = bytes([1, 15, 0])  # frame version, api key, record version


@pytest.fixture(scope="module")
def written() -> MemoryFiles:
    files = MemoryFiles()
    story(files)
    return files


def checked(files: MemoryFiles | OverlayFiles, to: Owner = Owner.KAFKA) -> HandOver:
    return check(files, "/data", to, now_ms=NOW)


def handed(files: MemoryFiles | OverlayFiles, to: Owner = Owner.KAFKA) -> HandOver:
    return hand_over(files, "/data", to, now_ms=NOW)


def test_the_story_has_closed_segments_and_aborts(written: MemoryFiles) -> None:
    names = [entry.name for entry in written.list(f"/data/{PARTITION}") if entry.size]
    for kind in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        assert sum(name.endswith(kind) for name in names) > 3, kind


@pytest.mark.parametrize("to", Owner)
def test_a_sound_directory_is_ready_as_it_is(written: MemoryFiles, to: Owner) -> None:
    before = contents(written)
    report = checked(written, to)
    assert (report.steps, report.findings, report.is_ready) == ([], [], True)
    assert contents(written) == before
    assert handed(written, to).is_ready
    assert contents(written) == before


@pytest.mark.parametrize("lie", sampled(LIES, every=5), ids=lambda lie: f"{lie[0]}-{lie[1].__name__}")
def test_every_lie_is_found_and_mended(written: MemoryFiles, lie: Lie) -> None:
    before, count = contents(written), 0
    for path in told(written, lie):
        count += 1
        name, lying = path.rpartition("/")[2], contents(written)
        planned = checked(written)
        assert contents(written) == lying
        assert (planned.is_ready, planned.is_possible) == (False, True)
        assert any(name in step.text for step in planned.steps)
        done = handed(written)
        assert [step.text for step in done.steps] == [as_done(step.text) for step in planned.steps]
        assert (done.is_ready, done.findings) == (True, [])
        again = checked(written)
        assert (again.is_ready, again.steps) == (True, [])
        mended = contents(written)
        assert {each for each in before if mended.get(each) != before[each]} <= {path}
        if name.endswith(
            (".txnindex", ".snapshot", "checkpoint", ".metadata")
        ):  # of indexes the interval may differ
            assert mended.get(path, before[path]) == before[path]
        restore(written, before)
    assert count


@pytest.mark.parametrize("kind", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_all_files_of_a_kind_are_missing(written: MemoryFiles, kind: str) -> None:
    before = contents(written)
    gone = {name for name in before if name.endswith(kind) and PARTITION in name}
    for name in gone:
        written.remove(name)
    assert not checked(written).is_ready
    assert handed(written).is_ready
    assert checked(written).is_ready
    newest = max(gone)
    assert newest in contents(written)
    restore(written, before)


def as_done(planned: str) -> str:
    assert " is removed" not in planned
    return planned.replace(" would be ", " is ")


def forget_producer_ids(files: MemoryFiles) -> None:
    """The metadata log without its records of producer ids, but with the rest."""
    path = f"/data/__cluster_metadata-0/{0:020}.log"
    content = files.read(path, 1 << 20)
    kept, offset = bytearray(), 0
    for i, position in enumerate((index := scan(content)).position):
        batch = bytearray(content[position : position + index.size[i]])
        if PRODUCER_IDS not in batch:
            batch[:8] = offset.to_bytes(8, "big")
            offset += index.last_offset[i] - index.base_offset[i] + 1
            kept += batch
    assert len(kept) < len(content)
    replaced(files, path, bytes(kept))


def restore(files: MemoryFiles, wanted: dict[str, bytes]) -> None:
    there = contents(files)
    for path in there.keys() - wanted.keys():
        files.remove(path)
    for path, content in wanted.items():
        if there.get(path) != content:
            if path in there:
                replaced(files, path, content)
            else:
                file = files.create(path)
                file.write(0, [content])
                file.close()


def committed(files: MemoryFiles) -> list[bytes]:
    view = LogDir("/data", file_system=files).partition("t", 0)
    return [record.value or b"" for record in view.records()]


def test_an_unclean_directory_is_recovered_first(written: MemoryFiles) -> None:
    before = contents(written)
    written.remove(CLEAN)
    planned = checked(written)
    assert [step.text for step in planned.steps] == [
        "the directory would be recovered: it was not stopped cleanly"
    ]
    assert not written.exists(CLEAN)
    assert handed(written).is_ready
    assert written.exists(CLEAN)
    assert committed(written) == COMMITTED_VALUES
    restore(written, before)


def test_what_recovery_cuts_off_is_said(written: MemoryFiles) -> None:
    before = contents(written)
    path = min(name for name in before if name.startswith(f"/data/{PARTITION}/") and name.endswith(".log"))
    log = before[path]
    replaced(written, path, log[:200] + bytes([log[200] ^ 1]) + log[201:])
    replaced(written, "/data/recovery-point-offset-checkpoint", b"0\n0\n")
    written.remove(CLEAN)
    planned, done = checked(written), handed(written)
    assert done.is_ready
    for report, verb in ((planned, "would be"), (done, "is")):
        of_log = [step.text for step in report.steps if step.partition == PARTITION]
        assert any(text.startswith(f"{path} {verb} cut at position ") for text in of_log), of_log
    assert [step.partition for step in planned.steps] == [step.partition for step in done.steps]
    restore(written, before)


def test_all_lies_at_once_and_no_clean_stop(written: MemoryFiles) -> None:
    before = contents(written)
    damaged(written)
    written.remove(CLEAN)
    assert not checked(written).is_ready
    assert handed(written).is_ready
    assert checked(written).is_ready
    assert committed(written) == COMMITTED_VALUES
    restore(written, before)


@pytest.mark.parametrize("marker", ["clean", "killed"])
def test_a_damaged_log_is_left_as_it_is(written: MemoryFiles, marker: str) -> None:
    before = contents(written)
    path = f"/data/{PARTITION}/{0:020}.log"
    log = bytearray(before[path])
    log[-1] ^= 1
    replaced(written, path, bytes(log))
    if marker == "killed":
        written.remove(CLEAN)
    damage = contents(written)
    for run in (checked, handed):
        report = run(written)
        assert (report.is_possible, report.is_ready) == (False, False)
        codes = {finding.code for finding in report.findings}
        assert codes <= {"corrupt-batch", "refused-partition", "undecided-transaction"}
        assert contents(written) == damage
    restore(written, before)


@pytest.mark.parametrize("marker", ["clean", "killed"])
def test_a_log_start_beyond_the_log_end_is_left_as_it_is(written: MemoryFiles, marker: str) -> None:
    """The whole log would be deleted."""
    before = contents(written)
    replaced(written, "/data/log-start-offset-checkpoint", b"0\n1\nt 0 970\n")
    if marker == "killed":
        written.remove(CLEAN)
    lying = contents(written)
    for run in (checked, handed):
        (finding,) = run(written).findings
        assert finding.code == ("log-start-beyond-log-end" if marker == "clean" else "refused-partition")
        assert "orrect the " in finding.remedy
        assert contents(written) == lying
    restore(written, before)


def test_a_damaged_metadata_log_is_left_as_it_is(written: MemoryFiles) -> None:
    """Apache Kafka would cut it off, and put all partitions aside."""
    before = contents(written)
    path = f"/data/__cluster_metadata-0/{0:020}.log"
    log = bytearray(before[path])
    log[len(log) // 2] ^= 1
    replaced(written, path, bytes(log))
    damage = contents(written)
    report = handed(written)
    assert [finding.code for finding in report.findings] == ["bad-metadata-log"]
    assert contents(written) == damage
    restore(written, before)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"leaderEpoch": 1', b'"leaderEpoch": 2147483647'),
        (b'"leaderEpoch": 1', b'"leaderEpoch": true'),
        (b'"leaderId": 1', b'"leaderId": "x"'),
        (b'"votedId": -1, ', b""),
        (b'"currentVoters": [{"voterId": 1}], ', b""),
        (b'"data_version": 0', b'"data_version": 1'),
        (b'"data_version": 0', b'"data_version": 9'),
        (b', "data_version": 0', b""),
    ],
)
def test_a_quorum_state_with_which_no_kafka_starts(written: MemoryFiles, old: bytes, new: bytes) -> None:
    before = contents(written)
    path = "/data/__cluster_metadata-0/quorum-state"
    assert old in before[path]
    replaced(written, path, before[path].replace(old, new))
    assert [finding.code for finding in checked(written).findings] == ["bad-quorum-state"]
    replaced(written, path, None)
    assert checked(written).is_ready
    restore(written, before)


METADATA = "/data/__cluster_metadata-0"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"/data/{PARTITION}/abc.log", "foreign-file"),
        (f"/data/{PARTITION}/77.log", "foreign-file"),
        (f"/data/{PARTITION}/abc.snapshot", "foreign-file"),
        (f"/data/{PARTITION}/abc.timeindex.swap", "foreign-file"),
        (f"/data/{PARTITION}/abc.index.cleaned", "foreign-file"),
        (f"{METADATA}/abc.index", "foreign-file"),
        (f"{METADATA}/abc.checkpoint", "foreign-file"),
        (f"{METADATA}/{3:020}.checkpoint.deleted", "foreign-file"),
        (f"{METADATA}/leader-epoch-checkpoint", "bad-metadata-file"),
        (f"{METADATA}/partition.metadata", "bad-metadata-file"),
    ],
)
def test_a_file_with_which_no_kafka_starts(written: MemoryFiles, path: str, code: str) -> None:
    before = contents(written)
    if path not in before:
        written.create(path).close()
    replaced(written, path, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABg")
    assert [(each.code, each.file) for each in checked(written).findings] == [(code, path)]
    assert checked(written, Owner.TXNKAFKA).is_ready
    replaced(written, path, None)
    assert checked(written).is_ready
    restore(written, before)


@pytest.mark.parametrize(
    "name",
    ["abc.log.deleted", "foo.checkpoint", "leader-epoch-checkpoint.tmp", f"{0:020}.log.bak"],
)
def test_a_file_that_means_nothing(written: MemoryFiles, name: str) -> None:
    before = contents(written)
    written.create(f"/data/{PARTITION}/{name}").close()
    assert checked(written).is_possible
    restore(written, before)


def test_a_partition_and_its_unfinished_copy(written: MemoryFiles) -> None:
    directory = f"/data/{PARTITION}.{'0' * 32}-future"
    written.make_directory(directory)
    assert [each.code for each in checked(written).findings] == ["future-directory"]
    assert checked(written, Owner.TXNKAFKA).is_ready
    written.remove(directory)


@pytest.mark.parametrize("to", Owner)
@pytest.mark.parametrize(
    "name",
    [
        ".lock",
        "bootstrap.checkpoint",
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_a_directory_where_a_file_belongs(written: MemoryFiles, name: str, to: Owner) -> None:
    before = contents(written)
    path = f"/data/{name}"
    if path in before:
        written.remove(path)
    written.make_directory(path)
    report = checked(written, to)
    assert [(each.code, each.file) for each in report.findings] == [("not-a-file", path)]
    assert not handed(written, to).is_possible
    written.remove(path)
    restore(written, before)


def test_a_running_broker_keeps_its_directory(written: MemoryFiles) -> None:
    lock = written.lock("/data/.lock")
    assert lock is not None
    for run in (checked, handed):
        with pytest.raises(LogDirError, match="locked by another owner"):
            run(written)
    lock.close()


@pytest.mark.parametrize("path", ["/", "/nowhere"])
def test_what_is_no_data_directory(written: MemoryFiles, path: str) -> None:
    with pytest.raises(LogDirError):
        check(written, path, Owner.KAFKA, now_ms=NOW)


def test_no_producer_id_is_given_out_twice(written: MemoryFiles) -> None:
    """The registry is older than the logs, as after it was restored from a backup."""
    before = contents(written)
    report = checked(written)
    assert (report.largest_producer_id, report.next_producer_id) == (2, 1000)
    forget_producer_ids(written)
    planned = checked(written)
    assert (planned.next_producer_id, planned.is_ready) == (3, False)
    assert handed(written).next_producer_id == 3
    assert checked(written).is_ready
    again = Node(written, topic_defaults=SMALL)
    assert Producer(again, "another").identity.producer_id == 3
    again.close()
    restore(written, before)


@pytest.mark.parametrize("to", Owner)
def test_what_cannot_be_recovered(to: Owner) -> None:
    """It is a part of a cluster, and was killed."""
    files = MemoryFiles()
    node = Node(files)
    other = "AAAAAAAAAAAAAAAAAAAABw"
    record = partition(other, 0, 2, other)
    node.broker.metadata.append([topic("u", other), record], NOW)
    node.close()
    replaced(files, CLEAN, None)
    before = contents(files)
    for run in (checked, handed):
        (finding,) = run(files, to).findings
        assert (finding.code, finding.severity) == ("not-recovered", "error")
        assert "u-0 has a replica on node 2" in finding.message
    assert contents(files) == before
