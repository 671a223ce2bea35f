"""The transaction coordinator, obvious: one mutable record for each id, every request completed at once.

Written from the description of the protocol, without code of the package. A client that gets
CONCURRENT_TRANSACTIONS tries again, at most once, since markers are written at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

LARGEST, EXHAUSTED = 32767, 32766
IDLE = ("Empty", "CompleteCommit", "CompleteAbort")
Told = tuple[str, int, int]


def error(name: str) -> Told:
    return name, -1, -1


@dataclass
class Id:
    """The state of one transactional id."""

    producer: int
    epoch: int = -1
    previous: int = -1
    last_epoch: int = -1
    timeout: int = 0
    state: str = "Empty"
    partitions: set[str] = field(default_factory=set)
    start: int = -1
    updated: int = 0
    client_version: int = 0


class Coordinator:
    """``version`` is the feature level of transaction.version."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.ids: dict[str, Id] = {}
        self.fresh = count()
        self.markers: list[tuple[int, int, bool, frozenset[str], int]] = []

    def init(self, name: str, timeout: int, now: int, producer: int = -1, epoch: int = -1) -> Told:
        if (producer == -1) != (epoch == -1) or not name:
            return error("INVALID_REQUEST")
        if timeout <= 0 or timeout > 900_000:
            return error("INVALID_TRANSACTION_TIMEOUT")
        it = self.ids.get(name) or Id(next(self.fresh))
        is_other = producer != -1 and it.epoch != -1 and producer != it.producer
        if is_other and (producer != it.previous or epoch < EXHAUSTED):
            return error("PRODUCER_FENCED")
        if it.state == "Ongoing":
            self._fence(it, now)
            return self.init(name, timeout, now, producer, epoch)
        held = it.producer
        if it.epoch >= EXHAUSTED:
            if producer != -1 and epoch != it.epoch:
                return error("UNKNOWN_SERVER_ERROR")
            it.last_epoch = -1 if producer == -1 else it.epoch
            it.producer, it.epoch = next(self.fresh), 0
        elif producer == -1:
            it.epoch, it.last_epoch = it.epoch + 1, -1
        elif it.epoch in (-1, epoch):
            it.epoch, it.last_epoch = it.epoch + 1, it.epoch
        elif epoch != it.last_epoch:
            return error("PRODUCER_FENCED")
        self.ids[name] = it
        it.state, it.partitions, it.start, it.updated, it.timeout = "Empty", set(), -1, now, timeout
        it.previous = held
        return "NONE", it.producer, it.epoch

    def _check(self, name: str, producer: int, epoch: int) -> str:
        if not name:
            return "INVALID_REQUEST"
        if name not in self.ids or self.ids[name].producer != producer:
            return "INVALID_PRODUCER_ID_MAPPING"
        return "NONE" if self.ids[name].epoch == epoch else "PRODUCER_FENCED"

    def add(self, name: str, producer: int, epoch: int, partitions: set[str], version: int, now: int) -> Told:
        if (wrong := self._check(name, producer, epoch)) != "NONE":
            return error(wrong)
        it = self.ids[name]
        if it.state == "Ongoing" and partitions <= it.partitions:
            return error("NONE")
        if it.state != "Ongoing":
            it.start = now
        it.state, it.updated, it.client_version, it.previous = "Ongoing", now, version, it.producer
        it.partitions = it.partitions | partitions
        return error("NONE")

    def verify(self, name: str, producer: int, epoch: int, partitions: set[str]) -> tuple[str, set[str]]:
        if (wrong := self._check(name, producer, epoch)) != "NONE":
            return wrong, set()
        return "NONE", partitions - self.ids[name].partitions

    def end(self, name: str, producer: int, epoch: int, commit: bool, version: int, now: int) -> Told:
        complete = "CompleteCommit" if commit else "CompleteAbort"
        if version < 2:
            if (wrong := self._check(name, producer, epoch)) != "NONE":
                return error(wrong)
            it = self.ids[name]
            if it.state == "Ongoing":
                self._finish(it, commit, 0, now)
                return error("NONE")
            return error("NONE" if it.state == complete else "INVALID_TXN_STATE")
        if not name:
            return error("INVALID_REQUEST")
        it = self.ids.get(name) or Id(-2)
        rotated = producer == it.previous and epoch == EXHAUSTED and it.epoch == 0
        if producer != it.producer and not rotated:
            return error("INVALID_PRODUCER_ID_MAPPING")
        retry = (rotated or it.epoch == epoch + 1) and it.state.startswith("Complete")
        if not retry and epoch != it.epoch:
            return error("PRODUCER_FENCED")
        if retry:
            return ("NONE", it.producer, it.epoch) if it.state == complete else error("INVALID_TXN_STATE")
        if it.state != "Ongoing" and commit:
            return error("INVALID_TXN_STATE")
        if commit and it.epoch == LARGEST:
            return error("UNKNOWN_SERVER_ERROR")
        self._finish(it, commit, 2, now)
        return "NONE", it.producer, it.epoch

    def _finish(self, it: Id, commit: bool, version: int, now: int) -> None:
        """Prepare, write the markers, complete."""
        following = it.producer
        if version == 2:
            if it.epoch >= EXHAUSTED:
                following = next(self.fresh)
            it.last_epoch, it.epoch = it.epoch, min(it.epoch + 1, LARGEST)
            if it.state in IDLE:
                it.start = now
        if it.partitions:
            self.markers.append((it.producer, it.epoch, commit, frozenset(it.partitions), version))
        it.previous = it.producer
        if following != it.producer:
            it.producer, it.epoch = following, 0
        it.state = "CompleteCommit" if commit else "CompleteAbort"
        it.partitions, it.updated, it.client_version = set(), now, version

    def _fence(self, it: Id, now: int) -> None:
        if self.version < 2:
            it.epoch, it.last_epoch = min(it.epoch + 1, LARGEST), -1
        self._finish(it, False, 2 if self.version == 2 else 0, now)

    def time_out(self, now: int) -> None:
        for it in self.ids.values():
            if it.state == "Ongoing" and it.start + it.timeout < now:
                self._fence(it, now)

    def expire(self, now: int) -> None:
        for name, it in list(self.ids.items()):
            if it.state in IDLE and it.updated <= now - 7 * 86_400_000:
                del self.ids[name]
