"""What copiers of a topic did, what readers saw meanwhile, and what is wrong with that.

Knows no engine and no client: a copier is its journal, a reader the records that it was given, with times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.server.transaction_history import Outcome, Transaction, problems

__all__ = ["Copied", "Copying", "Seen", "journal", "wrong"]


@dataclass
class Copying(Transaction):
    """A transaction of a copier. Its values are ``COPIER:START.NUMBER/INPUT``, so none comes twice."""

    decided_at: float = math.inf
    """When its commit was asked for, in seconds of the monotonic clock; infinite if it never was."""


class Seen(NamedTuple):
    """A record that a reader was given; ``at`` in seconds of the monotonic clock."""

    offset: int
    value: str
    at: float


Records = Mapping[int, Sequence[tuple[int, str]]]


class Copied(NamedTuple):
    """A run. Partitions of the topic and of its copy have the same numbers."""

    sent: Mapping[int, Sequence[str]]
    """What the writer of the topic was told is there."""
    inputs: Records
    copiers: Mapping[str, Sequence[Copying]]
    committed: Records
    """The copy in read_committed; ``everything`` is the same log in read_uncommitted."""
    everything: Records
    committed_reader: Mapping[int, Sequence[Seen]]
    everything_reader: Mapping[int, Sequence[Seen]]
    offsets: Mapping[int, int]
    """What the group has committed."""


def journal(lines: Iterable[str]) -> list[Copying]:
    """The transactions of a copier, in order. A line is a time in nanoseconds, ``begin``, ``decide``,
    ``committed`` or ``aborted``, and for ``begin`` the records as PARTITION:VALUE; other lines say what else
    happened, and are for people."""
    found: list[Copying] = []
    for line in lines:
        time, event, *records = line.split()
        if event == "begin":
            pairs = (record.split(":", 1) for record in records)
            found.append(Copying([(int(partition), value) for partition, value in pairs]))
        elif event == "decide":
            found[-1].decided_at = int(time) / 1e9
            found[-1].outcome = Outcome.UNKNOWN
        elif event in ("committed", "aborted"):
            found[-1].outcome = Outcome(event)
    return found


def wrong(run: Copied) -> Iterator[str]:
    """Say what is wrong: an input lost, copied twice or in another order, anything of an aborted transaction
    or of half of one that a read_committed consumer has got, or got before its commit was asked for, a reader
    that has seen another log, offsets of the group that are not those of what was copied."""
    inputs = {partition: [value for _, value in records] for partition, records in run.inputs.items()}
    copies = {partition: [value for _, value in records] for partition, records in run.committed.items()}
    for partition, values in inputs.items():
        yield from _differences(f"input {partition}", values, run.sent.get(partition, []))
        originals = [value.partition("/")[2] for value in copies.get(partition, [])]
        yield from _differences(f"copy of partition {partition}", originals, values)
    yield from problems(run.copiers, copies)
    yield from _unlike("read_committed", run.committed_reader, run.committed)
    yield from _unlike("read_uncommitted", run.everything_reader, run.everything)
    yield from _early(run)
    ends = {partition: records[-1][0] + 1 if records else 0 for partition, records in run.inputs.items()}
    if dict(run.offsets) != ends:
        yield f"the group has committed {dict(run.offsets)}, copied is up to {ends}"


def _differences(what: str, found: Sequence[str], wanted: Sequence[str]) -> Iterator[str]:
    if list(found) == list(wanted):
        return
    if lost := sorted(set(wanted) - set(found)):
        yield f"{what}: {len(lost)} lost, {lost[:5]}"
    if strange := sorted(set(found) - set(wanted)):
        yield f"{what}: {len(strange)} that nobody wrote, {strange[:5]}"
    if len(set(found)) < len(found):
        yield f"{what}: {len(found) - len(set(found))} come twice"
    if set(found) == set(wanted) and len(found) == len(wanted):
        yield f"{what}: another order"


def _unlike(level: str, seen: Mapping[int, Sequence[Seen]], log: Records) -> Iterator[str]:
    for partition, records in log.items():
        given = [(each.offset, each.value) for each in seen.get(partition, [])]
        if given != list(records):
            at = next(
                (at for at, both in enumerate(zip(given, records, strict=False)) if both[0] != both[1]), -1
            )
            yield f"the {level} reader has seen another log of partition {partition}, from record {at} on"


def _early(run: Copied) -> Iterator[str]:
    decided = {
        value: each.decided_at
        for copies in run.copiers.values()
        for each in copies
        for _, value in each.records
    }
    for partition, records in run.committed_reader.items():
        for seen in records:
            if seen.at < decided.get(seen.value, math.inf):
                yield f"partition {partition}: {seen.value} was seen before its commit was asked for"
