"""Bugs that are put into the clients of the package are found by a run: the checkers judge the results that
the programs got, and the messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import sampled
from tests.simulation.seeds import findings
from tests.simulation.test_group_bugs import COPIERS
from tests.simulation.test_simulation import ORDINARY
from txnkafka.client.consumer import commits, fetched_data
from txnkafka.client.consumer.consumer_group import ConsumerGroup
from txnkafka.client.consumer.core import ConsumerCore
from txnkafka.client.consumer.fetched_data import FetchedData
from txnkafka.client.consumer.positions import Positions
from txnkafka.client.consumer.subscription import Place, Subscription
from txnkafka.client.group_metadata import ConsumerGroupMetadata
from txnkafka.client.producer.sender import Sender
from txnkafka.client.producer.sequences import Sequences
from txnkafka.client.producer.txn_manager import TransactionManager
from txnkafka.model import NO_SEQUENCE
from txnkafka.testing.simulation.swarm import Swarm

LOSSES = replace(
    ORDINARY, drop=0.02, lose_answer=0.04, cut=0.02, think_us=500, faults=("kill",), fault_every=300
)
CONSUMERS = replace(COPIERS, copier_protocols=("consumer",))

ORIGINAL: dict[str, Any] = {
    "retry": Sender._retry,
    "number": Sequences.number,
    "hidden_ranges": fetched_data.hidden_ranges,
    "FetchedData": FetchedData.__init__,
    "write_fetch": commits.write_fetch,
}


async def at_once(*_: object) -> None:
    """Nothing is waited for."""


def nothing(*_: object) -> None:
    """Nothing is done."""


def none_hidden(*_: object) -> list[Any]:
    """The list of aborted transactions is not looked at."""
    return []


def with_a_new_sequence(self: Sender, queue: Any, batch: Any, pause_ms: int) -> None:
    """A batch that is repeated gets the next sequence."""
    ORIGINAL["retry"](self, queue, batch, pause_ms)
    assert self._txn is not None
    entry = self._txn.entry(batch.partition)
    if entry.in_flight == [batch]:
        entry.remove(batch)
        batch.base_sequence = NO_SEQUENCE


def with_the_same_sequence(self: Sequences, batch: Any) -> None:
    """The next batch has the sequence of this one."""
    ORIGINAL["number"](self, batch)
    self.next = batch.base_sequence


def hidden_to_the_end(index: Any, aborted: Any) -> list[Any]:
    """The marker of an aborted transaction is not looked for."""
    return [each._replace(last_offset=1 << 62) for each in ORIGINAL["hidden_ranges"](index, aborted)]


def one_too_far(self: FetchedData, *arguments: Any, **named: Any) -> None:
    """The position after a response skips an offset."""
    ORIGINAL["FetchedData"](self, *arguments, **named)
    self.end_offset += self.size > 0


def without_a_member(self: ConsumerCore) -> ConsumerGroupMetadata:
    """The metadata have no generation and no member id, so that the broker checks neither."""
    return ConsumerGroupMetadata(self.config.group_id)


def with_its_partitions(self: ConsumerGroup, code: Any) -> None:
    """A member that was expelled joins again, and goes on in the partitions that it had."""
    self.member_epoch = 0
    self._sent, self._target = {}, None
    self._due.notify()


def with_buffered_records(self: Subscription) -> dict[Any, tuple[int, int]]:
    """Records that ``poll`` has not returned yet count as read."""
    return {key: (each.fetch_offset, -1) for key, each in self.assigned.items() if each.position >= 0}


async def at_the_beginning(self: Positions, states: Any) -> None:
    """Committed offsets are not looked up."""
    for state in states:
        state.place = Place.BY_POLICY


def of_open_transactions(config: Any, *arguments: Any) -> Any:
    """Offsets in open transactions are not waited for."""
    return ORIGINAL["write_fetch"](replace(config, isolation_level="read_uncommitted"), *arguments)


PLANTED: dict[str, tuple[Any, str, Callable[..., Any], Swarm, str]] = {
    "a repeated batch has a new sequence": (Sender, "_retry", with_a_new_sequence, LOSSES, "duplicate"),
    "sequences do not grow": (Sequences, "number", with_the_same_sequence, ORDINARY, "lost-write|torn"),
    "a commit does not wait for the records": (Sender, "drained", at_once, ORDINARY, "lost-write|torn|G1a"),
    "a failed record does not fail the commit": (
        TransactionManager, "fail_transaction", nothing, replace(LOSSES, drop=0.1), "lost-write|torn|G1a",
    ),
    "aborted records are returned": (fetched_data, "hidden_ranges", none_hidden, ORDINARY, "G1a"),
    "an aborted transaction hides later ones": (
        fetched_data, "hidden_ranges", hidden_to_the_end, ORDINARY, "poll-skip",
    ),
    "positions go too far": (FetchedData, "__init__", one_too_far, ORDINARY, "poll-skip|nonmonotonic-poll"),
    "offsets are sent without the member": (
        ConsumerCore, "group_metadata", without_a_member, COPIERS, "copied-twice",
    ),
    "an expelled member keeps its positions": (
        ConsumerGroup, "on_lost", with_its_partitions, CONSUMERS, "owned-by-two|copied-twice",
    ),
    "positions are committed before poll": (
        Subscription, "positions", with_buffered_records, replace(COPIERS, copiers=0, group_consumers=2),
        "group-skip",
    ),
    "a member begins at the beginning": (
        Positions, "_to_committed", at_the_beginning, COPIERS, "copied-twice",
    ),
    "offsets of open transactions are taken": (
        commits, "write_fetch", of_open_transactions, COPIERS, "copied-twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(PLANTED, every=4))
def test_a_bug_of_a_client_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead, swarm, text = PLANTED[name]
    monkeypatch.setattr(where, what, instead)
    assert re.search(text, findings(swarm, events=3_000))
