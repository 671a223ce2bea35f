"""The options that choose a cluster, ``--data`` or ``--bootstrap``, and its clients.

``--data DIR`` opens the data directory in this process (``txnkafka.Broker``), and ``--bootstrap`` connects to
brokers. The same clients work with both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Function, add_options
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.serve_options import Setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.checkback import CheckBackAdmin
    from txnkafka.checkback.resolver import Resolver
    from txnkafka.cli.output import Messages
    from txnkafka.client.admin import Admin
    from txnkafka.client.consumer import Consumer
    from txnkafka.client.producer import Producer
    from txnkafka.client.transport import Transport

PATIENCE_MS = 20_000  # of the admin client; Kafka's default lets a user wait a minute for a wrong address
CHOICE = "choose a cluster: --data DIR for a data directory, or --bootstrap HOST:PORT for brokers"


class ClientSetting(Setting):
    """KEY=VALUE of a client."""

    def names(self) -> set[str]:
        """Return the names of the settings of all clients."""
        from txnkafka.client.admin import AdminConfig
        from txnkafka.client.consumer import ConsumerConfig
        from txnkafka.client.producer import ProducerConfig
        from txnkafka.config import config_defs

        return {name for kind in (AdminConfig, ConsumerConfig, ProducerConfig) for name in config_defs(kind)}


def cluster_options(function: Function) -> Function:
    """Add --data, --bootstrap and -X to a command."""
    return add_options(
        function,
        click.option(
            "--data",
            type=PathOrAddress(),
            metavar="DIR",
            help="A data directory, which no other process has open.",
        ),
        click.option(
            "-b", "--bootstrap", metavar="HOST:PORT,…", help="Brokers of a cluster, separated by commas."
        ),
        click.option(
            "-X",
            "--setting",
            "settings",
            type=ClientSetting(),
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of the client by Kafka's name, as in request.timeout.ms=5000. Repeatable.",
        ),
    )


class Cluster:
    """The cluster of a command. ``settings`` go to all clients."""

    def __init__(
        self, place: str, settings: dict[str, str], transport: Callable[[str], Transport] | None
    ) -> None:
        self.place = place
        self._settings = settings
        self._transport = transport

    def admin(self) -> Admin:
        """Return an admin client. Raises UsageError for a wrong setting."""
        from txnkafka.client.admin import Admin

        admin: Admin = self._client(Admin, {"default.api.timeout.ms": str(PATIENCE_MS)})
        return admin

    def producer(self, **settings: Any) -> Producer:
        """Return a producer; the user's settings override those given here. Raises UsageError for a wrong
        setting."""
        from txnkafka.client.producer import Producer

        producer: Producer = self._client(Producer, settings)
        return producer

    def consumer(self, **settings: Any) -> Consumer:
        """Return a consumer; see ``producer``."""
        from txnkafka.client.consumer import Consumer

        consumer: Consumer = self._client(Consumer, settings)
        return consumer

    def half_admin(self) -> CheckBackAdmin:
        """Return an administrator of check-back messages; see ``admin``."""
        from txnkafka.checkback import CheckBackAdmin

        admin: CheckBackAdmin = self._client(CheckBackAdmin, {"max.block.ms": str(PATIENCE_MS)})
        return admin

    def resolver(self) -> Resolver:
        """Return a resolver of transactional messages; see ``producer``."""
        from txnkafka.checkback.resolver import BESIDE_BROKER, Resolver

        name = None if self._transport is None else BESIDE_BROKER
        resolver: Resolver = self._client(Resolver, {"group_instance_id": name})
        return resolver

    def _client(self, kind: Any, settings: dict[str, Any]) -> Any:
        given = {name.replace("_", "."): value for name, value in settings.items() if value is not None}
        try:
            return kind({**given, **self._settings}, transport=self._transport)
        except ValueError as error:
            raise click.UsageError(f"-X: {error}") from None


@contextmanager
def opened(messages: Messages, options: dict[str, Any], *, creates: bool = False) -> Iterator[Cluster]:
    """Remove the options of ``cluster_options`` from a command's options, and open the cluster for the with
    block. ``creates``: the data directory is created if it is missing.

    Raises UsageError without a cluster, LogDirError for a directory that is missing or in use."""
    data, bootstrap, settings = options.pop("data"), options.pop("bootstrap"), dict(options.pop("settings"))
    if (data is None) == (bootstrap is None):
        raise click.UsageError(CHOICE)
    from txnkafka.errors import KafkaError

    try:
        if data is None:
            yield Cluster(bootstrap, {"bootstrap.servers": bootstrap, **settings}, None)
        else:
            with _broker(data, creates=creates) as broker:
                yield Cluster(data, settings, broker._transport)
    except KafkaError as error:
        for note in getattr(error, "__notes__", ()):
            messages.error(note.removeprefix("another part of the call failed: "))
        raise


def _broker(data: str, *, creates: bool) -> Any:
    from txnkafka.embedded import Broker
    from txnkafka.errors import LogDirError

    if not creates and not os.path.isdir(data):
        raise LogDirError(f"{data} does not exist: 'txnkafka topics create --data {data} TOPIC' creates it")
    # so that 'txn complete' can end a prepared transaction; each producer has its own setting
    return Broker.open(data, transaction_two_phase_commit_enable=True, unstable_api_versions_enable=True)
