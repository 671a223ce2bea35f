"""``txnkafka serve`` is a Kafka broker of one node on a data directory."""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import write_text
from txnkafka.cli.serve_checks import check_address
from txnkafka.cli.serve_log import logging_to
from txnkafka.cli.serve_options import Address, NewTopic, Setting
from txnkafka.cli.serve_settings import serve_settings
from txnkafka.server.listeners import address_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.durability import Mode
    from txnkafka.checkback.resolver import Resolver
    from txnkafka.cli.output import Messages
    from txnkafka.cli.serve_settings import ServeSettings
    from txnkafka.env import Clock
    from txnkafka.server.metrics.exposition import MetricsServer
    from txnkafka.server.tcp import Server

LOG = logging.getLogger("txnkafka.server")
Value = TypeVar("Value")
GARBAGE: Final = 20_000  # allocations between two collections: requests leave few cycles


@click.command(cls=Command, short_help="Serve a data directory to Kafka clients.")
@click.option("--data", metavar="DIR", type=click.Path(), help="The data directory; created if missing.")
@click.option(
    "--listen",
    type=Address(),
    multiple=True,
    help="An address to listen on, 127.0.0.1:9092 by default; port 0 picks a free one. May be repeated.",
)
@click.option("--config", type=Setting(), multiple=True, help="A broker setting, by Kafka's name.")
@click.option(
    "--config-file",
    type=click.Path(exists=True, dir_okay=False),
    help="A file with broker settings, such as Kafka's server.properties; other options override it.",
)
@click.option(
    "--create-topic", type=NewTopic(), multiple=True, help="Create a topic at start, unless it exists."
)
@click.option(
    "--durability",
    type=click.Choice(["fsync", "page_cache"]),
    default="fsync",
    show_default=True,
    help="Acknowledge an append after syncing it to the disk, or, like Apache Kafka, before.",
)
@click.option(
    "--metrics", type=Address(), help="Show metrics as Prometheus text on this address; port 0 picks one."
)
@click.option(
    "--resolve",
    "resolves",
    is_flag=True,
    help="Resolve transactional messages, as a separate 'txnkafka resolve' does.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Log format on stderr: text for people, or one JSON object per line.",
)
@click.pass_obj
def serve(
    messages: Messages,
    /,
    *,
    data: str | None,
    listen: Sequence[tuple[str, int]],
    config: Sequence[tuple[str, str]],
    config_file: str | None,
    create_topic: Sequence[tuple[str, int]],
    durability: str,
    metrics: tuple[str, int] | None,
    resolves: bool,
    log_format: str,
) -> int:
    """Serve a data directory to Kafka clients, as a broker of one node: topics, idempotent and transactional
    producers, consumers with assigned partitions and in groups, administrators.

    The directory is Apache Kafka's: txnkafka serves the directory of a stopped single-node Kafka, and vice
    versa. Nothing is encrypted and no client is authenticated: listen on addresses that only trusted clients
    reach.

    The first lines on stdout, 'listening on HOST:PORT' for each listener, are printed when clients can
    connect. SIGTERM, SIGINT and SIGHUP stop the broker: acknowledged requests are finished, and the directory
    is closed cleanly.

    Exit status: 0 stopped by a signal, 2 failure."""
    topics = _once("--create-topic", create_topic)
    mode: Mode = "page_cache" if durability == "page_cache" else "fsync"
    watch = None if metrics is None else _Metrics(*metrics)
    with logging_to(messages, log_format):
        settings = serve_settings(data, listen, _once("--config", config), config_file)
        _serve(settings, topics, mode, watch, resolves=resolves)
    return 0


class _Metrics:
    """Serves metrics on an address while a server runs. Raises UsageError if the package is missing."""

    def __init__(self, host: str, port: int) -> None:
        try:
            from txnkafka.server.metrics.exposition import MetricsServer
        except ImportError as error:
            raise click.UsageError(
                f"--metrics needs another package: pip install 'txnkafka[metrics]' ({error})"
            ) from None
        check_address("--metrics", host, port)
        self._begin = partial(MetricsServer, host=host, port=port)
        self._shown: MetricsServer | None = None

    def watch(self, server: Server) -> None:
        """Start serving the metrics of ``server``. Raises OSError for an address in use."""
        self._shown = self._begin(server)
        LOG.info("metrics are on http://%s/metrics", address_text(*self._shown.address))

    def close(self) -> None:
        """Stop serving metrics."""
        shown, self._shown = self._shown, None
        if shown is not None:
            shown.close()


def _serve(
    settings: ServeSettings, topics: dict[str, int], durability: Mode, metrics: _Metrics | None, *,
    resolves: bool,
) -> None:  # fmt: skip
    import gc

    from txnkafka.cli.serve_report import log_start
    from txnkafka.env import LocalDataFiles, SystemClock
    from txnkafka.server.descriptors import raise_limit
    from txnkafka.server.topics_at_start import check_topics, create_topics
    from txnkafka.storage.ownership import check_data_directory

    check_topics(topics)
    raise_limit()
    check_data_directory(LocalDataFiles(), settings.data)
    for _, host, port in (each.listen for each in settings.listeners):
        check_address("--listen", host, port)
    clock = SystemClock()
    broker = _opened(settings, durability, clock)
    try:
        create_topics(broker, topics, clock)
        log_start(broker)
        gc.freeze()  # logs and their state stay alive: keep them out of collections
        gc.set_threshold(GARBAGE)
        _run(broker, clock, settings, metrics, resolves=resolves)
    except BaseException:
        broker.abandon()  # the next start recovers data that is not durable
        raise
    finally:
        if metrics is not None:
            metrics.close()


def _opened(settings: ServeSettings, durability: Mode, clock: Clock) -> Broker:
    """Open the directory, and log its recovery."""
    from txnkafka.broker.broker import open_broker
    from txnkafka.cli.serve_report import log_recovery, was_owned
    from txnkafka.env import LocalDataFiles, running_seconds

    files, begin = LocalDataFiles(), running_seconds()
    owned = was_owned(files, settings.data)
    broker = open_broker(
        files, settings.data, settings.config,
        now_ms=clock.now_ms(), durability=durability, node_id=settings.node_id,
    )  # fmt: skip
    if owned:
        log_recovery(broker, running_seconds() - begin)
    return broker


def _run(
    broker: Broker, clock: Clock, settings: ServeSettings, metrics: _Metrics | None, *, resolves: bool
) -> None:
    """Serve until a signal, then close the directory."""
    from txnkafka.cli.serve_report import log_stop
    from txnkafka.server import tcp
    from txnkafka.server.exposure import warn_of_exposure

    servers: list[Server] = []
    resolvers: list[Resolver] = []

    def start(server: Server) -> None:
        servers.append(server)
        if metrics is not None:
            metrics.watch(server)

    def listening(addresses: list[list[tuple[str, int]]]) -> None:
        warn_of_exposure(addresses, servers[0].endpoints)
        for first, *_ in addresses:
            write_text(f"listening on {address_text(*first)}")
        sys.stdout.flush()
        if resolves:
            resolvers.append(_resolver(*addresses[0][0]))

    def end() -> None:
        for each in resolvers:
            each.abandon()
        if metrics is not None:
            metrics.close()
        broker.close()
        log_stop(broker, servers[0].stopping_seconds)

    tcp.serve(broker, clock, settings.listeners, listening, on_start=start, on_end=end)


def _resolver(host: str, port: int) -> Resolver:
    """Start a resolver that is a client of this server."""
    from txnkafka.checkback.resolver import BESIDE_BROKER, Resolver

    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    resolver = Resolver(bootstrap_servers=address_text(own, port), group_instance_id=BESIDE_BROKER)
    resolver.start()
    return resolver


def _once(option: str, pairs: Sequence[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise click.UsageError(f"{option} is given twice for {name}")
    return found
