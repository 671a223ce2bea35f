"""The owner of a hostile directory refuses a partition that cannot be opened, and names it; the others work,
nothing is written elsewhere, and a dry run reports the same."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.hostile.directories import build, data, log_file, partition
from tests.models.builder import Batch, PlainRecord, end_marker
from txnkafka import TopicPartition
from txnkafka.config import LogConfig
from txnkafka.env import DirectoryEntry, LocalDataFiles, LocalFileSystem
from txnkafka.env.overlay import OverlayFiles
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats.partition_names import fits_checkpoint
from txnkafka.storage.recovery.log_end import Repair

GOOD = TopicPartition("good", 0)
CLEAN = ".kafka_cleanshutdown"


def opened(directory: Path, *, dry_run: bool = False, full: bool = False) -> DataDirectory:
    """Open the directory of a broker; without ``meta.properties`` foreign files would be refused."""
    (directory / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    files = OverlayFiles(LocalFileSystem()) if dry_run else LocalDataFiles()
    config = LogConfig()
    return DataDirectory(files, str(directory), lambda _: config, now_ms=0, repair=Repair(full=full))


def refused(directory: Path) -> dict[str, str]:
    """Return the refused partitions of a dry run, which must equal those of the real run; both open the good
    partition."""
    answers = []
    for dry_run in (True, False):
        owner = opened(directory, dry_run=dry_run)
        assert owner.logs[GOOD].log_end_offset == 4
        answers.append({str(each): str(error) for each, error in owner.refused.items()})
        owner.close()
    assert answers[0] == answers[1]
    assert (directory / CLEAN).is_file() == (not answers[0])
    return answers[0]


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("linked_indexes", f"bad-0/{0:020d}.index"),
        ("linked_log", f"bad-0/{0:020d}.log"),
        ("linked_swap", f"bad-0/{0:020d}.log.swap"),
        ("linked_partition", "bad-0"),
    ],
)
def test_a_link_is_named_and_refused(tmp_path: Path, kind: str, file: str) -> None:
    directory = build(kind, tmp_path)
    before = {each: each.read_bytes() for each in (tmp_path / "outside").rglob("*") if each.is_file()}
    (text,) = refused(directory).values()
    assert text.startswith(f"{directory}/{file} is a symbolic link")
    assert {each: each.read_bytes() for each in (tmp_path / "outside").rglob("*") if each.is_file()} == before


def test_the_data_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    partition(tmp_path, "good-0", data(0), data(2))
    (tmp_path / "link").symlink_to(tmp_path)
    assert refused(tmp_path / "link") == {}


def test_names(tmp_path: Path) -> None:
    found = refused(build("names", tmp_path))
    assert set(found) == {"bad\udcff-0", "two words-0", "new\nline-0", "a-1"}
    assert "is called a-1 by Kafka" in found["a-1"]
    checkpoint = (tmp_path / "logs" / "recovery-point-offset-checkpoint").read_bytes()
    assert b"good 0 4\n" in checkpoint
    assert b"two" not in checkpoint


@pytest.mark.parametrize(
    ("topic", "fits"), [("orders", True), ("\u00e9", True), ("two words", False), ("a\n", False)]
)
def test_which_names_a_checkpoint_can_hold(topic: str, fits: bool) -> None:
    assert fits_checkpoint(topic) == fits


@pytest.mark.parametrize(
    ("kind", "partitions"),
    [("fifos", {"bad-0", "bad-1"}), ("loops", {"bad-0", "bad-1"}), ("deep_leftover", set())],
)
def test_special_files_and_loops(tmp_path: Path, kind: str, partitions: set[str]) -> None:
    directory = build(kind, tmp_path)
    owner = opened(directory)
    assert {str(each) for each in owner.refused} == partitions
    assert owner.logs[GOOD].log_end_offset == 4
    owner.close()
    assert not list(directory.glob("gone*"))


def large(base_offset: int) -> bytes:
    """Encode a batch that is larger than the distance between entries of an index."""
    return Batch(records=[PlainRecord(b"k", bytes(5_000), 1)], base_offset=base_offset).encode()


def transaction(first_offset: int, marker_offset: int, sequence: int) -> bytes:
    """Encode an aborted transaction, with its marker at any offset."""
    fields = {"producer_id": 7, "producer_epoch": 0}
    batch = data(first_offset, 1, transactional=True, base_sequence=sequence, **fields)
    return batch + end_marker(0, base_offset=marker_offset, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "batches",
    [
        [large(5), large(6), large(0), large(8)],
        [large(5), large(1 << 50), large(6), large(8)],
        [transaction(5, 7, 0), transaction(6, 6, 1), large(8)],
    ],
    ids=["below the base", "too far above", "markers out of order"],
)
def test_offsets_that_go_back_below_what_was_durable(tmp_path: Path, batches: list[bytes]) -> None:
    """Batches of a middle segment after a clean stop: it is not checked, and its index is missing."""
    partition(tmp_path, "good-0", data(0), data(2))
    path = partition(tmp_path, "bad-0", *map(large, range(5)))
    log_file(path, offset=5).write_bytes(b"".join(batches))
    log_file(path, offset=9).write_bytes(large(9))
    (tmp_path / CLEAN).touch()
    owner = opened(tmp_path)
    (text,) = map(str, owner.refused.values())
    assert f"{5:020d}.log" in text
    assert "go back" in text or "too far" in text
    assert owner.logs[GOOD].log_end_offset == 4
    owner.close()


@pytest.mark.parametrize(
    ("error", "refuses"), [(errno.EACCES, True), (errno.EIO, False), (errno.ENOSPC, False)]
)
def test_which_errors_are_about_one_partition(tmp_path: Path, error: int, refuses: bool) -> None:
    """A partition without read permission is refused. A disk that fails or is full concerns all
    partitions."""
    partition(tmp_path, "good-0", data(0), data(2))
    partition(tmp_path, "bad-0")
    config = LogConfig()

    class Files(LocalDataFiles):
        def list(self, path: str) -> list[DirectoryEntry]:
            if path.endswith("bad-0"):
                raise OSError(error, "no", path)
            return super().list(path)

    files = Files()
    if refuses:
        owner = DataDirectory(files, str(tmp_path), lambda _: config, now_ms=0)
        assert list(map(str, owner.refused)) == ["bad-0"]
        owner.close()
    else:
        with pytest.raises(OSError, match="no") as caught:
            DataDirectory(files, str(tmp_path), lambda _: config, now_ms=0)
        assert caught.value.errno == error
