"""What the transaction coordinator knows, from the ``__transaction_state`` partitions of a directory.

The last record of a transactional id is its state, a tombstone forgets it. Only last records are decoded,
so that a large log costs one pass.
Whoever says "no transactional id has this producer id" must have seen the whole topic. How many partitions
it has is written nowhere in them, but a transactional id lies in the partition that its hash names, which
tells most other numbers of partitions apart.
Source: TransactionStateManager.partitionFor and loadTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import gcd
from typing import TYPE_CHECKING

from txnkafka.logdir.replay import KEPT_RECORD, damaged, replay
from txnkafka.wire.records import TransactionMetadata, decode_transaction_log

if TYPE_CHECKING:
    from txnkafka.logdir.finding import Finding
    from txnkafka.logdir.partition import PartitionView

__all__ = ["TRANSACTION_STATE_TOPIC", "CoordinatorView", "partition_of", "replay_transaction_log"]

TRANSACTION_STATE_TOPIC = "__transaction_state"
DEFAULT_PARTITIONS = 50  # transaction.state.log.num.partitions
MOST_PARTITIONS = 1000
MOST_MISSING = 100  # that are named


@dataclass(frozen=True)
class CoordinatorView:
    """The state of every transactional id in the partitions that are here.

    ``partitions`` are the numbers of those partitions, ``located`` says in which one each transactional id
    was found, ``damaged_partitions`` could not be read to their end.
    """

    transactions: Mapping[str, TransactionMetadata]
    located: Mapping[str, int]
    partitions: tuple[int, ...]
    damaged_partitions: frozenset[int]
    findings: tuple[Finding, ...] = ()

    @cached_property
    def _owners(self) -> dict[int, TransactionMetadata]:
        # A producer id that is current somewhere is nobody else's former one, whatever comes later here.
        ordered = sorted(self.transactions.values(), key=lambda each: each.last_update_timestamp)
        owners = {each.next_producer_id: each for each in ordered}
        owners |= {each.previous_producer_id: each for each in ordered}
        owners |= {each.producer_id: each for each in ordered}
        owners.pop(-1, None)
        return owners

    @property
    def newest_ms(self) -> int:
        """When a coordinator last changed a state that is here, by its own clock; -1 when there is none."""
        states = self.transactions.values()
        return max((max(each.last_update_timestamp, each.start_timestamp) for each in states), default=-1)

    def owner(self, producer_id: int) -> TransactionMetadata | None:
        """The transactional id that has this producer id now, had it last, or gets it next."""
        return self._owners.get(producer_id)

    @property
    def transactional_ids(self) -> dict[int, str]:
        """The transactional id of each producer id that has an ``owner``."""
        return {producer_id: each.transactional_id for producer_id, each in self._owners.items()}

    @cached_property
    def missing_partitions(self) -> tuple[int, ...]:
        """Partitions of the topic that are certainly not here, the first hundred of them; there may be more
        (see ``is_complete``). Numbers are those of names, which anybody may have made."""
        there = set(self.partitions)
        missing = (number for number in range(max(there, default=-1)) if number not in there)
        return tuple(islice(missing, MOST_MISSING))

    @cached_property
    def is_complete(self) -> bool:
        """Every partition of the topic is here and could be read, as far as the directory can tell."""
        count = len(self.partitions)
        if not count or self.missing_partitions or self.damaged_partitions:
            return False
        # Of every possible number of partitions, hash - partition is a multiple.
        multiple = 0
        for name, partition in self.located.items():
            multiple = gcd(multiple, string_hash(name) - partition)
        if multiple % count:
            return False
        if count == DEFAULT_PARTITIONS:
            return True
        return all(multiple % more for more in range(count + 1, MOST_PARTITIONS + 1))

    def is_current(self, transactional_id: str) -> bool:
        """The state of this transactional id is its last one: nothing behind it was lost to damage."""
        return self.located.get(transactional_id) not in self.damaged_partitions


def string_hash(text: str) -> int:
    """``Utils.abs(text.hashCode())`` of Java: over UTF-16 code units, 32 bits, the smallest number becomes
    0."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (value * 31 + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    signed = value - (value >> 31 << 32)
    return 0 if signed == -(1 << 31) else abs(signed)


def partition_of(text: str, partitions: int) -> int:
    """The partition of ``__transaction_state`` (or of ``__consumer_offsets``) that an id belongs to."""
    return string_hash(text) % partitions


def replay_transaction_log(views: Iterable[PartitionView]) -> CoordinatorView:
    """Load the partitions of ``__transaction_state``."""
    transactions: dict[str, TransactionMetadata] = {}
    located: dict[str, int] = {}
    partitions: list[int] = []
    damage: set[int] = set()
    findings: list[Finding] = []
    for view in views:
        before = len(findings)
        partitions.append(view.partition)
        for each in _last_states(view, findings):
            transactions[each.transactional_id] = each
            located[each.transactional_id] = view.partition
        if len(findings) > before:
            damage.add(view.partition)
    return CoordinatorView(
        transactions, located, tuple(sorted(partitions)), frozenset(damage), tuple(findings)
    )


def _kept_bytes(last: Mapping[bytes, bytes | None]) -> int:
    return sum(KEPT_RECORD + len(key) + len(value or b"") for key, value in last.items())


def _last_states(view: PartitionView, findings: list[Finding]) -> list[TransactionMetadata]:
    last: dict[bytes, bytes | None] = {}
    for event in replay(view, findings, lambda: _kept_bytes(last)):
        if event.key is not None:
            last[event.key] = event.value
    found = []
    for key, value in last.items():
        record = decode_transaction_log(key, value)
        metadata = TransactionMetadata.of(record)
        if metadata is not None:
            found.append(metadata)
        elif record.key is not None and record.error is not None:
            findings.append(damaged(view, f"the state of {record.key['transactional_id']!r}: {record.error}"))
    return found
