"""What transactional producers did, and what is wrong with a log that should be its outcome.

Knows no engine: a transaction is a list of records with the outcome that its producer was told.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["Outcome", "Transaction", "problems"]


class Outcome(Enum):
    """``ABORTED``: aborted, or a commit was never asked for. ``UNKNOWN``: a commit was asked for and not
    acknowledged."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass
class Transaction:
    """``records`` are partitions and values, in the order in which they were sent. No value comes twice."""

    records: Sequence[tuple[int, str]]
    outcome: Outcome = Outcome.ABORTED


def problems(
    producers: Mapping[str, Iterable[Transaction]], log: Mapping[int, Sequence[str]]
) -> Iterator[str]:
    """Say what a read_committed consumer of the partitions in ``log`` should not have got, or lacks:
    committed records lost, aborted ones seen, a record twice, half of a transaction, a wrong order, a record
    that nobody sent."""
    where = {value: partition for partition, values in log.items() for value in values}
    sent: dict[str, int] = {}
    for name, transactions in producers.items():
        for number, transaction in enumerate(transactions):
            yield from (f"{name}, transaction {number}: {each}" for each in _wrong(transaction, where))
            for _, value in transaction.records:
                sent[value] = len(sent)
    for partition, values in log.items():
        for value, count in Counter(values).items():
            if count > 1:
                yield f"partition {partition}: {value} comes {count} times"
            if value not in sent:
                yield f"partition {partition}: nobody sent {value}"
        yield from _disordered(partition, values, sent, producers)


def _wrong(transaction: Transaction, where: Mapping[str, int]) -> Iterator[str]:
    seen = [value for _, value in transaction.records if value in where]
    if transaction.outcome is Outcome.ABORTED and seen:
        yield f"aborted, and {seen} are seen"
    elif transaction.outcome is Outcome.COMMITTED and len(seen) < len(transaction.records):
        yield f"committed, and only {seen} of {transaction.records} are seen"
    elif 0 < len(seen) < len(transaction.records):
        yield f"only {seen} of {transaction.records} are seen"
    for partition, value in transaction.records:
        if where.get(value, partition) != partition:
            yield f"{value} is in partition {where[value]}, not in {partition}"


def _disordered(
    partition: int, values: Sequence[str], sent: Mapping[str, int], producers: Mapping[str, object]
) -> Iterator[str]:
    for name in producers:
        own = [value for value in values if value.startswith(f"{name}:") and value in sent]
        for before, after in itertools.pairwise(own):
            if sent[before] > sent[after]:
                yield f"partition {partition}: {after} comes behind {before}"
