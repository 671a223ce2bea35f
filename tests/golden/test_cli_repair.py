"""``txnkafka repair`` on copies of intact and broken directories of a real broker."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden.cases import Case, case, cases
from txnkafka import LogDir, LogDirError
from txnkafka.cli.main import cli
from txnkafka.env import LocalDataFiles
from txnkafka.errors import UnknownTopicOrPartitionError
from txnkafka.logdir.verify import verify

Json = Any
MARKER = ".kafka_cleanshutdown"
# Problems that no repair solves: the owner of the data has to decide.
STAYS = {
    "clean_flip_last_payload": {"corrupt-tail"},
    "clean_missing_segment": {"missing-segment", "undecided-transaction"},
    "clean_no_meta_properties": {"missing-meta-properties"},
    "clean_no_partition_metadata": {"missing-partition-metadata"},
    "clean_torn_tail": {
        "high-watermark-beyond-log-end",
        "recovery-point-beyond-log-end",
        "snapshot-beyond-log-end",
        "torn-tail",
    },
    "crash_flip_last_epoch": {"leader-epoch-mismatch"},
    "crash_flip_old_payload": {"corrupt-batch"},
    "crash_repeated_tail": {"repeated-batch"},
}


@pytest.fixture
def copy(tmp_path: Path) -> Any:
    def make(name: str) -> Path:
        return Path(shutil.copytree(case(name).logs, tmp_path / "logs"))

    return make


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["repair", *map(str, arguments)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value or 0, result.stdout


def contents(path: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(each.relative_to(path)): (each.read_bytes(), each.stat().st_mtime_ns)
        for each in path.rglob("*")
        if each.is_file()
    }


def as_done(foretold: str) -> str:
    """Convert the output of a dry run, which must differ only in saying what would be done."""
    assert '"repaired"' not in foretold
    assert not re.search(r" is (rebuilt|removed|cut|made|completed|emptied|finished)", foretold)
    return foretold.replace(" would be ", " is ").replace('"would-be-repaired"', '"repaired"')


def still_wrong(path: Path) -> set[str]:
    report = verify(LogDir(str(path)))
    return {each.code for each in report.findings if each.severity != "note"}


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_directory(case: Case, copy: Any) -> None:
    """A dry run changes no byte and predicts the real run. Afterwards only losses are left that cannot be
    repaired, a second run has nothing to do, and the broker starts as after a clean stop."""
    path = copy(case.name)
    before = contents(path)
    foretold, text = run(path, "--full", "--dry-run", "--format", "json")
    assert contents(path) == before
    status, done = run(path, "--full", "--format", "json")
    assert (status, json.loads(done) | {"dry_run": True}) == (foretold, json.loads(as_done(text)))
    assert still_wrong(path) == STAYS.get(case.name, set())
    refused = [row for row in json.loads(done)["partitions"] if row["status"] == "refused"]
    assert (path / MARKER).exists() == (not refused)
    if not refused:
        assert run(path, "--full")[0] == 0
        assert run(path)[0] == 0
    if case.damage is None and not case.meta.get("crash_image"):
        assert status == 0
        after = contents(path)
        changed = {name for name in before.keys() & after.keys() if before[name][0] != after[name][0]}
        assert {name for name in changed if "/" in name} == set()
        assert all(name.endswith(".snapshot") for name in before.keys() - after.keys())  # of no segment


DIRECTORIES = sorted({str(path) for each in cases() for path in (each.logs, each.answered)})
# errors of verify that repair does not solve, and its message about a killed broker
BEYOND_REPAIR = {"missing-segment", "snapshot-contradicts-log", "undecided-transaction"}
UNCLEAN = "data not yet synced would be made durable: it was not stopped cleanly"
# docs/recovery.md: verify does not report it, as no read depends on it
UNSPOKEN = re.compile(r"timeindex would be rebuilt from the log: it does not end with the newest")


@pytest.mark.parametrize("path", DIRECTORIES, ids=lambda path: "/".join(path.split("/")[-2:]))
def test_repair_and_verify_agree(path: str) -> None:
    """repair does not call a directory sound that has an error for verify, and changes nothing without a
    finding of verify."""
    found = verify(LogDir(path)).findings
    errors = {each.code for each in found if each.severity == "error"}
    for full in ((), ("--full",)):
        _, text = run(path, "--dry-run", *full)
        *_, counts, looked_at = text.splitlines()
        assert "sound" not in counts
        assert "'txnkafka verify'" in looked_at
        document = json.loads(run(path, "--dry-run", *full, "--format", "json")[1])
        rows = [row for row in document["partitions"] if row["status"] != "nothing-to-do"]
        assert {row["status"] for row in rows} <= {"would-be-repaired", "refused"}
        if full and not rows:
            assert errors <= BEYOND_REPAIR
        spoken_of = [each.file for each in found]
        for row in rows:
            repairs = [each for each in row["repairs"] if not UNSPOKEN.search(each)]
            directory = f"{path}/{row['topic']}-{row['partition']}/"
            assert not (repairs or row["error"]) or any(file.startswith(directory) for file in spoken_of)
        assert [each for each in document["repairs"] if each != UNCLEAN] == [] or found


@pytest.mark.parametrize("case", [each for each in cases() if each.damage], ids=lambda case: case.name)
def test_a_remedy_that_names_repair_works(case: Case, copy: Any) -> None:
    """When a finding recommends a ``txnkafka repair`` command, running that command removes the finding."""
    path = copy(case.name)
    for full in ((), ("--full",)):
        command = " ".join(("txnkafka repair", *full))
        remedy = f"run '{command}'"  # at the beginning: it needs no other step before
        before = verify(LogDir(str(path))).findings
        named = {each.code for each in before if each.remedy.startswith(remedy)}
        _, text = run(path, *full, "--format", "json")
        if all(row["status"] != "refused" for row in json.loads(text)["partitions"]):
            left = {finding.code for finding in verify(LogDir(str(path))).findings}
            assert not named & left


def test_without_full_it_does_what_a_start_does(copy: Any) -> None:
    path = copy("crash_torn_tail")
    status, text = run(path, "--topic", "crash", "--partition", 0)
    lines = text.splitlines()
    assert status == 1
    assert lines[0] == "directory: data not yet synced is made durable: it was not stopped cleanly"
    assert lines[1].startswith("crash-0: ")
    assert "00000000000000000086.log is cut at position 757, offset 92, 144 bytes go: a batch of" in lines[1]
    assert lines[-2] == "1 partition: 0 with nothing to do, 1 repaired, 0 refused"
    assert lines[-1].endswith("'txnkafka verify' checks the rest.")


def test_others_stay_as_they_are(copy: Any) -> None:
    path = copy("crash")
    before = contents(path)
    assert run(path, "--topic", "crash", "--partition", 1)[0] == 1
    after = contents(path)
    assert {name for name in before if name.startswith("crash-0/") and before[name] != after[name]} == set()
    assert not (path / MARKER).exists()  # they still have to be recovered
    points = (path / "recovery-point-offset-checkpoint").read_text().splitlines()
    assert "crash 0 50" in points
    assert run(path)[0] == 1
    assert (path / MARKER).exists()


def test_durable_data_is_removed_only_on_request(copy: Any) -> None:
    path = copy("clean_torn_tail")
    before = contents(path)
    status, text = run(path)
    assert status == 1
    assert "crash-0: refused: a batch of 154 bytes begins here, but only 144 bytes follow" in text
    assert "00000000000000000086.log, position 757, offset 92)" in text
    assert "txnkafka repair --truncate-corrupt" in text
    after = contents(path)
    assert {name for name in before if name.startswith("crash-0/") and before[name] != after[name]} == set()
    status, text = run(path, "--truncate-corrupt", "--format", "jsonl")
    (row,) = map(json.loads, text.splitlines())
    assert (status, row["status"], row["log_end_offset"]) == (1, "repaired", 92)
    assert "144 bytes go" in row["repairs"][0]
    assert (path / MARKER).exists()
    assert still_wrong(path) == set()


def test_a_log_start_beyond_the_log_end_empties_the_log_only_on_request(copy: Any) -> None:
    path = copy("clean_bad_log_start")
    (path / "log-start-offset-checkpoint").write_text("0\n1\ncrash 0 930\n")
    before = contents(path)
    status, text = run(path)
    assert status == 1
    assert "crash-0: refused: the log ends at offset 93, and begins at 930 according to this file" in text
    after = contents(path)
    assert {name for name in before if name.startswith("crash-0/") and before[name] != after[name]} == set()
    (path / "log-start-offset-checkpoint").write_text("0\n1\ncrash 0 0\n")
    assert "1 partition: 1 with nothing to do" in run(path)[1]
    (path / "log-start-offset-checkpoint").write_text("0\n1\ncrash 0 930\n")
    _, text = run(path, "--truncate-corrupt")
    assert "crash-0: the log is emptied: it ends at 93, but begins at 930" in text


def test_damage_in_the_middle(copy: Any) -> None:
    """A start does not check there, ``--full`` does; everything after it would be truncated."""
    path = copy("crash_flip_old_payload")
    status, text = run(path)
    assert text.splitlines()[-2] == "1 partition: 1 with nothing to do, 0 repaired, 0 refused"
    assert "sound" not in text
    status, text = run(path, "--full")
    assert status == 1
    assert "refused: the bytes of the batch that begins there do not match its CRC" in text
    assert "00000000000000000016.log, position 639, offset 23)" in text
    assert "'txnkafka repair --full --truncate-corrupt' gives up everything from here on" in text
    status, text = run(path, "--full", "--truncate-corrupt", "--dry-run")
    assert "00000000000000000016.log would be cut at position 639, offset 23" in text
    assert "00000000000000000086.log would be removed: the log ends before it" in text
    assert "1 would be repaired" in text
    assert " is cut" not in text
    assert run(path, "--full", "--truncate-corrupt")[0] == 1
    assert run(path, "--full")[0] == 0
    assert LogDir(str(path)).partition("crash", 0).log_end_offset == 23
    assert still_wrong(path) == set()
    assert run(path)[0] == 0


def test_a_locked_directory(copy: Any) -> None:
    path = copy("open")
    lock = LocalDataFiles().lock(str(path / ".lock"))
    assert lock is not None
    before = contents(path)
    for dry_run in ((), ("--dry-run",)):
        with pytest.raises(LogDirError, match="locked by another owner"):
            run(path, *dry_run)
    assert contents(path) == before
    lock.close()


def test_what_is_no_log_directory(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match="nowhere does not exist"):
        run(tmp_path / "nowhere")
    with pytest.raises(LogDirError, match="not a partition"):
        run(case("open").logs / "open-0")
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic nope"):
        run(case("open").logs, "--topic", "nope")
    assert not list(tmp_path.iterdir())
    (tmp_path / "python-3").mkdir()
    for dry_run in ((), ("--dry-run",)):
        with pytest.raises(LogDirError, match=r"not a Kafka log directory: it has no meta\.properties"):
            run(tmp_path, *dry_run)
    assert [path.name for path in tmp_path.rglob("*")] == ["python-3"], "nothing is written"


def test_a_repair_does_not_change_what_lso_says(copy: Any) -> None:
    """The files of a live copy are of different moments, also when they are synced; and what a repair writes
    has no time of the broker."""
    path = copy("hanging")
    (path / MARKER).unlink(missing_ok=True)

    def verdicts(*arguments: str) -> list[tuple[Json, ...]]:
        done = CliRunner().invoke(cli, ["lso", str(path), "--format", "json", *arguments])
        judged = [(row["judged_at"], row["open_transactions"]) for row in json.loads(done.stdout)]
        return [(each["verdict"], each["command"], at) for at, found in judged for each in found]

    young = ("--now", "2023-11-14T22:14:30Z")
    before, now = verdicts(*young), verdicts()
    assert {verdict for verdict, *_ in before} == {"OPEN_WITHIN_TIMEOUT"}
    for _ in range(2):
        assert run(path, "--format", "jsonl")[0] in (0, 1)
        assert (path / MARKER).exists()
        assert (verdicts(*young), verdicts()) == (before, now)


def test_a_copy_for_another_disk_is_left_to_the_broker(copy: Any) -> None:
    """With a marker the broker would not recover it, and then it takes the place of the partition."""
    path = copy("crash")
    name = "crash-1.0123456789abcdef0123456789abcdef-future"
    (path / "crash-1").rename(path / name)
    before = contents(path / name)
    _, foretold = run(path, "--dry-run")
    _, text = run(path)
    line = f"directory: {name} is left to the broker, which recovers all when it starts"
    assert line in text.splitlines()
    assert line in foretold.splitlines()
    assert contents(path / name) == before
    assert not (path / MARKER).exists()


@pytest.mark.parametrize("dry_run", [True, False])
def test_root_is_told_whose_files_these_are(
    copy: Any, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    """The broker could not open the files that are written."""
    path = copy("crash")
    monkeypatch.setattr("txnkafka.env.is_of_another_user", lambda path: True)
    arguments = ["repair", str(path), *(["--dry-run"] if dry_run else [])]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert ("belongs to another user" in result.stderr) != dry_run
