"""A program with an embedded broker is killed again and again, TXNKAFKA_EMBEDDED_KILLS times, at times from
TXNKAFKA_SEED. Each record that it copies in transactions arrives once, and the offsets of its group move
with them."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from tests.server.client import copying
from tests.server.client.copying import IN, PARTITIONS
from txnkafka import LogDir
from txnkafka.model import IsolationLevelName
from txnkafka.wire.records import TransactionState

KILLS = int(os.environ.get("TXNKAFKA_EMBEDDED_KILLS", "60"))
CHAINS = 3  # directories that are used at the same time: a run waits more than it works
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))
FORKS = multiprocessing.get_context("forkserver")  # forks a process that has imported the program
CHILDREN = threading.Lock()  # start and join ask for the end of every child
LINE_SECONDS = 60


def run_and_kill(data: Path, seconds: float, after: str = "open") -> tuple[int, int]:
    """Run the program, and kill it some seconds after its first line with the word ``after``. Returns the
    largest numbers that were acknowledged and copied, -1 for none."""
    reader, writer = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=copying.main, args=(str(data), writer))
    with CHILDREN:
        process.start()
    writer.close()
    watchdog = threading.Timer(LINE_SECONDS, process.kill)
    watchdog.start()
    numbers, is_reached = {"sent": -1, "copied": -1}, False
    with os.fdopen(os.dup(reader.fileno())) as lines:
        for line in lines:
            kind, _, number = line.rstrip("\n").partition(" ")
            if not is_reached and kind == after:
                is_reached = True
                watchdog.cancel()
                threading.Timer(seconds, process.kill).start()
            if kind in numbers and line.endswith("\n"):
                numbers[kind] = max(numbers[kind], int(number))
    wait([process.sentinel])
    with CHILDREN:
        process.join()
    reader.close()
    errors = Path(f"{data}.stderr").read_text()
    assert is_reached, f"no line {after!r} after {LINE_SECONDS} s\n{errors}"
    assert process.exitcode == -9, errors
    assert "Traceback" not in errors, errors
    return numbers["sent"], numbers["copied"]


def check(data: Path, sent: int, copied: int) -> int:
    """Check the records of the directory for a read_committed consumer; returns the number of copies. A kill
    between two markers of a decided transaction leaves it visible in one partition only: the next broker
    completes it."""
    log_dir = LogDir(data)
    values = [int(record.value or b"") for record in log_dir.partition(*IN).records()]
    assert values == list(range(len(values)))
    assert len(values) > sent
    copier = log_dir.transactional_ids().get("copier")
    is_decided = copier is not None and copier.state is TransactionState.PREPARE_COMMIT
    level: IsolationLevelName = "read_uncommitted" if is_decided else "read_committed"
    copies = []
    for number in range(PARTITIONS):
        view = log_dir.partition("out", number)
        found = [int(record.value or b"") for record in view.records()]
        rest = view.records(start_offset=view.last_stable_offset, isolation_level=level)
        found += [int(record.value or b"") for record in rest]
        assert found == sorted(found)
        copies += found
    assert sorted(copies) == list(range(len(copies)))
    assert len(copies) > copied
    return len(copies)


def run_and_kill_often(data: Path, kills: int, rng: random.Random) -> tuple[int, int]:
    """Run the program on one directory, and check it after each kill. Returns the largest numbers that were
    acknowledged and copied."""
    sent = copied = -1
    for _ in range(kills):
        now_sent, now_copied = run_and_kill(data, rng.uniform(0.0, 0.8), rng.choice(["open", "sent"]))
        sent, copied = max(sent, now_sent), max(copied, now_copied)
        check(data, sent, copied)
    # a slow machine kills each run before its first copy; this one copies after all of them
    sent, copied = run_and_kill(data, 0.2, "copied")
    copies = check(data, sent, copied)
    offsets = {group: each.offset for (group, *_), each in LogDir(data).committed_offsets().items()}
    assert offsets["copier"] in range(copies - 4, copies + 1)
    return sent, copied


def test_each_record_is_copied_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FORKS.set_forkserver_preload([copying.__name__, "txnkafka.embedded"])
    chains = [KILLS // CHAINS + (number < KILLS % CHAINS) for number in range(CHAINS)]
    with ThreadPoolExecutor(CHAINS) as threads:
        ends = [
            threads.submit(run_and_kill_often, tmp_path / f"{number}", kills, random.Random(SEED + number))
            for number, kills in enumerate(chains)
        ]
    sent, copied = (sum(numbers) + CHAINS for numbers in zip(*(end.result() for end in ends), strict=True))
    with capsys.disabled():
        print(f"\n{KILLS} kills, {sent:,} records acknowledged, {copied:,} copied")
