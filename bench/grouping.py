"""The contests about consumer groups: rebalances, heartbeats, offsets in transactions, starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.group_sides import (
    CopyingClients,
    CopyingJavaClient,
    FirstConsumerSide,
    HeartbeatSide,
    LoadedOffsetsSide,
    RebalanceSide,
)
from bench.harness import Comparison, Contest, Side
from bench.servers import Kafka, Txnkafka
from bench.transacting import Load, TransactionsSide

__all__ = ["FULL", "QUICK", "Sizes", "contests"]


@dataclass(frozen=True)
class Sizes:
    """Units of a round of each contest, and seconds of use before the first round."""

    rounds: int
    warm_seconds: float
    rebalances: int  # of ten members; of a hundred a tenth
    heartbeats: int  # times 20 of each of a hundred members
    transactions: int
    groups: int  # with ten offsets each
    starts: int


FULL = Sizes(
    rounds=9, warm_seconds=4, rebalances=100, heartbeats=20, transactions=400, groups=10_000, starts=9
)  # fmt: skip
QUICK = Sizes(
    rounds=3, warm_seconds=1, rebalances=30, heartbeats=5, transactions=100, groups=10_000, starts=2
)  # fmt: skip

PATIENT = {"group.initial.rebalance.delay.ms": "3000"}  # all members are to be in the first generation
AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
REBALANCE_NOTE = (
    "rebalances and heartbeats: members of the classic protocol without a client library, each on a "
    "connection of its own. In a rebalance the leader joins again, then all others, and all get their "
    "assignments; txnkafka syncs each generation before it is answered, `txnkafka, page cache` as little "
    "as Kafka does. CPU time and memory are those of the server; the wall clock has the members' own work "
    "in Python."
)
OFFSETS_NOTE = (
    "transactions with offsets: one record and one offset of a group in each, `sendOffsetsToTransaction` "
    "before the commit. CPU time and memory are those of the server process, rates and percentiles are "
    "the client's."
)
LOAD_NOTE = (
    "start with committed offsets: ten of each group; from the start of the process until a group is "
    "coordinated and its offsets are answered."
)
FIRST_NOTE = (
    "first consumer of a group: from making a consumer of librdkafka until it has a record, with "
    "group.initial.rebalance.delay.ms=0; the server has run before."
)


def contests(sizes: Sizes) -> list[Contest]:
    """All of them."""
    found = [_rebalances(sizes, 1), _rebalances(sizes, 10), _rebalances(sizes, 100), _heartbeats(sizes)]
    found += [_transactions(sizes, "confluent-kafka"), _transactions(sizes, "java")]
    return [*found, _load(sizes), _first(sizes)]


def _rebalances(sizes: Sizes, members: int) -> Contest:
    count = sizes.rebalances if members < 100 else sizes.rebalances // 10

    def sides() -> Sequence[Side]:
        servers = [Txnkafka(settings=PATIENT), _unsynced(), Kafka(settings=PATIENT)]
        return [RebalanceSide(server, members, count) for server in servers]

    return Contest(
        f"rebalance of {members} member{'s' * (members > 1)}",
        "rebalances",
        lambda: count,
        sides,
        [*_both(by_wall=True), *_both()],
        sizes.rounds,
        REBALANCE_NOTE,
    )


def _heartbeats(sizes: Sizes) -> Contest:
    count = sizes.heartbeats * HeartbeatSide.each * 100

    def sides() -> Sequence[Side]:
        servers = [Txnkafka(settings=PATIENT), Kafka(settings=PATIENT)]
        return [HeartbeatSide(server, 100, sizes.heartbeats) for server in servers]

    return Contest(
        "heartbeats of 100 members",
        "heartbeats",
        lambda: count,
        sides,
        [Comparison("txnkafka", "kafka"), Comparison("txnkafka", "kafka", by_wall=True)],
        sizes.rounds,
        REBALANCE_NOTE,
    )


def _transactions(sizes: Sizes, client: str) -> Contest:
    def sides() -> Sequence[Side]:
        make = CopyingClients if client == "confluent-kafka" else CopyingJavaClient
        servers = [Txnkafka(), _unsynced(), Kafka()]
        warm = sizes.warm_seconds
        return [
            TransactionsSide(each, make, Load(), sizes.transactions, warm_seconds=warm) for each in servers
        ]

    return Contest(
        f"transactions with offsets of a group, {client}",
        "transactions",
        lambda: sizes.transactions,
        sides,
        [*_both(by_wall=True), *_both()],
        sizes.rounds,
        OFFSETS_NOTE,
    )


def _load(sizes: Sizes) -> Contest:
    return Contest(
        f"start with {sizes.groups * 10:,} committed offsets",
        "start",
        lambda: 1,
        lambda: [LoadedOffsetsSide(server, sizes.groups) for server in (Txnkafka(), Kafka())],
        [Comparison("txnkafka", "kafka", by_wall=True), Comparison("txnkafka", "kafka")],
        sizes.starts,
        LOAD_NOTE,
    )


def _first(sizes: Sizes) -> Contest:
    def sides() -> Sequence[Side]:
        return [FirstConsumerSide(server) for server in (Txnkafka(settings=AT_ONCE), Kafka(settings=AT_ONCE))]

    return Contest(
        "first consumer of a group",
        "start",
        lambda: 1,
        sides,
        [Comparison("txnkafka", "kafka", by_wall=True), Comparison("txnkafka", "kafka")],
        2 * sizes.starts + 1,
        FIRST_NOTE,
    )


def _unsynced() -> Txnkafka:
    return Txnkafka("page_cache", PATIENT, name="txnkafka, page cache")


def _both(*, by_wall: bool = False) -> list[Comparison]:
    return [Comparison(name, "kafka", by_wall=by_wall) for name in ("txnkafka", "txnkafka, page cache")]
