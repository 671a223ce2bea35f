"""``Faults``: what happens to the node of a simulation while it is stormy, one thing after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.testing.simulation.disk import CALLS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from txnkafka.env import Random
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.node import SimulatedNode
    from txnkafka.testing.simulation.scheduler import Scheduler
    from txnkafka.testing.simulation.swarm import Swarm

__all__ = ["Faults"]

_DAY_MS = 86_400_000


class Faults:
    """``second_instance`` and ``delete_topic`` are done by the clients; the rest here."""

    def __init__(
        self, scheduler: Scheduler, random: Random, swarm: Swarm, counts: Counter[str], node: SimulatedNode
    ) -> None:
        self.is_calm = True
        self.second_instance: Callable[[], None]
        self.delete_topic: Callable[[], None]
        self._scheduler = scheduler
        self._random = random
        self._swarm = swarm
        self._counts = counts
        self._node = node
        self._farthest_ms = 0  # that the clock was ahead
        self._compacted: dict[TopicPartition, int] = {}  # up to which offsets, when it was last counted
        self._next_at = swarm.fault_every // 2
        self._acts: dict[str, Callable[[], None]] = {
            "power cut": self._power_cut,
            "kill": self._kill,
            "stop": self._stop,
            "clock ahead": self._clock_ahead,
            "clock back": self._clock_back,
            "disk error": self._disk_error,
            "full disk": self._full_disk,
            "compaction": self._compaction,
            "second instance": lambda: self.second_instance(),
            "topic deletion": lambda: self.delete_topic(),
        }

    def happen(self) -> None:
        """Let the next one happen, if it is time."""
        if not self._swarm.faults or self._scheduler.events < self._next_at:
            return
        every = self._swarm.fault_every
        self._next_at = self._scheduler.events + self._random.randrange(every // 2, every * 3 // 2)
        if not self.is_calm and self._node.broker is not None and not self._node.is_disturbed:
            fault = self._random.choice(self._swarm.faults)
            self._counts[fault] += 1
            self._scheduler.note("fault", fault)
            self._acts[fault]()

    def calm(self) -> None:
        """No more faults; what is broken is repaired. A clock that was put back is put right again: a
        transaction that began before would take that much longer to time out, as in Kafka."""
        self.is_calm = True
        node = self._node
        node.clock_offset_ms = self._farthest_ms = max(self._farthest_ms, node.clock_offset_ms)
        node.files.is_full = False
        node.files.failing = None
        if node.broker is not None and node.is_disturbed:
            self._repair()

    def _power_cut(self) -> None:
        self._node.power_cut()
        self._start_later()

    def _kill(self) -> None:
        self._node.kill()
        self._start_later()

    def _stop(self) -> None:
        self._node.stop()
        self._start_later()

    def _start_later(self) -> None:
        """Start after a while, now and then with a disk that fails meanwhile."""
        if "disk error" in self._swarm.faults and not self.is_calm and self._random.random() < 0.2:
            self._disk_error()
        self._scheduler.later(self._random.randrange(100, 200_000), self._node.start)

    def _clock_ahead(self) -> None:
        most = 3 * _DAY_MS if self._swarm.forgets_producers else _DAY_MS // 48
        self._node.clock_offset_ms += self._random.randrange(1, self._random.choice((1_000, most)))

    def _clock_back(self) -> None:
        """Never by so much that producers are forgotten when it is put right."""
        node = self._node
        self._farthest_ms = max(self._farthest_ms, node.clock_offset_ms)
        back = self._random.randrange(1, self._random.choice((1_000, _DAY_MS // 2)))
        node.clock_offset_ms = max(node.clock_offset_ms - back, self._farthest_ms - _DAY_MS // 2)

    def _disk_error(self) -> None:
        """One call fails. A broker whose disk has failed is restarted, with the machine: what the system has
        in memory and could not write is not to be believed."""
        self._node.files.failing = self._random.choice(CALLS)
        self._scheduler.later(
            self._random.randrange(1_000, 300_000), self._end_of_disk_error, self._node.files
        )

    def _end_of_disk_error(self, files: object) -> None:
        node = self._node
        if node.files is not files or node.broker is None:
            return
        node.files.failing = None
        if node.is_disturbed:
            self._counts["disk error met"] += 1
            self._repair()

    def _full_disk(self) -> None:
        self._node.files.is_full = True
        self._scheduler.later(
            self._random.randrange(1_000, 300_000), self._end_of_full_disk, self._node.files
        )

    def _end_of_full_disk(self, files: object) -> None:
        node = self._node
        if node.files is not files or node.broker is None:
            return
        node.files.is_full = False
        if node.is_disturbed:
            self._counts["full disk met"] += 1
            self._repair()

    def _repair(self) -> None:
        if self._swarm.durability == "fsync":
            self._node.power_cut()
        else:
            self._node.kill()
        self._start_later()

    def _compaction(self) -> None:
        """Count the compactions that the broker has finished: with this fault it compacts by itself."""
        broker = self._node.broker
        if broker is None:
            return
        offsets = dict(broker.data.checkpoints.cleaner_offsets)
        new = {each for each in offsets if offsets[each] != self._compacted.get(each)}
        self._counts["log compacted"] += bool(new)
        self._counts["offsets compacted"] += any(each.topic == CONSUMER_OFFSETS_TOPIC for each in new)
        self._compacted = offsets
