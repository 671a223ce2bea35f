"""A broker on files in memory, whose host does what the scenario says: flushes and work can be held back, run
one by one or fail, files refuse calls, the clock is set, and a crash keeps what is durable."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Any

from txnkafka.broker.broker import Broker, open_broker
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.flush import Flush
from txnkafka.coordinator.registry import metadata_records
from txnkafka.testing.disk import Disk
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.losses import Losses
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.unsynced import Unsynced

__all__ = ["NOW", "Host"]

NOW = 1_700_000_000_000
PATH = "/data"
FEW = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Settings that a scenario need not say."""
BIT_AT = 65  # behind the header of the batch


class Refusals(FaultPlan):
    """Calls that fail: by name of the call and a part of the path."""

    def __init__(self) -> None:
        super().__init__()
        self.planned: dict[tuple[str, str], int] = {}

    def check(self, call: str, path: str) -> None:
        for (name, part), error in self.planned.items():
            if name == call and part in path:
                raise OSError(error, errno.errorcode[error], path)


@dataclass
class Host:
    """``broker`` is the open broker, ``now_ms`` the clock. ``held`` has "flush" and "work" while these wait
    for a command."""

    config: dict[str, str] = field(default_factory=dict)
    now_ms: int = NOW
    held: set[str] = field(default_factory=set)
    refusals: Refusals = field(default_factory=Refusals)
    flush: Flush | None = None

    def __post_init__(self) -> None:
        self.memory = MemoryFiles()
        self._running_ms = 0
        self.open()

    def open(self) -> None:
        """Start the broker, and let it do what it has to do at its start."""
        durability: Any = self.config.get("durability", "fsync")
        settings = {**FEW, **self.config}
        settings.pop("durability", None)
        self.held.clear()
        self.flush = None
        self.broker: Broker = open_broker(
            FaultyFiles(self.memory, self.refusals), PATH, BrokerConfig.of(settings), now_ms=self.now_ms,
            durability=durability,
        )  # fmt: skip
        self.broker.ticks.tell(self._running_ms)
        self.settle()

    def settle(self) -> None:
        """Run what is not held, until nothing is left."""
        while self.run_flush() or self.run_work():
            continue

    def run_flush(self, *, is_asked: bool = False) -> bool:
        """Run the next group flush; False when there is none, or while flushes are held."""
        if "flush" in self.held and not is_asked:
            return False
        return self.begin_flush() and self.finish_flush()

    def begin_flush(self) -> bool:
        """Begin a group flush: later appends are not in it."""
        self.flush = self.flush or self.broker.begin_flush()
        return self.flush is not None

    def finish_flush(self) -> bool:
        """Run the flush that was begun."""
        flush, self.flush = self.flush, None
        if flush is not None:
            self.broker.finish_flush(flush, flush.run(), now_ms=self.now_ms)
        return flush is not None

    def run_work(self, *, is_asked: bool = False) -> bool:
        """Run the next piece of work, as ``run_flush`` does a flush."""
        if "work" in self.held and not is_asked:
            return False
        work = self.broker.begin_work()
        if work is None:
            return False
        error: Exception | None = None
        try:
            work.run()
        except Exception as raised:
            error = raised
        self.broker.finish_work(work, error, now_ms=self.now_ms)
        return True

    def wait(self, ms: int) -> None:
        """Let time pass, and do what is due."""
        self._running_ms += ms
        self.broker.ticks.tell(self._running_ms)
        self.set_clock(ms)

    def set_clock(self, ms: int) -> None:
        """Set the wall clock forward, or back, and do what is due."""
        self.now_ms += ms
        for _ in range(100):
            deadline = self.broker.advance(self.now_ms)
            self.settle()
            if deadline > self.broker.ticks.now:
                return
        raise AssertionError("the broker is due again and again at the same time")

    def set_level(self, level: int) -> None:
        """Finalize the feature transaction.version, as an administrator does, and start again."""
        record = metadata_records.feature_level("transaction.version", level)
        self.broker.metadata.append([record], self.now_ms)
        self.broker.metadata.apply([record])
        self.stop()
        self.open()

    def damage(self, partition: str) -> None:
        """Flip a bit of the records of the first batch of a log."""
        path = f"{PATH}/{partition}/{0:020}.log"
        content = self.memory.read(path, 1 << 20)
        file = self.memory.open_to_write(path)
        file.write(BIT_AT, [bytes([content[BIT_AT] ^ 1])])
        file.sync()
        file.close()

    # The end

    def stop(self) -> None:
        """A clean stop."""
        self.settle()
        self.broker.close()
        self.memory = MemoryFiles(base=self.memory.disk())

    def kill(self) -> None:
        """The process dies, the machine does not: what was written is there."""
        self.memory = MemoryFiles(base=self.memory.disk())

    def crash(self, kept: tuple[str, ...] = ()) -> None:
        """The machine stops: what is not synced is lost, but in files with one of ``kept`` in their path."""
        unsynced = Unsynced(self.memory.base)
        for change in self.memory.journal:
            unsynced.make(change)
        disk, _ = Losses(unsynced).disk(("lost", -1, -1), ("lost", -1, -1))
        paths = {change.inode: change.path for change in self.memory.journal}
        contents = dict(disk.contents)
        for inode, path in paths.items():
            if inode in unsynced.kept and any(each in path for each in kept):
                contents[inode] = unsynced.kept[inode]
        self.memory = MemoryFiles(base=Disk(contents, disk.names, disk.modified_ms, disk.next_inode))
