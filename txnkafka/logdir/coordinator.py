"""Loads the transaction coordinator's state from the ``__transaction_state`` partitions of a directory.

The statement "no transactional id has this producer id" needs the whole topic. The partitions do not store
their number, but the hash of a transactional id selects its partition, which excludes most wrong numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import gcd
from typing import TYPE_CHECKING

from txnkafka.coordinator import TransactionStates, string_hash
from txnkafka.coordinator.partitions import DEFAULT_PARTITIONS
from txnkafka.coordinator.txn.txn_image import PREPARED
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.replay import damaged, replay
from txnkafka.logdir.requested import records_requested
from txnkafka.model import IsolationLevel
from txnkafka.wire.records import TransactionMetadata, decode_transaction_log

if TYPE_CHECKING:
    from txnkafka.logdir.finding import Finding
    from txnkafka.logdir.log_view import LogView

MOST_PARTITIONS = 1000
MOST_MISSING = 100  # limit of the list


@dataclass(frozen=True)
class CoordinatorView:
    """The state of every transactional id in this directory's partitions.

    ``partitions`` are their numbers, ``located`` maps transactional ids to partitions, ``damaged_partitions``
    could not be read to their end. ``views`` read the partitions again."""

    transactions: Mapping[str, TransactionMetadata]
    located: Mapping[str, int]
    partitions: tuple[int, ...]
    damaged_partitions: frozenset[int]
    findings: tuple[Finding, ...] = ()
    views: Mapping[int, LogView] = field(default_factory=dict)

    def last_prepared(self, transactional_id: str) -> TransactionMetadata | None:
        """Read the last PREPARE_* record of a transactional id, which lists the partitions of its last ended
        transaction; None if the log no longer has it."""
        view, found = self.views.get(self.located.get(transactional_id, -1)), None
        if view is None:
            return None
        with closing(view):
            request = ReadRequest(isolation_level=IsolationLevel.READ_UNCOMMITTED, on_corrupt="skip")
            for record in records_requested(view, request):
                key = decode_transaction_log(record.key, None).key
                if key is None or key["transactional_id"] != transactional_id:
                    continue
                metadata = TransactionMetadata.of(decode_transaction_log(record.key, record.value))
                if metadata is not None and metadata.state in PREPARED:
                    found = metadata
        return found

    @cached_property
    def _owners(self) -> dict[int, TransactionMetadata]:
        # Order of these updates: the current owner of a producer id overrides a former or future owner.
        ordered = sorted(self.transactions.values(), key=lambda state: state.last_update_timestamp)
        owners = {state.next_producer_id: state for state in ordered}
        owners |= {state.previous_producer_id: state for state in ordered}
        owners |= {state.producer_id: state for state in ordered}
        owners.pop(-1, None)
        return owners

    @property
    def newest_ms(self) -> int:
        """The time of the coordinator's last change of any state, by its clock in milliseconds; -1 without
        states."""
        states = self.transactions.values()
        return max((max(state.last_update_timestamp, state.start_timestamp) for state in states), default=-1)

    def owner(self, producer_id: int) -> TransactionMetadata | None:
        """Return the state of the transactional id that owns this producer id: the current, last or next
        owner."""
        return self._owners.get(producer_id)

    @property
    def transactional_ids(self) -> dict[int, str]:
        """Return the transactional id of each producer id that has an ``owner``."""
        return {producer_id: owner.transactional_id for producer_id, owner in self._owners.items()}

    @cached_property
    def missing_partitions(self) -> tuple[int, ...]:
        """The first hundred partitions of the topic that are certainly missing; more may be missing (see
        ``is_complete``). The numbers come from directory names, which may be arbitrary."""
        there = set(self.partitions)
        missing = (number for number in range(max(there, default=-1)) if number not in there)
        return tuple(islice(missing, MOST_MISSING))

    @cached_property
    def is_complete(self) -> bool:
        """True if every partition of the topic is here and was read, as far as the directory shows."""
        count = len(self.partitions)
        if not count or self.missing_partitions or self.damaged_partitions:
            return False
        # hash - partition is a multiple of every possible number of partitions.
        multiple = 0
        for name, partition in self.located.items():
            multiple = gcd(multiple, string_hash(name) - partition)
        if multiple % count:
            return False
        if count == DEFAULT_PARTITIONS:
            return True
        return all(multiple % more for more in range(count + 1, MOST_PARTITIONS + 1))

    def is_current(self, transactional_id: str) -> bool:
        """Return True if this transactional id's state is its last: no later record was lost to damage."""
        return self.located.get(transactional_id) not in self.damaged_partitions


def replay_transaction_log(views: Iterable[LogView]) -> CoordinatorView:
    """Load the partitions of ``__transaction_state``."""
    transactions: dict[str, TransactionMetadata] = {}
    located: dict[str, int] = {}
    partitions: list[int] = []
    damage: set[int] = set()
    findings: list[Finding] = []
    read: dict[int, LogView] = {}
    for view in views:
        read[view.partition] = view
        before = len(findings)
        partitions.append(view.partition)
        for state in _last_states(view, findings):
            transactions[state.transactional_id] = state
            located[state.transactional_id] = view.partition
        if len(findings) > before:
            damage.add(view.partition)
    return CoordinatorView(
        transactions, located, tuple(sorted(partitions)), frozenset(damage), tuple(findings), read
    )


def _last_states(view: LogView, findings: list[Finding]) -> list[TransactionMetadata]:
    states = TransactionStates()
    for event in replay(view, findings, states.kept_bytes):
        states.replay(event)
    found = []
    for record, metadata in states.decoded():
        if metadata is not None:
            found.append(metadata)
        elif record.key is not None and record.error is not None:
            findings.append(damaged(view, f"the state of {record.key['transactional_id']!r}: {record.error}"))
    return found
