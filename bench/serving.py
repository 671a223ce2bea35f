"""The contests of the server, with their goals: whole clients over the loopback, its start, and parts of the
broker without sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.harness import Comparison, Contest, Limit, Missing, Side
from bench.servers import Kafka, Server, Txnkafka, kfake
from bench.transacting import Client, ConfluentClients, JavaClient, Load, TransactionsSide

__all__ = ["FULL", "QUICK", "Sizes", "contests"]


@dataclass(frozen=True)
class Sizes:
    """Units of each round, and seconds of use before the first."""

    rounds: int
    warm_seconds: float
    confluent: int
    java: int
    concurrent: int


FULL = Sizes(rounds=9, warm_seconds=4, confluent=400, java=200, concurrent=1920)
QUICK = Sizes(rounds=3, warm_seconds=1, confluent=100, java=50, concurrent=640)

FLUSHED = {"log.flush.interval.messages": "1"}
# client: goals against Kafka's page cache, against Kafka with fsync
TRANSACTION_GOALS = {"confluent-kafka": (1.25, 3.5), "java": (4.0, 20.0)}
P99_MS = 5.0
CPU_MS = 0.25
CONCURRENT_GOAL = 2.0
CONCURRENT = Load(producers=32, records=10, partitions=10)
TRANSACTIONS_NOTE = (
    "transactions: CPU time and memory are those of the server process; rates and percentiles (of the "
    "transactions of all rounds) are by the wall clock of the client, on the same machine. txnkafka "
    "answers when everything is synced; `kafka` answers from the page cache, its default; `kafka, fsync` has "
    "log.flush.interval.messages=1; `kfake` keeps everything in memory."
)


def contests(sizes: Sizes) -> list[Contest]:
    """All of them."""
    return [
        _one_record(sizes, "confluent-kafka", partial(ConfluentClients, Load()), sizes.confluent),
        _one_record(sizes, "java", JavaClient, sizes.java),
        _concurrent(sizes),
    ]


def _one_record(sizes: Sizes, name: str, client: Callable[[], Client], count: int) -> Contest:
    def sides() -> Sequence[Side | Missing]:
        servers = [Txnkafka(), Kafka(), Kafka("kafka, fsync", FLUSHED), kfake()]
        return [_transacting(server, client, Load(), count, sizes) for server in servers]

    page_cache, fsync = TRANSACTION_GOALS[name]
    return Contest(
        f"transactions of one record, {name}",
        "transactions",
        lambda: count,
        sides,
        [
            Comparison("txnkafka", "kafka", page_cache, by_wall=True),
            Comparison("txnkafka", "kafka, fsync", fsync, by_wall=True),
            Comparison("txnkafka", "kfake", by_wall=True),
            Comparison("txnkafka", "kafka"),
            Comparison("txnkafka", "kfake"),
        ],
        sizes.rounds,
        TRANSACTIONS_NOTE,
        [Limit("txnkafka", P99_MS, "ms, p99"), Limit("txnkafka", CPU_MS, "CPU-ms")],
    )


def _concurrent(sizes: Sizes) -> Contest:
    def sides() -> Sequence[Side | Missing]:
        client = partial(ConfluentClients, CONCURRENT)
        servers = [Txnkafka(), Kafka()]
        return [_transacting(server, client, CONCURRENT, sizes.concurrent, sizes) for server in servers]

    return Contest(
        f"{CONCURRENT.producers} producers, transactions of {CONCURRENT.records} records, confluent-kafka",
        "transactions",
        lambda: sizes.concurrent,
        sides,
        [
            Comparison("txnkafka", "kafka", CONCURRENT_GOAL, by_wall=True),
            Comparison("txnkafka", "kafka"),
        ],
        sizes.rounds,
        TRANSACTIONS_NOTE,
    )


def _transacting(
    server: Server | Missing, client: Callable[[], Client], load: Load, count: int, sizes: Sizes
) -> Side | Missing:
    if isinstance(server, Missing):
        return server
    return TransactionsSide(server, client, load, count, warm_seconds=sizes.warm_seconds)
