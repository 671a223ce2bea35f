"""``Faults``: the faults of a simulation's node during a storm, one at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from txnkafka.testing.simulation.disk import BLOCKS, CALLS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from txnkafka.env import Random
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.node import SimulatedNode
    from txnkafka.testing.simulation.scheduler import Scheduler
    from txnkafka.testing.simulation.swarm import Swarm

_DAY_MS = 86_400_000
_AT_A_REQUEST: Final = ("power cut", "kill", "disk error", "full disk")
_OFTEN: Final = {"power cut": 2, "kill": 2, "disk error": 4, "full disk": 2}  # relative frequency; others: 1
_REQUESTS: Final = (
    "AddPartitionsToTxn",
    "EndTxn",
    "InitProducerId",
    "Produce",
    "Produce and EndTxn",
    "TxnOffsetCommit",
)
_AWAY: Final = (1, 4, 30)  # maximum number of disk calls before the fault
_FAILING_IN: Final = ("", f"/{TRANSACTION_STATE_TOPIC}-")
_LONG_US: Final = (5_000, 300_000)  # maximum duration of a disk fault


class Faults:
    """The faults. Clients perform ``second_instance`` and ``delete_topic``; this class performs the
    others."""

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
        self._farthest_ms = 0  # maximum lead of the clock
        self._compacted: dict[TopicPartition, int] = {}  # clean offsets at the last count
        self._next_at = swarm.fault_every // 2
        self._choices = [fault for fault in swarm.faults for _ in range(_OFTEN.get(fault, 1))]
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
        """Cause the next fault if due: now, or at the next request of some kind, so that short steps of a
        transaction are hit as often as long ones."""
        if not self._swarm.faults or self._scheduler.events < self._next_at or not self._can_happen:
            return
        every = self._swarm.fault_every
        self._next_at = self._scheduler.events + self._random.randrange(every // 2, every * 3 // 2)
        if self._node.awaited is not None:  # no request of that kind has arrived
            (_, act), self._node.awaited = self._node.awaited, None
            act()
            return
        fault = self._random.choice(self._choices)
        if fault in _AT_A_REQUEST and self._random.random() < 0.5:
            self._node.awaited = self._random.choice(_REQUESTS), partial(self._act, fault)
        else:
            self._act(fault)

    @property
    def _can_happen(self) -> bool:
        node = self._node
        return not self.is_calm and node.broker is not None and not node.is_disturbed

    def _act(self, fault: str) -> None:
        if self._can_happen:
            self._counts[fault] += 1
            self._scheduler.note("fault", fault)
            self._acts[fault]()

    def calm(self) -> None:
        """Stop all faults and repair their effects. A clock that was set back is corrected: otherwise older
        transactions would time out that much later, as in Kafka."""
        self.is_calm = True
        node = self._node
        node.clock_offset_ms = self._farthest_ms = max(self._farthest_ms, node.clock_offset_ms)
        node.files.is_full = False
        node.files.failing = None
        node.files.dies_in = 0
        if node.broker is not None and node.is_disturbed:
            self._repair()

    def _power_cut(self) -> None:
        self._crash("power cut", self._node.power_cut)

    def _kill(self) -> None:
        self._crash("kill", self._node.kill)

    def _crash(self, what: str, crash: Callable[[], None]) -> None:
        """Crash now, between two steps of the node, or in one of its next disk calls."""
        if self._random.random() < 0.4:
            crash()
            self._start_later()
            return
        self._node.on_death = partial(self._die, what, crash)
        self._node.checkpoints_next = self._random.random() < 0.3  # possibly before a record is durable
        self._node.files.dies_in = 1 + self._some_calls()

    def _die(self, what: str, crash: Callable[[], None]) -> None:
        self._counts[f"{what} in a call"] += 1
        self._scheduler.note(f"{what} in a call")
        if self._node.is_disturbed:
            self._repair()
        else:
            crash()
            self._start_later()

    def _some_calls(self) -> int:
        return self._random.randrange(self._random.choice(_AWAY))

    def _stop(self) -> None:
        self._node.stop()
        self._start_later()

    def _start_later(self) -> None:
        """Start after a delay, sometimes with a disk that fails during the start."""
        if "disk error" in self._swarm.faults and not self.is_calm and self._random.random() < 0.2:
            self._disk_error()
        self._scheduler.later(self._random.randrange(100, 200_000), self._node.start)

    def _clock_ahead(self) -> None:
        most = 3 * _DAY_MS if self._swarm.forgets_producers else _DAY_MS // 48
        self._node.clock_offset_ms += self._random.randrange(1, self._random.choice((1_000, most)))

    def _clock_back(self) -> None:
        """Set the clock back, but not so far that the correction expires producers."""
        node = self._node
        self._farthest_ms = max(self._farthest_ms, node.clock_offset_ms)
        back = self._random.randrange(1, self._random.choice((1_000, _DAY_MS // 2)))
        node.clock_offset_ms = max(node.clock_offset_ms - back, self._farthest_ms - _DAY_MS // 2)

    def _disk_error(self) -> None:
        """Make one disk call fail. The broker is then restarted, and so is the machine if the system may have
        dropped unwritten data, because its cache cannot be trusted."""
        files = self._node.files
        files.failing = self._random.choice(CALLS)
        files.spared = self._some_calls() if files.failing in ("write", "sync") else 0
        files.failing_in = self._random.choice(_FAILING_IN)
        files.drops_unsynced = self._random.random() < 0.5
        self._scheduler.later(self._long_us(), self._end_of_disk_error, files)

    def _long_us(self) -> int:
        return self._random.randrange(1_000, self._random.choice(_LONG_US))

    def _end_of_disk_error(self, files: object) -> None:
        node = self._node
        if node.files is not files or node.broker is None:
            return
        node.files.failing = None
        if node.is_disturbed:
            self._counts["disk error met"] += 1
            self._repair()

    def _full_disk(self) -> None:
        files = self._node.files
        files.is_full = True
        files.block_bytes = self._random.choice(BLOCKS)
        self._scheduler.later(self._long_us(), self._end_of_full_disk, files)

    def _end_of_full_disk(self, files: object) -> None:
        node = self._node
        if node.files is not files or node.broker is None:
            return
        node.files.is_full = False
        if not node.is_disturbed:
            return
        self._counts["full disk met"] += 1
        if node.is_fenced or self._random.random() < 0.3:
            self._repair()
        else:  # the disk has space again, and the broker continues
            self._counts["full disk survived"] += 1
            node.files.failures = 0

    def _repair(self) -> None:
        node = self._node
        is_kept = not node.files.drops_unsynced and self._random.random() < 0.7
        if self._swarm.is_durable and not is_kept:
            node.power_cut()
        else:
            self._counts["killed after a disk error"] += 1
            node.kill()
        self._start_later()

    def _compaction(self) -> None:
        """Count the broker's finished compactions: with this fault it compacts by itself."""
        broker = self._node.broker
        if broker is None:
            return
        offsets = dict(broker.data.checkpoints.cleaner_offsets)
        new = {each for each in offsets if offsets[each] != self._compacted.get(each)}
        self._counts["log compacted"] += bool(new)
        self._counts["offsets compacted"] += any(each.topic == CONSUMER_OFFSETS_TOPIC for each in new)
        self._compacted = offsets
