"""``txnkafka serve`` is a Kafka broker of one node on a data directory."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import write_text
from txnkafka.cli.serve_checks import address_text, check_address
from txnkafka.cli.serve_log import logging_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.broker_config import BrokerConfig
    from txnkafka.broker.durability import Mode
    from txnkafka.cli.output import Messages
    from txnkafka.server.metrics.exposition import MetricsServer
    from txnkafka.server.tcp import Server

__all__ = ["serve"]

LOG = logging.getLogger("txnkafka.server")
Value = TypeVar("Value")
GARBAGE: Final = 20_000  # objects between two collections: requests leave few cycles


def _number(text: str, most_digits: int) -> int:
    """Parse digits; -1 for other text, and for more digits, of which int takes only so many."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most_digits else -1


class Address(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """HOST:PORT, with brackets around an IPv6 address."""

    name = "HOST:PORT"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Parse an address."""
        if isinstance(value, tuple):
            return value
        host, colon, port = value.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not host or _number(port, 5) not in range(65536):
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return host, int(port)


class Setting(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """KEY=VALUE."""

    name = "KEY=VALUE"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split a setting."""
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return name.strip(), text.strip()


class NewTopic(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """NAME:PARTITIONS."""

    name = "NAME:PARTITIONS"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Split a topic and its number of partitions."""
        if isinstance(value, tuple):
            return value
        name, colon, count = value.rpartition(":")
        if not colon or not name or _number(count, 9) < 1:
            self.fail(f"{value!r} is not NAME:PARTITIONS", param, ctx)
        return name, int(count)


@click.command(cls=Command, short_help="Serve a data directory to Kafka clients.")
@click.option(
    "--data", required=True, metavar="DIR", type=click.Path(), help="The data directory; created if missing."
)
@click.option(
    "--listen",
    type=Address(),
    default="127.0.0.1:9092",
    show_default=True,
    help="The address to listen on; port 0 picks a free one.",
)
@click.option("--config", type=Setting(), multiple=True, help="A broker setting, by Kafka's name.")
@click.option(
    "--create-topic", type=NewTopic(), multiple=True, help="Create a topic at start, unless it exists."
)
@click.option(
    "--durability",
    type=click.Choice(["fsync", "page_cache"]),
    default="fsync",
    show_default=True,
    help="When an append is acknowledged: once it is synced to the disk, or, like Apache Kafka, at once.",
)
@click.option(
    "--metrics", type=Address(), help="Show metrics as Prometheus text on this address; port 0 picks one."
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is logged on stderr: lines for people, or an object of JSON a line.",
)
@click.pass_obj
def serve(
    messages: Messages,
    /,
    *,
    data: str,
    listen: tuple[str, int],
    config: Sequence[tuple[str, str]],
    create_topic: Sequence[tuple[str, int]],
    durability: str,
    metrics: tuple[str, int] | None,
    log_format: str,
) -> int:
    """Serve a data directory to Kafka clients, as a broker of one node: topics, idempotent and transactional
    producers, consumers with assigned partitions and in groups, administrators.

    The directory is Apache Kafka's: one that a stopped single-node Kafka has left can be served, and the
    other way round. Nothing is encrypted and no client is authenticated: listen on addresses that only
    trusted clients reach.

    The first line on stdout, 'listening on HOST:PORT', is printed when clients can connect. SIGTERM,
    SIGINT and SIGHUP stop the broker: what was acknowledged is finished, and the directory is closed cleanly.

    Exit status: 0 stopped by a signal, 2 failure.
    """
    topics = _once("--create-topic", create_topic)
    mode: Mode = "page_cache" if durability == "page_cache" else "fsync"
    watch = None if metrics is None else _Metrics(*metrics)
    with logging_to(messages, log_format):
        _serve(data, _settings(config), topics, listen, mode, metrics=watch)
    return 0


def _settings(config: Sequence[tuple[str, str]]) -> BrokerConfig:
    from txnkafka.broker.broker_config import BrokerConfig

    try:
        return BrokerConfig.of(_once("--config", config))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


class _Metrics:
    """Shows metrics on an address while a server runs. Raises UsageError where the package is missing."""

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
        """Show the metrics of a server from now on. Raises OSError for an address that is in use."""
        self._shown = self._begin(server)
        LOG.info("metrics are on http://%s/metrics", address_text(*self._shown.address))

    def close(self) -> None:
        """Show them no more."""
        shown, self._shown = self._shown, None
        if shown is not None:
            shown.close()


def _serve(
    data: str,
    settings: BrokerConfig,
    topics: dict[str, int],
    listen: tuple[str, int],
    durability: Mode,
    *,
    metrics: _Metrics | None,
) -> None:
    import gc

    from txnkafka.broker.broker import open_broker
    from txnkafka.env import LocalDataFiles, SystemClock
    from txnkafka.server import tcp
    from txnkafka.server.descriptors import raise_limit
    from txnkafka.server.topics_at_start import check_topics, create_topics
    from txnkafka.storage.ownership import check_data_directory

    check_topics(topics)
    raise_limit()
    check_data_directory(LocalDataFiles(), data)
    check_address("--listen", *listen)
    clock = SystemClock()
    broker = open_broker(LocalDataFiles(), data, settings, now_ms=clock.now_ms(), durability=durability)
    try:
        create_topics(broker, topics, clock)
        gc.freeze()  # logs and their state stay: no collection walks them
        gc.set_threshold(GARBAGE)
        watch = metrics.watch if metrics is not None else None

        def end() -> None:
            if metrics is not None:
                metrics.close()
            broker.close()

        tcp.serve(broker, clock, *listen, _print_address, on_start=watch, on_end=end)
    except BaseException:
        broker.data.abandon()  # what is not durable is left to the recovery of the next start
        raise
    finally:
        if metrics is not None:
            metrics.close()


def _once(option: str, pairs: Sequence[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise click.UsageError(f"{option} is given twice for {name}")
    return found


def _print_address(host: str, port: int) -> None:
    import sys

    write_text(f"listening on {address_text(host, port)}")
    sys.stdout.flush()
