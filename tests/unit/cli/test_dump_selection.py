"""``txnkafka dump`` of some batches (--offset, --position), of empty files, and states by their names."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord, legacy_entry, legacy_wrapper
from tests.models.coordinator_log import transaction_key, transaction_value
from tests.unit.cli.conftest import Run
from tests.unit.logdir.logs import batch
from txnkafka.storage.formats.segment_reader import LogFileReader

BASE = 100


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write 1000 batches of two records, with a gap of ten offsets behind the first 500."""
    path = tmp_path / f"{BASE:020}.log"
    path.write_bytes(b"".join(batch(BASE + 2 * i + 10 * (i >= 500), 2) for i in range(1000)))
    return path


def offsets(run: Run, path: Path, *options: object) -> list[int]:
    answer = run("dump", path, "--format", "jsonl", *options)
    assert answer.status == 0, answer.stderr
    return [json.loads(line)["base_offset"] for line in answer.lines]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("100", [100]),
        ("101", [100]),
        ("102..105", [102, 104]),
        ("1098..1111", [1098, 1110]),
        ("2108..9999", [2108]),
        ("0..101", [100]),
    ],
)
def test_the_batches_with_some_offsets(run: Run, log: Path, wanted: str, found: list[int]) -> None:
    assert offsets(run, log, "--offset", wanted) == found
    size = log.stat().st_size // 1000
    entries = [(2 * i + 1, size * i) for i in range(0, 500, 7)]
    log.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))
    assert offsets(run, log, "--offset", wanted) == found


@pytest.mark.parametrize("position", [1, 2**30, -5])
def test_an_index_that_lies_is_not_believed(run: Run, log: Path, position: int) -> None:
    for entry in ((2, position), (2, log.stat().st_size // 1000 * 700)):
        log.with_suffix(".index").write_bytes(struct.pack(">ii", *entry))
        assert offsets(run, log, "--offset", "110") == [110]


def test_one_batch_by_its_position(run: Run, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is before it is not read, and of what is behind it no more than a window."""
    position = int(json.loads(run("dump", log, "--offset", "1200", "--format", "jsonl").stdout)["position"])
    reads: list[int] = []
    whole = LogFileReader.read

    def read(self: LogFileReader, at: int, length: int) -> memoryview:
        reads.append(at)
        return whole(self, at, length)

    monkeypatch.setattr(LogFileReader, "read", read)
    assert offsets(run, log, "--position", position) == [1200]
    assert reads == [position]


def test_a_position_inside_of_a_batch(run: Run, log: Path) -> None:
    answer = run("dump", log, "--position", 3)
    assert (answer.status, answer.stdout) == (2, "")
    assert f"no batch begins at position 3 of {log}: " in answer.stderr
    answer = run("dump", log, "--position", log.stat().st_size)
    assert answer.status == 2
    assert f"has {log.stat().st_size} bytes: no batch begins at position" in answer.stderr


def test_an_offset_that_is_nowhere(run: Run, log: Path) -> None:
    for wanted, words in (("1105", "offset 1105"), ("5..6", "offsets 5 to 6"), ("99999", "offset 99999")):
        answer = run("dump", log, "--offset", wanted)
        assert (answer.status, answer.stdout) == (2, "")
        assert answer.stderr == f"txnkafka: error: no batch has {words}\n"


def test_of_several_segments_the_ones_with_the_offsets(run: Run, log: Path, tmp_path: Path) -> None:
    later = tmp_path / f"{5000:020}.log"
    later.write_bytes(batch(5000, 2))
    answer = run("dump", log, later, "--offset", "5001", "--format", "jsonl")
    assert [json.loads(line)["file"] for line in answer.lines] == [str(later)]


def test_a_wrapper_contains_offsets_below_its_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    inner = [legacy_entry(i, b"k", b"v", magic=0) for i in range(4)]
    path.write_bytes(legacy_wrapper(inner, 3, codec=1, magic=0) + batch(4, 1))
    answer = run("dump", path, "--offset", "2", "--format", "jsonl")
    assert [json.loads(line)["last_offset"] for line in answer.lines] == [3]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--offset", "x"], "not an offset or a range of offsets, as in 40..60"),
        (["--offset", "3..x"], "not an offset"),
        (["--offset", "5..3"], "ends before it begins"),
        (["--offset", "9223372036854775808"], "no log has offsets above 9223372036854775807"),
        (["--offset", "5.." + "9" * 5000], "no log has offsets above 9223372036854775807"),
        (["--offset", "5", "--position", "0"], "do not go together"),
    ],
)
def test_what_cannot_be_selected(run: Run, log: Path, arguments: list[str], text: str) -> None:
    answer = run("dump", log, *arguments)
    assert (answer.status, answer.stdout) == (2, "")
    assert text in answer.stderr


def test_the_index_is_asked_for_the_largest_offset(run: Run, log: Path) -> None:
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 0, 0))
    assert "no batch has offset" in run("dump", log, "--offset", str(2**63 - 1)).stderr


def test_files_without_batches(run: Run, log: Path) -> None:
    index = log.with_suffix(".index")
    index.write_bytes(b"")
    answer = run("dump", index, "--offset", "100")
    assert answer.status == 2
    assert f"{index} has no batches: --offset and --position are for .log files" in answer.stderr


# Empty files


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (f"{0:020}.log", b"", "0 batches"),
        (f"{0:020}.txnindex", b"", "0 entries"),
        (f"{0:020}.index", b"", "0 entries"),
        ("replication-offset-checkpoint", b"0\n0\n", "0 entries"),
        (f"{0:020}-{0:010}.checkpoint", b"", "0 batches"),
    ],
)
def test_an_empty_file_says_so(run: Run, tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert run("dump", path) == (0, f"{path}:\n{says}\n", "")
    assert run("dump", path, "--format", "json") == (0, "[]\n", "")
    assert run("dump", path, "--format", "jsonl") == (0, "", "")


# States


@pytest.mark.parametrize(
    ("state", "name"),
    [(0, "Empty"), (1, "Ongoing"), (2, "PrepareCommit"), (5, "CompleteAbort"), (9, "UNKNOWN(9)")],
)
def test_states_of_transactions_have_names(run: Run, tmp_path: Path, state: int, name: str) -> None:
    path = tmp_path / "__transaction_state-0" / f"{0:020}.log"
    path.parent.mkdir()
    value = transaction_value(7, state=state, topics={} if state else None)
    path.write_bytes(Batch(records=[PlainRecord(transaction_key("shop"), value)]).encode())
    assert f'"transaction_status":"{name}"' in run("dump", path, "--records").stdout
