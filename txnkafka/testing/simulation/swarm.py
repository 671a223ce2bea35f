"""``Swarm``: the faults and actions of a seed. Each seed draws its own subset of faults and their rates: some
bugs appear only if one fault is frequent and another absent.

Source: Groce et al., "Swarm testing".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from txnkafka.env import Random

FAULTS: Final = (
    "power cut",
    "kill",
    "stop",
    "clock ahead",
    "clock back",
    "disk error",
    "full disk",
    "compaction",
    "second instance",
    "topic deletion",
)
"""Faults of the whole broker, one at a time. The network's faults are rates."""


ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
_NOT_IN_PAGE_CACHE: Final = ("power cut", "disk error")
_WEEK_MS: Final = 604_800_000
_DENSE: Final = 0.4  # fraction of the seeds
_OF_THE_DISK: Final = ("power cut", "kill", "disk error", "full disk")
_PROTOCOLS: Final = (("classic",), ("consumer",), ("classic", "consumer"))


@dataclass(frozen=True, slots=True)
class Swarm:
    """Rates are probabilities per message; times whose names end with ``_us`` are microseconds;
    ``fault_every`` is a number of events; ``preparers`` are producers with two-phase commit, ``shops`` send
    transactional messages. Probabilities:
    ``purge``, that a version 1 producer drops batches without a response and reuses their sequences;
    ``commit_at_once``, that a version 2 producer commits from within the broker's process; ``upgrade``, that
    a version 1 producer continues with version 2 before a transaction; ``checkpoint``, that the recovery
    points are written after a flush; ``small_fetches``, that a fetch has small limits. ``assignor`` is the
    one of groups whose members are all classic. With ``flushes_each``, the page cache mode acknowledges only
    synced data (``flush.messages`` is 1)."""

    faults: tuple[str, ...]
    drop: float
    hold: float
    duplicate: float
    lose_answer: float
    cut: float
    cut_recovery: float
    latency_us: int
    longest_hold_us: int
    sync_us: int
    fault_every: int
    think_us: int
    producers: int
    plain_producers: int
    start_epoch: int | None
    start_sequence: int
    durability: str
    segment_bytes: int
    retention_bytes: int
    transaction_timeout_ms: int
    transactional_id_expiration_ms: int
    forgets_producers: bool
    copiers: int
    group_consumers: int
    offset_keepers: int
    session_timeout_ms: int
    rebalance_timeout_ms: int
    initial_rebalance_delay_ms: int
    forgets_offsets: bool
    copier_protocols: tuple[str, ...]
    reader_protocols: tuple[str, ...]
    assignment_interval_ms: int
    purge: float
    commit_at_once: float
    upgrade: float
    checkpoint: float
    flushes_each: bool
    deletes_records: bool
    alters_settings: bool
    metadata_snapshot_bytes: int
    small_fetches: float
    assignor: str
    preparers: int
    shops: int

    @property
    def is_durable(self) -> bool:
        """True if acknowledged records survive a power cut."""
        return self.durability == "fsync" or self.flushes_each

    @property
    def has_late_requests(self) -> bool:
        """True if a request may arrive after the response to its copy."""
        return self.hold + self.duplicate > 0

    @property
    def has_groups(self) -> bool:
        """True if clients use the group coordinator."""
        return self.copiers + self.group_consumers + self.offset_keepers > 0

    @property
    def uses_groups(self) -> bool:
        """True if any client is a member of a group, also within the package."""
        return self.has_groups or self.shops > 0

    @classmethod
    def draw(cls, random: Random) -> Swarm:
        """Draw the swarm of a seed from ``random``."""
        swarm = cls._draw(random)
        if swarm.shops:  # an idle resolver must not lose its transactional ids again and again
            swarm = replace(swarm, transactional_id_expiration_ms=_WEEK_MS)
        return swarm._of_transactions(random) if random.random() < _DENSE else swarm

    def _of_transactions(self, random: Random) -> Swarm:
        """Return a swarm with only transactions and frequent disk faults: groups would take nine of ten
        events."""
        faults = tuple(fault for fault in _OF_THE_DISK if random.random() < 0.6)
        if not self.is_durable:
            faults = tuple(fault for fault in faults if fault not in _NOT_IN_PAGE_CACHE)
        return replace(
            self,
            faults=faults,
            cut=random.choice((0.0, 0.02, 0.1)),
            sync_us=random.choice((500, 5_000)),
            fault_every=random.choice((30, 100)),
            think_us=500,
            plain_producers=0,
            copiers=0,
            group_consumers=0,
            offset_keepers=0,
            shops=0,
        )

    @classmethod
    def _draw(cls, random: Random) -> Swarm:
        faults = tuple(fault for fault in FAULTS if random.random() < 0.5)
        durability = "page_cache" if random.random() < 0.15 else "fsync"
        flushes_each = durability == "page_cache" and random.random() < 0.5
        if durability == "page_cache" and not flushes_each:  # this mode guarantees nothing after a power cut
            faults = tuple(fault for fault in faults if fault not in _NOT_IN_PAGE_CACHE)

        def rate(most: float) -> float:
            return random.random() ** 2 * most if random.random() < 0.6 else 0.0

        return cls(
            faults=faults,
            drop=rate(0.04),
            hold=rate(0.04),
            duplicate=rate(0.10),
            lose_answer=rate(0.04),
            cut=rate(0.04),
            cut_recovery=rate(0.6),
            latency_us=random.choice((100, 400, 2_000)),
            longest_hold_us=random.choice((20_000, 200_000, 2_000_000)),
            sync_us=random.choice((50, 500, 5_000, 5_000)),
            fault_every=random.choice((60, 150, 500, 2_000)),
            think_us=random.choice((500, 5_000, 20_000)),
            producers=random.randrange(1, 5),
            plain_producers=random.randrange(3),
            start_epoch=random.randrange(32_758, 32_767) if random.random() < 0.3 else None,
            start_sequence=2**31 - random.randrange(1, 40) if random.random() < 0.3 else 0,
            durability=durability,
            segment_bytes=random.choice((700, 4_000, 4_000, 16_000, 16_000)),
            retention_bytes=random.choice((-1, 4_000)),
            transaction_timeout_ms=random.choice((300, 1_000, 3_000)),
            transactional_id_expiration_ms=random.choice((700, _WEEK_MS, _WEEK_MS)),
            forgets_producers=random.random() < 0.15,
            copiers=random.choice((0, 1, 2, 2, 3)),
            group_consumers=random.choice((0, 1, 2, 3)),
            offset_keepers=random.randrange(2),
            session_timeout_ms=random.choice((300, 1_000)),
            rebalance_timeout_ms=random.choice((100, 600)),
            initial_rebalance_delay_ms=random.choice((0, 50)),
            forgets_offsets=random.random() < 0.15,
            copier_protocols=random.choice(_PROTOCOLS),
            reader_protocols=random.choice(_PROTOCOLS),
            assignment_interval_ms=random.choice((0, 50, 1_000)),
            purge=random.choice((0.0, 0.0, 0.5)),
            commit_at_once=random.choice((0.0, 0.1, 0.6)),
            upgrade=random.choice((0.0, 0.05, 0.3)),
            checkpoint=random.choice((0.0, 0.0, 0.02, 0.2)),
            flushes_each=flushes_each,
            **_of_the_registry(random),
        )


def _of_the_registry(random: Random) -> dict[str, Any]:
    """Draw the assignor, the changes of topics and the limits of fetches."""
    return {
        "assignor": random.choice(ASSIGNORS),
        "deletes_records": random.random() < 0.3,
        "alters_settings": random.random() < 0.3,
        "metadata_snapshot_bytes": random.choice((20 << 20, 200, 1_000)),
        "small_fetches": random.choice((0.0, 0.1, 0.6)),
        **_apart(random),
    }


def _apart(random: Random) -> dict[str, Any]:
    """Draw the numbers of producers with two-phase commit and of shops, and leave later draws of the seed as
    they are."""
    apart = type(random)()
    apart.setstate(random.getstate())
    return {"preparers": apart.choice((0, 0, 0, 1, 2)), "shops": apart.choice((0, 0, 0, 0, 1, 2))}
