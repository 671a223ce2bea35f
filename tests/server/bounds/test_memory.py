"""The memory that a small file may use: each entry point runs in its own process, whose peak memory is
measured.

Pages with a file behind them do not count: how many pages of a library the kernel maps around one that was
used differs between machines (for Arrow 60 to 95 MiB). The limits include the anonymous memory of the
interpreter and its libraries. Without bounds, each of these inputs used at least twice its limit, most of
them ten times. Huge pages differ from run to run: the least of three runs counts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import LONG, sampled
from tests.unit.bounds import inputs

MIB = 1 << 20
SECONDS = 300
RUNS = 3
STATE, OFFSETS = "__transaction_state-0", "__consumer_offsets-0"

PRELUDE = """
import atexit, sys
from txnkafka import LogDir
def peak():
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    print(*(int(lines[name].split()[0]) >> 10 for name in ("VmHWM", "RssAnon", "RssFile")), file=sys.stderr)
atexit.register(peak)
path = sys.argv[1]
view = lambda: LogDir(path, io="pread").partition("t", 0)
def command(*arguments):
    from txnkafka.cli.main import main
    main(list(arguments))
"""

DOORS = {
    "records": "for _ in view().records(on_corrupt='skip'): pass",
    "read": "for _ in view().read(): pass",
    "read-headers": (
        "from txnkafka.record.chunk import ChunkDecoder\n"
        "for _ in view().read(headers=True, on_corrupt='skip'): pass"
    ),
    "arrow": "for _ in view().arrow_batches(on_corrupt='skip'): pass",
    "count": "view().count()",
    "lso-offset": "view().last_stable_offset; view().plan()",
    "offset-for-timestamp": "view().offset_for_timestamp(1 << 40)",
    "producers": "view().producer_state()",
    "transactions": "list(view().iter_transactions())",
    "transactional-ids": "print(len(LogDir(path).transactional_ids()))",
    "committed-offsets": "print(len(LogDir(path).committed_offsets()))",
    "cat-jsonl": "command('cat', path, '--on-corrupt', 'skip')",
    "cat-csv": "command('cat', path, '--format', 'csv', '--on-corrupt', 'skip')",
    "cat-text": "command('cat', path, '--format', 'text', '--on-corrupt', 'skip')",
    "dump": "command('dump', '--records', '--format', 'jsonl', sys.argv[2])",
    "ls": "command('ls', path)",
    "ls-segments": "command('ls', '--segments', path)",
    "stats": "command('stats', path)",
    "lso": "command('lso', path)",
    "verify": "command('verify', '--level', 'records', path)",
    "export": "command('export', path, '--to', 'parquet', '--output', sys.argv[3], '--on-corrupt', 'skip')",
}


class Memory(NamedTuple):
    """Memory of a process in MiB: its peak, and what it had at its end without and with a file behind it."""

    peak: int
    anonymous: int
    of_files: int

    @property
    def own(self) -> int:
        """The peak without the pages of files that the process still has at its end, which are those of
        libraries."""
        return self.peak - self.of_files


def check_peak(limit: int, door: str, directory: Path, name: str = "t-0") -> None:
    """Assert that a process that runs the entry point stays below ``limit`` MiB."""
    runs: list[Memory] = []
    while len(runs) < RUNS:
        runs.append(memory_of(door, directory, name))
        if runs[-1].own < limit:
            return
    pytest.fail(f"{door} may use {limit} MiB: {', '.join(map(str, runs))}")


def memory_of(door: str, directory: Path, name: str) -> Memory:
    """Run the entry point in a process of its own."""
    log = directory / name / f"{0:020}.log"
    exported = tempfile.mkdtemp(dir=directory.parent)
    arguments = [str(directory), str(log), f"{exported}/parquet"]
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + DOORS[door], *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Memory(*map(int, done.stderr.splitlines()[-1].split()))


Case = tuple[str, Callable[[int], bytes], int, int, tuple[str, ...]]
SMALL = 32 if not LONG else 256  # MiB of the decompressed batch

CASES: list[Case] = [
    ("tiny", inputs.tiny_records, SMALL, 150, ("read", "count", "verify")),
    ("tiny-arrow", inputs.tiny_records, SMALL, 180, ("arrow",)),
    ("tiny-export", inputs.tiny_records, SMALL, 330, ("export",)),
    ("headers", inputs.many_headers, SMALL, 150, ("records", "read-headers", "cat-jsonl", "verify")),
    ("headers-dump", inputs.many_headers, 4, 150, ("dump", "cat-csv", "cat-text")),
    ("legacy", inputs.legacy_wrappers, 400, 150, ("read", "records", "count", "cat-jsonl", "verify")),
    ("legacy-small", inputs.legacy_wrapper_of_small_entries, SMALL, 150, ("read", "count", "verify")),
]
DOORS_OF_CASES = [
    pytest.param(make, size, limit, door, id=f"{name}-{door}", marks=[pytest.mark.slow] * (door != doors[0]))
    for name, make, size, limit, doors in CASES
    for door in (doors if LONG else doors[:2])
]


@pytest.mark.parametrize(("make", "size", "limit", "door"), DOORS_OF_CASES)
def test_a_large_batch(
    make: Callable[[int], bytes], size: int, limit: int, door: str, tmp_path: Path
) -> None:
    directory = tmp_path / "log"
    directory.mkdir()
    inputs.write_log(directory, make(size * MIB))
    # the batch itself, decompressed, exceeds the usual limit only when it is that large
    allowed = limit + (size if LONG and make is not inputs.legacy_wrappers else 0)
    check_peak(allowed, door, directory)


@pytest.mark.parametrize("door", sampled(["records", "read-headers", "cat-jsonl", "dump", "arrow"], every=5))
def test_a_record_that_is_nothing_but_headers(door: str, tmp_path: Path) -> None:
    directory = tmp_path / "log"
    directory.mkdir()
    inputs.write_log(directory, inputs.one_record_of_headers(16 << 20))
    check_peak(200, door, directory)


DERIVED = ["lso-offset", "producers", "transactions", "offset-for-timestamp", "ls", "ls-segments", "stats"]


@pytest.mark.parametrize("door", sampled(DERIVED if LONG else DERIVED[:3], every=3))
def test_a_segment_of_very_many_batches(door: str, tmp_path: Path) -> None:
    directory = tmp_path / "log"
    directory.mkdir()
    size = 64 if LONG else 32
    inputs.write_log(directory, inputs.many_batches(size * MIB))
    # commands map the file, and what was read of a mapped file counts as memory of the process
    check_peak(200 + size, door, directory)


@pytest.mark.parametrize(
    ("make", "name", "door"),
    [
        (inputs.coordinator_log, STATE, "transactional-ids"),
        pytest.param(inputs.coordinator_log, STATE, "lso", marks=pytest.mark.slow),
        pytest.param(inputs.coordinator_log, STATE, "dump", marks=pytest.mark.slow),
        (inputs.group_log, OFFSETS, "committed-offsets"),
        pytest.param(inputs.group_log, OFFSETS, "dump", marks=pytest.mark.slow),
    ],
)
def test_a_record_of_a_coordinator(
    make: Callable[[int], bytes], name: str, door: str, tmp_path: Path
) -> None:
    directory = tmp_path / "log"
    directory.mkdir()
    inputs.write_log(directory, make(5 * MIB), name)
    check_peak(200, door, directory, name)


@pytest.mark.slow
def test_the_memory_of_a_replay(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    directory.mkdir()
    inputs.write_log(directory, inputs.many_keys(400, 1 << 18), STATE)
    check_peak(250, "transactional-ids", directory, STATE)
