"""Cuts the power at every moment of a workload, or fails each of its calls, and checks what the workload
promised.

A workload is a function of files, a clock and the promises that it records. Afterwards ``check`` opens the
remaining files, as any start does, and raises an AssertionError when a promise is broken.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from txnkafka.env import Clock, DataFiles
from txnkafka.errors import KafkaError
from txnkafka.testing.crash_states import CrashState, crash_state, crash_states
from txnkafka.testing.disk import EMPTY_DISK, ROOT, Disk
from txnkafka.testing.fault_plan import CallSite, FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.unsynced import Unsynced

__all__ = ["FAULTS", "Check", "Promises", "StepClock", "Workload", "explore", "fail_each_call", "replay"]


class StepClock:
    """A clock that advances by a millisecond with each call."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        self.now += 1
        return self.now


class Promises:
    """What a caller may rely on: from ``attempt`` on, an attempted change may be on the disk or not; from
    ``acknowledge`` on, an acknowledged one must be. ``unsynced`` are the paths of the files that a power cut
    may have damaged."""

    def __init__(self, files: MemoryFiles | None = None) -> None:
        self.attempted: list[Hashable] = []
        self.acknowledged: list[Hashable] = []
        self._files = files
        self.unsynced: set[str] = set()
        self._moments: list[tuple[int, int, int]] = []

    def attempt(self, what: Hashable) -> None:
        """Record that the change may be on the disk from now on."""
        self.attempted.append(what)
        self._note()

    def acknowledge(self, what: Hashable) -> None:
        """Record that the change must be on the disk from now on."""
        self.acknowledged.append(what)
        self._note()

    def _note(self) -> None:
        if self._files is not None:
            moment = len(self._files.journal), len(self.attempted), len(self.acknowledged)
            self._moments.append(moment)

    @property
    def news(self) -> set[int]:
        """The numbers of changes after which new promises were made."""
        return {changes for changes, _, _ in self._moments}

    def after(self, changes: int) -> Promises:
        """Return the promises that were made when this number of changes was made."""
        then = Promises()
        for number, attempted, acknowledged in self._moments:
            if number <= changes:
                then.attempted = self.attempted[:attempted]
                then.acknowledged = self.acknowledged[:acknowledged]
        return then


class Damage:
    """Tells which files are not synced in the crash states of ``files``; takes the states in order."""

    def __init__(self, files: MemoryFiles) -> None:
        self._journal = files.journal
        self._unsynced = Unsynced(files.base)
        self._unwritten: set[int] = set()  # created and not synced since: they may be empty
        self._made = 0

    def possible_on(self, state: CrashState) -> set[str]:
        """Return the paths of the files that the power cut may have damaged."""
        for change in self._journal[self._made : state.changes]:
            self._unsynced.make(change)
            if change.kind == "create":
                self._unwritten.add(change.inode)
            elif change.kind == "sync":
                self._unwritten.discard(change.inode)
        self._made = state.changes
        uncertain = {inode for inode in self._unsynced.writes if self._unsynced.uncertain(inode)}
        damaged = uncertain | self._unwritten
        return {path for path, inode in _paths(state.disk, ROOT, "") if inode in damaged}


def _paths(disk: Disk, directory: int, path: str) -> Iterator[tuple[str, int]]:
    for name, inode in disk.names[directory].items():
        if inode in disk.names:
            yield from _paths(disk, inode, f"{path}/{name}")
        else:
            yield f"{path}/{name}", inode


Workload = Callable[[DataFiles, Clock, Promises], None]
Check = Callable[[DataFiles, Promises], None]


def explore(
    workload: Workload,
    check: Check,
    *,
    at_least: int,
    limit: int | None = None,
    depth: int = 1,
    limit_below: int = 20,
    seed: int = 0,
    base: Disk = EMPTY_DISK,
) -> Counter[str]:
    """Check every state that a power cut during the workload may leave, or about ``limit`` of them. With
    ``depth`` 2, the power is cut again during the recovery in the check, and ``limit_below`` states of each
    are checked, too. Returns and prints the number of states of each kind. Raises AssertionError for fewer
    than ``at_least`` states."""
    files = MemoryFiles(StepClock(), base)
    promises = Promises(files)
    workload(files, StepClock(), promises)
    counts: Counter[str] = Counter()
    damage = Damage(files)
    for state in crash_states(files, limit=limit, seed=seed, news=promises.news):
        made = promises.after(state.changes)
        made.unsynced = damage.possible_on(state)
        recovered = _checked(check, state.disk, made, [state.name])
        counts[state.kind] += 1
        if depth > 1:
            again, before = Damage(recovered), made.unsynced
            for below in crash_states(recovered, limit=limit_below, seed=seed):
                made.unsynced = before | again.possible_on(below)
                _checked(check, below.disk, made, [state.name, below.name])
                counts[f"in recovery: {below.kind}"] += 1
    _print(workload, "crash states", counts)
    assert counts.total() >= at_least, f"{counts.total()} states, expected at least {at_least}"
    return counts


class Fault(NamedTuple):
    """A way in which a call fails."""

    error: int
    short: bool
    for_ever: bool

    def __str__(self) -> str:
        how = [errno.errorcode[self.error], *["short"] * self.short, *["for ever"] * self.for_ever]
        return " ".join(how)


FAULTS = [
    Fault(error, short, for_ever)
    for error, short in [(errno.EIO, False), (errno.EIO, True), (errno.ENOSPC, True), (errno.EINTR, False)]
    for for_ever in (False, True)
]


def fail_each_call(
    workload: Workload,
    check: Check,
    *,
    at_least: int,
    limit: int = 3,
    faults: Sequence[Fault] = FAULTS,
    expected: tuple[type[Exception], ...] = (OSError, KafkaError),
    base: Disk = EMPTY_DISK,
) -> Counter[CallSite]:
    """Fail each call of the workload in each way; then check the state when the process is killed, the worst
    state that a power cut at the end may leave, and ``limit`` others. The workload may continue, or end with
    one of the ``expected`` errors. Returns and prints how often each call failed. Raises AssertionError for
    fewer than ``at_least`` failures."""
    counts: Counter[CallSite] = Counter()
    for fault in faults:
        for number in count(1):
            files, promises = MemoryFiles(StepClock(), base), Promises()
            plan = FaultPlan(number, fault.error, short=fault.short, for_ever=fault.for_ever)
            with suppress(*expected):
                workload(FaultyFiles(files, plan), StepClock(), promises)
            if not plan.failed:
                break
            counts[plan.failed[0]] += 1
            name = f"call {number} ({' '.join(plan.failed[0])}) fails: {fault}"
            damage = Damage(files)
            killed = CrashState("killed", "killed", len(files.journal), files.disk())
            for state in (killed, *_ends(files, limit, seed=number)):
                promises.unsynced = damage.possible_on(state)
                _checked(check, state.disk, promises, [name, state.name])
    _print(workload, "failed calls", {" ".join(site): number for site, number in counts.items()})
    assert counts.total() >= at_least, f"{counts.total()} failures, expected at least {at_least}"
    return counts


def _ends(files: MemoryFiles, limit: int, seed: int) -> Iterator[CrashState]:
    """Yield the state that lost all unsynced changes, and ``limit`` others."""
    end, worst = len(files.journal), None
    for state in crash_states(files, begin=end):
        if not state.kind.startswith(("kept", "lost")):
            break
        if state.kind.endswith(("names kept", "names lost")):
            worst = state
    if worst is not None:
        yield worst
    yield from crash_states(files, limit=limit, begin=end, seed=seed)


def replay(workload: Workload, check: Check, *names: str, base: Disk = EMPTY_DISK) -> None:
    """Check one crash state of ``explore`` again, by its name; or one in recovery, by both names."""
    files = MemoryFiles(StepClock(), base)
    promises = Promises(files)
    workload(files, StepClock(), promises)
    for number, name in enumerate(names):
        state = crash_state(files, name)
        if number == 0:
            promises = promises.after(state.changes)
        promises.unsynced |= Damage(files).possible_on(state)
        files = _checked(check, state.disk, promises, names)


def _checked(check: Check, disk: Disk, promises: Promises, names: Sequence[str]) -> MemoryFiles:
    files = MemoryFiles(StepClock(), disk)
    try:
        check(files, promises)
    except Exception as error:
        error.add_note(f"on the disk that is called {' | '.join(map(repr, names))}")
        raise
    return files


def _print(workload: Workload, what: str, counts: Mapping[str, int]) -> None:
    print(f"\n{getattr(workload, '__name__', 'workload')}: {sum(counts.values())} {what}")
    for kind, number in sorted(counts.items()):
        print(f"  {number:8} {kind}")
