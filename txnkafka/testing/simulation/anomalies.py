"""The anomalies of a history, with Jepsen's names where they exist, independent of the engine.

Legal and not reported: G0 (Kafka does not isolate writes), gaps between the offsets of one producer, a
transaction visible in one partition before another, and read_uncommitted reads of records that are aborted
later.

Source: ``jepsen.redpanda.workload.queue``; Adya's G1.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.testing.simulation.cycles import cycle
from txnkafka.testing.simulation.group_anomalies import GROUP_CHECKS
from txnkafka.testing.simulation.history import Outcome
from txnkafka.testing.simulation.member_anomalies import MEMBER_CHECKS
from txnkafka.testing.simulation.registry_anomalies import REGISTRY_CHECKS
from txnkafka.testing.simulation.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnkafka.testing.simulation.history import History, Send

Partition = tuple[str, int]
MOST_SHOWN = 5  # per kind


class Anomaly(NamedTuple):
    """An observation that must never occur; ``name`` is Jepsen's."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def anomalies(history: History) -> list[Anomaly]:
    """Return all anomalies, a few per kind."""
    view = View(history)
    every = [(name, check(view)) for name, check in CHECKS.items()]
    others = {**GROUP_CHECKS, **MEMBER_CHECKS, **REGISTRY_CHECKS}
    every += [(name, check(history)) for name, check in others.items()]
    return [Anomaly(name, text) for name, texts in every for text in islice(texts, MOST_SHOWN)]


def _place(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def inconsistent_offsets(view: View) -> Iterator[str]:
    """Yield offsets with two records."""
    for partition, offset, before, number in view.conflicts:
        yield f"offset {offset} of {_place(partition)} has record {before}, and record {number}"


def duplicate(view: View) -> Iterator[str]:
    """Yield records of idempotent producers at two offsets."""
    for number, partition, first, second in view.repeated:
        sends = view.history.sends
        if number >= len(sends) or not sends[number].may_repeat:
            yield f"record {number} is at the offsets {first} and {second} of {_place(partition)}"


def phantom(view: View) -> Iterator[str]:
    """Yield records that no producer sent, or that were sent to another partition."""
    sends = view.history.sends
    for partition, number in view.offsets:
        if number >= len(sends):
            yield f"record {number} of {_place(partition)} was never sent"
        elif sends[number].partition != partition:
            yield f"record {number} of {_place(partition)} was sent to {_place(sends[number].partition)}"


def lost_write(view: View) -> Iterator[str]:
    """Yield acknowledged records of acknowledged or proven commits that are missing at the end."""
    history = view.history
    finals = {partition: view.final(partition) for _, partition in history.final}
    for send in history.sends:
        if send.acked_us < 0 or send.partition not in finals:
            continue
        is_committed = history.outcome(send) is Outcome.COMMITTED or send.transaction in view.proven
        final = finals[send.partition]
        if is_committed and send.number not in final and not view.may_be_gone(send, final):
            yield (
                f"record {send.number} of {send.process}, acknowledged at offset {send.offset} of "
                f"{_place(send.partition)}, is not there"
            )


def wrong_offset(view: View) -> Iterator[str]:
    """Yield records at other offsets than their acknowledgements."""
    for (partition, number), offset in view.offsets.items():
        if number < len(view.history.sends):
            send = view.history.sends[number]
            if send.offset not in (-1, offset) and not send.may_repeat:
                yield f"{number} of {_place(partition)} was acknowledged at {send.offset}, not {offset}"


def aborted_read(view: View) -> Iterator[str]:
    """G1a: yield read_committed reads of records that cannot have been committed."""
    history = view.history
    undecided = {
        number for transaction in history.transactions
        if transaction.outcome in (Outcome.ABORTED, Outcome.OPEN) for number in transaction.sends
    }  # fmt: skip
    for read in view.reads:
        if undecided.isdisjoint(read.numbers):
            continue
        for offset, number in read.values:
            if number in undecided:
                undecided.discard(number)  # reported once
                send = history.sends[number]
                yield (
                    f"{read.process} sees record {number} at {offset} of {_place(read.partition)}, of "
                    f"transaction {send.transaction} of {send.process}, which was not committed"
                )


def intermediate_read(view: View) -> Iterator[str]:
    """G1b, in one partition: yield polls with some records of a transaction, but without others at offsets
    that the poll has passed."""
    history = view.history
    offsets_of: dict[tuple[Partition, int], list[tuple[int, int]]] = defaultdict(list)
    for (partition, number), offset in view.offsets.items():
        if number < len(history.sends) and (of := view.transactions[number]) >= 0:
            offsets_of[partition, of].append((offset, number))
    for poll in history.polls:
        if not (poll.is_committed and poll.values) or history.topics[poll.partition[0]].is_compacted:
            continue
        numbers = {number for _, number in poll.values}
        for transaction in set(map(view.transactions.__getitem__, numbers)) - {-1}:
            for offset, number in offsets_of[poll.partition, transaction]:
                if poll.position <= offset < poll.end and number not in numbers:
                    yield (
                        f"{poll.process} sees transaction {transaction} without record {number} at {offset} "
                        f"of {_place(poll.partition)}"
                    )


def torn_transaction(view: View) -> Iterator[str]:
    """Yield transactions with some records visible at the end, and other acknowledged records missing."""
    history = view.history
    finals = {partition: view.final(partition) for _, partition in history.final}
    for transaction in history.transactions:
        sends = [history.sends[number] for number in transaction.sends]
        sends = [send for send in sends if send.partition in finals]
        there = [send for send in sends if send.number in finals[send.partition]]
        if not there or len(there) == len(sends):
            continue
        for send in sends:
            final = finals[send.partition]
            if send.number not in final and send.acked_us >= 0 and not view.may_be_gone(send, final):
                yield (
                    f"transaction {transaction.number} has record {there[0].number}, and not {send.number} "
                    f"of {_place(send.partition)}"
                )


def precommitted_read(view: View) -> Iterator[str]:
    """Yield read_committed reads of a record before its commit was requested, or within its own
    transaction."""
    history = view.history
    end_us = [history.transactions[of].end_us if of >= 0 else -1 for of in view.transactions]
    for read in view.reads:
        if max(map(end_us.__getitem__, read.numbers), default=-1) <= read.at_us:
            continue
        for number in read.numbers:
            if read.at_us < end_us[number]:
                yield f"{read.process} sees record {number} of {_place(read.partition)} before its commit"
    for transaction in history.transactions:
        own = set(transaction.sends) if transaction.polls else set()
        for number in transaction.polls:
            if number in own:
                yield f"transaction {transaction.number} reads its own record {number}"


def circular_information_flow(view: View) -> Iterator[str]:
    """G1c: yield cycles of transactions that have read each other's records."""
    history = view.history
    edges: dict[int, set[int]] = {}
    for transaction in history.transactions:
        read = {view.transactions[number] for number in transaction.polls if number < len(view.transactions)}
        edges[transaction.number] = read - {-1, transaction.number}
    found = cycle(edges)
    if found:
        yield "transactions " + " reads ".join(map(str, found))


def _known_between(view: View, partition: Partition) -> Callable[[int, int], list[int]]:
    """Return a function for the offsets, between two offsets, with committed records at the end, in order."""
    offsets = [offset for offset, _ in view.history.final.get((True, partition), ())]
    return lambda low, high: offsets[bisect_left(offsets, low) : bisect_right(offsets, high)]


def poll_skip(view: View) -> Iterator[str]:
    """Yield readers that pass the offset of a committed record without reading it."""
    history = view.history
    between = {partition: _known_between(view, partition) for _, partition in history.final}
    for poll in history.polls:
        if poll.partition not in between or history.topics[poll.partition[0]].is_deletable:
            continue
        seen = dict(poll.values)  # by offset
        for offset in between[poll.partition](poll.position, poll.end - 1):
            if offset not in seen:
                yield f"{poll.process} has passed {offset} of {_place(poll.partition)} without its record"


def nonmonotonic_poll(view: View) -> Iterator[str]:
    """Yield readers that go back or jump without a seek."""
    at: dict[tuple[str, Partition], int] = {}
    for poll in view.history.polls:
        if view.history.topics[poll.partition[0]].is_deletable:
            continue
        key = poll.process, poll.partition
        if not poll.is_new and at.get(key, poll.position) != poll.position:
            yield f"{poll.process} reads {_place(poll.partition)} from {poll.position}, and was at {at[key]}"
        at[key] = poll.end
        offsets = [offset for offset, _ in poll.values]
        if any(b <= a for a, b in pairwise(offsets)):
            yield f"{poll.process} gets the offsets {offsets} of {_place(poll.partition)} in one poll"
        elif offsets and not poll.position <= offsets[0] <= offsets[-1] < poll.end:
            place = _place(poll.partition)
            yield f"{poll.process} gets {offsets} of {place} for {poll.position} to {poll.end}"


def nonmonotonic_send(view: View) -> Iterator[str]:
    """Yield records of one process in another order than they were sent."""
    last: dict[tuple[str, Partition], tuple[int, int]] = {}
    for send in view.history.sends:
        offset = view.offsets.get((send.partition, send.number))
        if offset is None or send.may_repeat:
            continue
        before = last.get((send.process, send.partition))
        if before is not None and offset < before[0]:
            yield f"record {send.number} of {send.process} is at {offset}, behind {before[1]} at {before[0]}"
        last[send.process, send.partition] = offset, send.number


def realtime_append(view: View) -> Iterator[str]:
    """Yield records with a higher offset than a record sent after their acknowledgement."""
    places: dict[Partition, list[tuple[int, Send]]] = defaultdict(list)
    for send in view.history.sends:  # in send order
        offset = view.offsets.get((send.partition, send.number))
        if offset is not None and not send.may_repeat:
            places[send.partition].append((offset, send))
    for of in places.values():
        acked = sorted((send.acked_us, offset, send.number) for offset, send in of if send.acked_us >= 0)
        i, highest, which = 0, -1, -1
        for offset, send in of:
            while i < len(acked) and acked[i][0] < send.invoked_us:
                if acked[i][1] > highest:
                    highest, which = acked[i][1:]
                i += 1
            if offset < highest:
                yield f"record {send.number} is at {offset}, before {which} at {highest}, which was there"


def zombie_ack(view: View) -> Iterator[str]:
    """Yield successful requests of fenced producers, sent after the response to InitProducerId."""
    history = view.history
    fences: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for fence in history.fences:
        fences[fence.producer_id].append((fence.at_us, fence.producer_epoch))
    for ack in history.acks:
        for at_us, epoch in fences[ack.producer_id]:
            if at_us < ack.invoked_us and ack.producer_epoch < epoch:
                yield (
                    f"{ack.api} of producer {ack.producer_id} epoch {ack.producer_epoch} succeeds, sent at "
                    f"{ack.invoked_us}, fenced by epoch {epoch} at {at_us}"
                )
                break


def offsets_went_back(view: View) -> Iterator[str]:
    """Yield offsets in fetch responses that decrease or contradict each other."""
    last: dict[tuple[str, Partition], tuple[int, int, int]] = {}
    for each in view.history.progress:
        now = each.log_start_offset, each.last_stable_offset, each.high_watermark
        key = each.process, each.partition
        topic = view.history.topics[each.partition[0]]
        before = last.get(key, (0, 0, 0))
        if topic.loses_old:  # a power cut may restore segments removed by retention
            start, stable, high_watermark = before
            # of a transaction that began before the start: the start is the last stable offset as well
            before = (0, 0 if stable == start else stable, high_watermark)
        if not topic.is_deletable and any(a < b for a, b in zip(now, before, strict=True)):
            yield f"{each.process} is shown {now} of {_place(each.partition)} after {before}"
        if not now[0] <= now[2] or not now[1] <= now[2]:
            yield f"{each.process} is shown log start, last stable offset and high watermark {now}"
        last[key] = now


def producer_id_twice(view: View) -> Iterator[str]:
    """Yield producer ids of two transactional ids."""
    owners: dict[int, str] = {}
    for fence in view.history.fences:
        owner = owners.setdefault(fence.producer_id, fence.transactional_id)
        if owner != fence.transactional_id:
            yield f"producer id {fence.producer_id} is that of {owner} and of {fence.transactional_id}"


CHECKS: dict[str, Callable[[View], Iterator[str]]] = {
    "inconsistent-offsets": inconsistent_offsets,
    "duplicate": duplicate,
    "phantom": phantom,
    "lost-write": lost_write,
    "wrong-offset": wrong_offset,
    "G1a": aborted_read,
    "G1b": intermediate_read,
    "torn-transaction": torn_transaction,
    "precommitted-read": precommitted_read,
    "G1c": circular_information_flow,
    "poll-skip": poll_skip,
    "nonmonotonic-poll": nonmonotonic_poll,
    "nonmonotonic-send": nonmonotonic_send,
    "realtime-append": realtime_append,
    "zombie-ack": zombie_ack,
    "offsets-went-back": offsets_went_back,
    "producer-id-twice": producer_id_twice,
}
