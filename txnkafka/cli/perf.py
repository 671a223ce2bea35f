"""``txnkafka perf`` measures throughput and latency, as ``kafka-producer-perf-test.sh`` and
``kafka-consumer-perf-test.sh`` do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command import Function, add_options
from txnkafka.cli.command_group import CommandGroup
from txnkafka.cli.output import write_json, write_paragraph
from txnkafka.cli.produce import CODECS
from txnkafka.cli.rows import Row
from txnkafka.env import running_seconds
from txnkafka.shown import counted

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.client.producer import Producer

MIB: Final = 1 << 20
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_POLL_MS: Final = 500
_PAYLOADS: Final = 64


@click.group(cls=CommandGroup, short_help="Measure throughput and latency.")
def perf() -> None:
    """Measure how fast records are written and read, in a data directory (--data) or on brokers
    (--bootstrap)."""


def _format_option(function: Function) -> Function:
    return click.option(
        "--format", "output_format", type=click.Choice(["text", "json", "jsonl"]), default="text",
        show_default=True,
    )(function)  # fmt: skip


def _load_options(function: Function) -> Function:
    return add_options(
        function,
        click.option(
            "--record-size", type=click.IntRange(min=0), default=100, show_default=True, metavar="BYTES",
            help="Size of a value.",
        ),
        click.option("-z", "--compression", type=click.Choice(CODECS), help="The codec of batches."),
        cluster_options,
        _format_option,
    )  # fmt: skip


@perf.command(short_help="Send records as fast as possible.", changes=True)
@click.argument("topic")
@click.option(
    "--num-records", type=click.IntRange(min=1), default=100_000, show_default=True, help="Records to send."
)
@click.option("--throughput", type=click.IntRange(min=1), metavar="N", help="At most N records a second.")
@click.option("--transactional-id", metavar="ID", help="Send them in transactions of this id.")
@click.option(
    "--transaction-records", type=click.IntRange(min=1), default=1_000, show_default=True,
    help="Records of a transaction.",
)  # fmt: skip
@_load_options
@click.pass_obj
def produce(
    messages: Messages,
    /,
    *,
    topic: str,
    num_records: int,
    throughput: int | None,
    transactional_id: str | None,
    transaction_records: int,
    record_size: int,
    compression: str | None,
    output_format: str,
    **options: Any,
) -> int:
    """Send records without keys to TOPIC. The latency is the time from the call to the acknowledgement by the
    broker.

    Exit status: 2 when a record could not be sent."""
    settings = {"transactional_id": transactional_id, "compression_type": compression}
    latencies: list[float] = []
    with opened(messages, options, creates=True) as cluster, cluster.producer(**settings) as producer:
        producer.partitions_for(topic)
        if transactional_id is not None:
            producer.init_transactions()
        most = num_records if transactional_id is None else transaction_records
        begin = running_seconds()
        for first in range(0, num_records, most):
            part = range(first, min(num_records, first + most))
            if transactional_id is None:
                _send(producer, topic, _paced(part, throughput), record_size, latencies)
            else:
                with producer.transaction():
                    _send(producer, topic, _paced(part, throughput), record_size, latencies)
        seconds = running_seconds() - begin
    _write("sent", Measured(num_records, num_records * record_size, seconds, latencies), output_format)
    return 0


@perf.command(short_help="Read records as fast as possible.")
@click.argument("topic")
@click.option("--num-records", type=click.IntRange(min=1), metavar="N", help="Default: up to the end.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="read_committed leaves aborted records out.",
)
@cluster_options
@_format_option
@click.pass_obj
def consume(
    messages: Messages,
    /,
    *,
    topic: str,
    num_records: int | None,
    isolation_level: str,
    output_format: str,
    **options: Any,
) -> int:
    """Read TOPIC from the beginning to its end, or N records, as columns, without printing them.

    Exit status: 2 when TOPIC does not exist."""
    with opened(messages, options) as cluster:
        with cluster.admin() as admin:
            partitions = [(topic, each.partition) for each in admin.describe_topics(topic)[topic].partitions]
        settings = {"isolation_level": isolation_level, "auto_offset_reset": "earliest"}
        with cluster.consumer(**settings) as consumer:
            from txnkafka.model import TopicPartition

            consumer.assign([TopicPartition(*each) for each in partitions])
            ends = consumer.end_offsets(consumer.assignment())
            records = size = 0
            begin = running_seconds()
            while num_records is None or records < num_records:
                for _, columns in consumer.poll_columns(_POLL_MS, headers=False):
                    records += len(columns)
                    size += len(columns.key_data) + len(columns.value_data)
                if all(consumer.position(each) >= end for each, end in ends.items()):
                    break
            seconds = running_seconds() - begin
    _write("read", Measured(records, size, seconds), output_format)
    return 0


@perf.command(short_help="Commit small transactions, one after the other.", changes=True)
@click.argument("topic")
@click.option("--count", type=click.IntRange(min=1), default=1_000, show_default=True, help="Transactions.")
@click.option(
    "--transaction-records", type=click.IntRange(min=1), default=1, show_default=True,
    help="Records of a transaction.",
)  # fmt: skip
@click.option("--transactional-id", default="txnkafka-perf", show_default=True, metavar="ID", help="Its id.")
@_load_options
@click.pass_obj
def transactions(
    messages: Messages,
    /,
    *,
    topic: str,
    count: int,
    transaction_records: int,
    transactional_id: str,
    record_size: int,
    compression: str | None,
    output_format: str,
    **options: Any,
) -> int:
    """Commit transactions in TOPIC, one after the other. The latency is that of a whole transaction, from its
    begin to the end of its commit.

    Exit status: 2 when a transaction failed."""
    settings = {"transactional_id": transactional_id, "compression_type": compression, "linger_ms": "0"}
    latencies: list[float] = []
    with opened(messages, options, creates=True) as cluster, cluster.producer(**settings) as producer:
        producer.partitions_for(topic)
        producer.init_transactions()
        begin = running_seconds()
        for _ in range(count):
            start = running_seconds()
            with producer.transaction():
                for value in _payloads(transaction_records, record_size):
                    producer.send(topic, value)
            latencies.append(running_seconds() - start)
        seconds = running_seconds() - begin
    records = count * transaction_records
    _write("sent", Measured(records, records * record_size, seconds, latencies, count), output_format)
    return 0


def _payloads(count: int, size: int) -> Iterator[bytes]:
    """Yield values of random bytes; only the first ones differ."""
    some = [os.urandom(size) for _ in range(min(count, _PAYLOADS))]
    for number in range(count):
        yield some[number % _PAYLOADS]


def _paced(numbers: range, throughput: int | None) -> Iterator[int]:
    """Yield numbers, not faster than a number a second."""
    if throughput is None:
        yield from numbers
        return
    begin = running_seconds()
    for index, number in enumerate(numbers):
        ahead = index / throughput - (running_seconds() - begin)
        if ahead > 0:
            time.sleep(ahead)
        yield number


def _send(producer: Producer, topic: str, numbers: Iterator[int], size: int, latencies: list[float]) -> None:
    """Send a record for each number, and wait for all. Raises the error of the first that failed."""
    errors: list[BaseException] = []
    payloads = list(_payloads(_PAYLOADS, size))
    now = running_seconds
    for number in numbers:
        start = now()

        def done(future: Any, start: float = start) -> None:
            latencies.append(now() - start)
            error = future.exception()
            if error is not None:
                errors.append(error)

        producer.send(topic, payloads[number % _PAYLOADS]).add_done_callback(done)
    producer.flush()
    if errors:
        raise errors[0]


def percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """Return mean, percentiles (nearest rank) and maximum in milliseconds, of times in seconds."""
    ordered = sorted(latencies)
    found = {"mean": sum(ordered) / len(ordered)}
    for name, part in PERCENTILES.items():
        found[name] = ordered[min(len(ordered) - 1, int(part * len(ordered)))]
    return {name: round(1000 * value, 3) for name, value in {**found, "max": ordered[-1]}.items()}


class Measured(NamedTuple):
    """The amount of work and its time. ``latencies`` are in seconds."""

    records: int
    size: int
    seconds: float
    latencies: Sequence[float] = ()
    transactions: int | None = None

    def row(self) -> Row:
        """Return the fields of the output."""
        seconds = max(self.seconds, 1e-9)
        row: Row = {
            "records": self.records,
            "bytes": self.size,
            "seconds": round(seconds, 3),
            "records_per_second": round(self.records / seconds, 1),
            "mib_per_second": round(self.size / MIB / seconds, 3),
        }
        if self.transactions is not None:
            rate = round(self.transactions / seconds, 1)
            row |= {"transactions": self.transactions, "transactions_per_second": rate}
        return row | ({"latency_ms": percentiles(self.latencies)} if self.latencies else {})


def _write(verb: str, measured: Measured, output_format: str) -> None:
    row = measured.row()
    if output_format != "text":
        write_json(row)
        return
    rate = f"{row['records_per_second']:,.0f} records a second, {row['mib_per_second']:,.2f} MiB a second"
    write_paragraph(f"{counted(measured.records, 'record')} {verb} in {row['seconds']:,} s: {rate}")
    if measured.transactions is not None:
        rate = f"{row['transactions_per_second']:,.0f} a second"
        write_paragraph(f"{counted(measured.transactions, 'transaction')}: {rate}")
    if measured.latencies:
        parts = ", ".join(f"{name} {value:,} ms" for name, value in row["latency_ms"].items())
        write_paragraph(f"latency: {parts}")
