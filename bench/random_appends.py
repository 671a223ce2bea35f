"""A process that appends to very many partitions in random order with group commit, and prints how long the
commits took: `python -m bench.random_appends SIDE DIRECTORY PARTITIONS GROUPS`.

``txnkafka`` is a LogManager, ``fdatasync`` only `pwrite` and `fdatasync` on open files. Both write the same
batches to the same partitions in the same order. Before the timing starts, every partition has a durable
batch.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from bench.harness import timed
from txnkafka._core.encode import encode_batch
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.work import perform

GROUP = 64  # appends per flush
NOW_MS = 1_700_000_000_000
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def batch_of(partition: int, sequence: int) -> bytearray:
    """Encode a record of 100 bytes of the producer that writes to the partition."""
    records = [(b"%016d" % sequence, b"%0100d" % partition, NOW_MS)]
    return encode_batch(records, producer_id=partition, producer_epoch=0, base_sequence=sequence)


def groups(partitions: int, count: int) -> Iterator[list[tuple[int, bytearray]]]:
    """Yield groups of batches, each to another partition; the first groups cover all partitions once."""
    rng = random.Random(1)
    sequences = [0] * partitions
    numbers = list(range(partitions))
    rng.shuffle(numbers)
    first = [numbers[begin : begin + GROUP] for begin in range(0, partitions, GROUP)]
    for members in (*first, *(rng.sample(range(partitions), GROUP) for _ in range(count))):
        yield [(number, batch_of(number, sequences[number])) for number in members]
        for number in members:
            sequences[number] += 1


class Logs:
    """The logs of txnkafka."""

    def __init__(self, directory: Path, partitions: int) -> None:
        config = LogConfig()
        data = DataDirectory(LocalDataFiles(), str(directory), lambda topic: config, now_ms=NOW_MS)
        self._manager = LogManager(data)
        names = [TopicPartition("t", number) for number in range(partitions)]
        perform(data.creation(dict.fromkeys(names, TOPIC_ID), now_ms=NOW_MS))
        self._logs = [data.logs[name] for name in names]

    def commit(self, members: list[tuple[int, bytearray]]) -> None:
        flushes, released = self._manager.flushes, list[Exception | None]()
        for number, batch in members:
            log = self._logs[number]
            log.append(batch, now_ms=NOW_MS)
            flushes.when_durable(log, released.append)
        flush = flushes.begin()
        assert flush is not None
        flushes.finish(flush, flush.run())
        assert released == [None] * len(members)


class Files:
    """Plain files."""

    def __init__(self, directory: Path, partitions: int) -> None:
        directory.mkdir()
        flags = os.O_RDWR | os.O_CREAT
        self._files = [os.open(directory / str(number), flags) for number in range(partitions)]
        self._sizes = [0] * partitions

    def commit(self, members: list[tuple[int, bytearray]]) -> None:
        for number, batch in members:
            self._sizes[number] += os.pwrite(self._files[number], batch, self._sizes[number])
        for number, _ in members:
            os.fdatasync(self._files[number])


SIDES: dict[str, Callable[[Path, int], Logs | Files]] = {"txnkafka": Logs, "fdatasync": Files}


def main() -> None:
    side, directory, partitions, count = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:5])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if side == "fdatasync":
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    subject = SIDES[side](directory, partitions)
    before = -(-partitions // GROUP)
    timing: list[tuple[float, float]] = []
    for number, members in enumerate(groups(partitions, count)):
        with timed(timing) if number >= before else nullcontext():
            subject.commit(members)
    seconds = [wall for _, wall in timing]
    seconds.sort()
    print(
        json.dumps(
            {
                "cpu": sum(cpu for cpu, _ in timing),
                "wall": sum(seconds),
                "appends": count * GROUP,
                "p50_ms": seconds[len(seconds) // 2] * 1e3,
                "p99_ms": seconds[len(seconds) * 99 // 100] * 1e3,
                "resident_bytes": resident_bytes(),
                "descriptors": len(os.listdir("/proc/self/fd")),
            }
        )
    )


def resident_bytes() -> int:
    """Return the current memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
