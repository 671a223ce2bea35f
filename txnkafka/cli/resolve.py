"""``txnkafka resolve`` checks undecided messages back, and makes decided ones visible."""

from __future__ import annotations

import signal
import sys
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command import Command
from txnkafka.cli.output import write_text
from txnkafka.cli.serve_log import logging_to

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages


@click.command(cls=Command, short_help="Check transactional messages back, and carry out decisions.")
@cluster_options
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Log format on stderr: text for people, or one JSON object per line.",
)
@click.pass_obj
def resolve(messages: Messages, /, *, log_format: str, **options: Any) -> int:
    """Resolve the transactional messages of TransactionMQProducer: ask the listeners of their producer group
    about undecided ones, make committed ones visible, and park those that no check decides.

    A cluster of Apache Kafka needs at least one resolver. Several divide the work, and take over from one
    that ends. A broker of one node can have it inside: 'txnkafka serve --resolve'; with --data it works on a
    directory that no broker has open.

    -X sets the times of the checks: transaction.timeout (6000 ms until the first one),
    transaction.check.interval (30000 ms), transaction.check.max (15), transaction.check.policy (park,
    rollback or keep), transaction.max.age, decision.retention.

    The line 'resolving CLUSTER' on stdout is printed at the start. SIGTERM, SIGINT and SIGHUP stop it.

    Exit status: 0 stopped by a signal, 2 failure."""
    stop = Event()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup leaves it
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        with (
            logging_to(messages, log_format),
            opened(messages, options) as cluster,
            cluster.resolver(),
        ):
            write_text(f"resolving {cluster.place}")
            sys.stdout.flush()
            stop.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
