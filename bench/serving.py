"""The contests of the server, with their goals: whole clients over the loopback, its start, and parts of the
broker without sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.bare_calls import BareCallsSide
from bench.broker_starting import BrokerStartSide
from bench.consuming import KEPT, ConsumeSide
from bench.handling import KINDS, HandlerSide
from bench.harness import Comparison, Contest, Limit, Missing, Side
from bench.in_process import InProcessSide, ThreeSyncs
from bench.producing import ProduceSide, batch
from bench.segments import MIB, Input
from bench.servers import BareServer, Kafka, Server, Txnkafka, kfake
from bench.starting import StartSide
from bench.transacting import Client, ConfluentClients, JavaClient, Load, TransactionsSide
from bench.transaction_logs import JavaLogSide, LogSide, Transactions

__all__ = ["FULL", "QUICK", "Sizes", "contests"]


@dataclass(frozen=True)
class Sizes:
    """Units of a round of each contest, and seconds of use before the first round."""

    rounds: int
    warm_seconds: float
    confluent: int
    java: int
    concurrent: int
    in_process: int
    produce: int
    fetch: int  # bytes of log
    starts: int  # rounds
    handled: int
    transactions: int  # open ones, transactional ids
    aborted: int
    partitions: int


FULL = Sizes(
    rounds=9,
    warm_seconds=4,
    confluent=400,
    java=200,
    concurrent=1920,
    in_process=300,
    produce=3000,
    fetch=64 * MIB,
    starts=9,
    handled=2000,
    transactions=100_000,
    aborted=1_000_000,
    partitions=10_000,
)
QUICK = Sizes(
    rounds=3,
    warm_seconds=1,
    confluent=100,
    java=40,
    concurrent=640,
    in_process=100,
    produce=1000,
    fetch=16 * MIB,
    starts=2,
    handled=500,
    transactions=10_000,
    aborted=20_000,
    partitions=1_000,
)

FLUSHED = {"log.flush.interval.messages": "1"}
PAGE_CACHE = "txnkafka, page cache"
CPU_MS = 0.25
# client: goals against Kafka's page cache, against Kafka with fsync, limits. Of Java there is no p99: its own
# compilers and collector make transactions of 5 ms with a server that only keeps them in memory.
CPU_LIMITS = [Limit("txnkafka", CPU_MS, "CPU-ms"), Limit(PAGE_CACHE, CPU_MS, "CPU-ms")]
TRANSACTION_GOALS = {
    "confluent-kafka": (1.25, 3.5, [Limit("txnkafka", 5.0, "ms, p99"), *CPU_LIMITS]),
    "java": (4.0, 20.0, CPU_LIMITS),
}
CONCURRENT_GOAL = 2.0
CONCURRENT = Load(producers=32, records=10, partitions=10)
IN_PROCESS_GOAL = 0.7
PRODUCE_GOAL = 0.7
START_MS, START_MB = 400.0, 60.0
# of a round: markers; fetches of 64 KiB, for each of which Kafka reads its transaction index from the start
ENDED, FETCHED = 500, 4

TRANSACTIONS_NOTE = (
    "transactions: CPU time and memory are those of the server process; rates and percentiles (of the "
    "transactions of all rounds) are by the wall clock of the client, on the same machine. txnkafka answers "
    "when everything is synced, `txnkafka, page cache` has --durability page_cache; `kafka` answers from the "
    "page cache, its default, `kafka, fsync` has log.flush.interval.messages=1; both have the JVM options of "
    "its start script. `kfake` keeps everything in memory. The servers and JVMs of other sides are stopped "
    "(SIGSTOP) while a side has its turn."
)
IN_PROCESS_NOTE = (
    "transactions in process: one producer, each transaction is waited for until a read_committed consumer "
    "gets it; beside it as many bytes to two files, data, PREPARE and marker synced one after the other."
)
BARE_CALLS_NOTE = (
    "system calls: a server in C, and one on asyncio, that reads three requests, writes as many bytes as a "
    "broker, makes four syncs that follow one another, and answers. It parses and decides nothing; CPU time "
    "is the server's."
)
PRODUCE_NOTE = (
    "produce: requests of one batch of 130 records from a generator in C, 4 connections with 8 under way "
    "each. Nobody syncs: txnkafka has --durability page_cache. The servers in C and on asyncio check "
    "nothing. CPU time is that of the server process."
)
FETCH_NOTE = (
    "fetch: read_committed, checksums checked, `queued.min.messages` and `fetch.queue.backoff.ms` set so "
    "that the client does not wait. The wall clock is the client's, CPU time that of the server process."
)
START_NOTE = (
    "start: a restart on a directory that was stopped in order and has the topic and the coordinator's log, "
    "from the start of the process until the client's first commit is answered."
)
LOGS_NOTE = (
    "logs of transactions: CPU time of one thread. `ended` appends COMMIT markers for the oldest of the open "
    "transactions, and looks up the last stable offset after each; a fetch is of 64 KiB, and finds the list "
    "of aborted transactions, but does not read the slice; loading is from the page cache."
)
HANDLERS_NOTE = (
    "handlers: a request's bytes through session, handler and broker to the bytes of its answer, page cache, "
    "one thread; flushing is not timed. `Produce and EndTxn` counts both requests of a transaction."
)


def contests(sizes: Sizes) -> list[Contest]:
    """All of them."""
    return [
        _one_record(sizes, "confluent-kafka", partial(ConfluentClients, Load()), sizes.confluent),
        _one_record(sizes, "java", JavaClient, sizes.java),
        _concurrent(sizes),
        _bare_calls(sizes),
        _in_process(sizes),
        _produce(sizes),
        _fetch(sizes),
        _start(sizes),
        _handlers(sizes),
        _log("open", sizes.transactions, "one of {:,} open transactions ended", sizes, ENDED),
        _log("aborted", sizes.aborted, "fetch among {:,} aborted transactions", sizes, FETCHED),
        _log("ids", sizes.transactions, "loading of {:,} transactional ids", sizes, 1),
        _broker_start(sizes),
    ]


def _one_record(sizes: Sizes, name: str, client: Callable[[], Client], count: int) -> Contest:
    def sides() -> Sequence[Side | Missing]:
        unsynced = Txnkafka("page_cache", name=PAGE_CACHE)
        servers = [Txnkafka(), unsynced, Kafka(), Kafka("kafka, fsync", FLUSHED), kfake()]
        return [_transacting(server, client, Load(), count, sizes) for server in servers]

    page_cache, fsync, limits = TRANSACTION_GOALS[name]
    return Contest(
        f"transactions of one record, {name}",
        "transactions",
        lambda: count,
        sides,
        [
            Comparison("txnkafka", "kafka", page_cache, by_wall=True),
            Comparison("txnkafka", "kafka, fsync", fsync, by_wall=True),
            Comparison("txnkafka", "kfake", by_wall=True),
            Comparison("txnkafka", "kafka, fsync"),
            Comparison(PAGE_CACHE, "kafka"),
            Comparison(PAGE_CACHE, "kfake"),
        ],
        sizes.rounds,
        TRANSACTIONS_NOTE,
        limits,
    )


def _concurrent(sizes: Sizes) -> Contest:
    def sides() -> Sequence[Side | Missing]:
        client = partial(ConfluentClients, CONCURRENT)
        servers = [Txnkafka(), Txnkafka("page_cache", name=PAGE_CACHE), Kafka(), kfake()]
        return [_transacting(server, client, CONCURRENT, sizes.concurrent, sizes) for server in servers]

    return Contest(
        f"{CONCURRENT.producers} producers, transactions of {CONCURRENT.records} records, confluent-kafka",
        "transactions",
        lambda: sizes.concurrent,
        sides,
        [
            Comparison("txnkafka", "kafka", CONCURRENT_GOAL, by_wall=True),
            Comparison("txnkafka", "kafka"),
            Comparison("txnkafka", "kfake", by_wall=True),
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


def _bare_calls(sizes: Sizes) -> Contest:
    return Contest(
        "system calls of a durable transaction of one record",
        "transactions",
        lambda: sizes.confluent,
        lambda: [BareCallsSide(language, sizes.confluent) for language in ("C", "asyncio")],
        [],
        sizes.rounds,
        BARE_CALLS_NOTE,
    )


def _in_process(sizes: Sizes) -> Contest:
    def sides() -> Sequence[Side]:
        return [InProcessSide(sizes.in_process), ThreeSyncs(sizes.in_process)]

    return Contest(
        "transactions of one record in process, durable and visible",
        "transactions",
        lambda: sizes.in_process,
        sides,
        [Comparison("txnkafka", "three fdatasyncs", IN_PROCESS_GOAL, by_wall=True)],
        sizes.rounds,
        IN_PROCESS_NOTE,
    )


def _produce(sizes: Sizes) -> Contest:
    def sides() -> Sequence[Side]:
        servers = [Txnkafka("page_cache"), BareServer(), BareServer("asyncio"), Kafka()]
        return [ProduceSide(server, sizes.produce) for server in servers]

    return Contest(
        "produce requests of 16 KB",
        "requests",
        lambda: sizes.produce,
        sides,
        [
            Comparison("txnkafka", "C, epoll", PRODUCE_GOAL),
            Comparison("txnkafka", "asyncio"),
            Comparison("asyncio", "C, epoll"),
            Comparison("txnkafka", "kafka"),
        ],
        sizes.rounds,
        PRODUCE_NOTE,
        unit_bytes=lambda: len(batch()),
    )


def _fetch(sizes: Sizes) -> Contest:
    source = Input("100", sizes.fetch)

    def sides() -> Sequence[Side]:
        return [ConsumeSide(server, source) for server in (Txnkafka(settings=KEPT), Kafka(settings=KEPT))]

    return Contest(
        "fetch by librdkafka, 100 B",
        "records",
        lambda: source.records,
        sides,
        [Comparison("txnkafka", "kafka", by_wall=True), Comparison("txnkafka", "kafka")],
        sizes.rounds,
        FETCH_NOTE,
        unit_bytes=lambda: source.segment.stat().st_size // source.records,
    )


def _start(sizes: Sizes) -> Contest:
    def sides() -> Sequence[Side]:
        return [StartSide(server) for server in (Txnkafka(), Kafka())]

    return Contest(
        "start to the first committed transaction",
        "start",
        lambda: 1,
        sides,
        [Comparison("txnkafka", "kafka", by_wall=True), Comparison("txnkafka", "kafka")],
        sizes.starts,
        START_NOTE,
        [Limit("txnkafka", START_MS, "ms, wall clock"), Limit("txnkafka", START_MB, "MB")],
    )


def _handlers(sizes: Sizes) -> Contest:
    return Contest(
        "requests through the handlers",
        "requests",
        lambda: sizes.handled,
        lambda: [HandlerSide(kind, sizes.handled) for kind in KINDS],
        [],
        sizes.rounds,
        HANDLERS_NOTE,
    )


def _log(kind: str, size: int, name: str, sizes: Sizes, count: int) -> Contest:
    source = Transactions(kind, size)
    is_load = kind == "ids"
    return Contest(
        name.format(size),
        "ids" if is_load else "lookups",
        lambda: size if is_load else count,
        lambda: [LogSide(source, count), JavaLogSide(source, count)],
        [Comparison("txnkafka", "java")],
        sizes.rounds,
        LOGS_NOTE,
    )


def _broker_start(sizes: Sizes) -> Contest:
    return Contest(
        f"broker with {sizes.partitions:,} partitions",
        "start",
        lambda: 1,
        lambda: [BrokerStartSide(sizes.partitions)],
        [],
        min(sizes.rounds, 3),
        "broker with many partitions: start after a clean stop, in /dev/shm; memory is that of the process.",
    )
