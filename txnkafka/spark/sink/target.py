"""The target of a sink: a data directory, whose broker runs in this process meanwhile, or brokers."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Protocol

from txnkafka.client.admin import Admin
from txnkafka.client.admin.configs import ConfigResource, ConfigResourceType
from txnkafka.client.producer import Producer
from txnkafka.env import LocalDataFiles, running_seconds
from txnkafka.errors import LogDirError, UnknownTopicOrPartitionError
from txnkafka.spark.sink.row_encoder import TopicLayout, unknown_topic
from txnkafka.storage.formats.layout import LOCK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.embedded import Broker
    from txnkafka.spark.sink.sink_options import SinkOptions

_PAUSE_S: Final = 0.1
_MAX_BATCH: Final = "max.message.bytes"
BROKER_SETTINGS: Final[dict[str, object]] = {
    "auto.create.topics.enable": False,
    "log.cleaner.enable": False,  # upkeep is the business of the directory's broker, with its settings
    "log.retention.ms": -1,
    "offsets.retention.minutes": (1 << 31) - 1,  # the ids of batches are offsets
    "transaction.max.timeout.ms": (1 << 31) - 1,
}


class Clients(Protocol):
    """Makes clients of the target."""

    def producer(self, **settings: Any) -> Producer: ...
    def admin(self, **settings: Any) -> Admin: ...


class _Brokers:
    """Clients of brokers."""

    def __init__(self, servers: str) -> None:
        self._servers = servers

    def producer(self, **settings: Any) -> Producer:
        return Producer({"bootstrap.servers": self._servers, **settings})

    def admin(self, **settings: Any) -> Admin:
        return Admin({"bootstrap.servers": self._servers, **settings})


@contextmanager
def open_target(options: SinkOptions) -> Iterator[Clients]:
    """Open the target for a block. A data directory is owned by this process until the end of the block; if
    it has another owner, the call waits for up to ``max.block.ms``.

    Raises LogDirError without the directory, and while it has an owner; KafkaError, OSError."""
    if options.servers is not None:
        yield _Brokers(options.servers)
        return
    with _open_directory(options) as broker:
        yield broker


def _open_directory(options: SinkOptions) -> Broker:
    from txnkafka.embedded import Broker

    path = options.directory
    assert path is not None
    files = LocalDataFiles()
    if not files.is_directory(path):
        raise LogDirError(
            f"{path} does not exist: create the topics first, for example with txnkafka.Broker.open({path!r})"
        )
    until = running_seconds() + int(options.client.get("max.block.ms", 60_000)) / 1000
    while True:
        try:
            return Broker.open(path, durability="fsync", **BROKER_SETTINGS)
        except LogDirError as error:
            if not files.is_locked(files.join(path, LOCK_FILE)):
                raise
            if running_seconds() >= until:
                error.add_note("a query owns the directory while it publishes; it waited for max.block.ms")
                raise
            Event().wait(_PAUSE_S)


def topic_layouts(clients: Clients, options: SinkOptions) -> dict[str, TopicLayout]:
    """Return the topic of the option, or all topics of the target. Raises ValueError for a topic that does
    not exist."""
    with clients.admin(**options.admin_settings()) as admin:
        try:
            topics = admin.describe_topics(None if options.topic is None else [options.topic])
        except UnknownTopicOrPartitionError:
            raise ValueError(unknown_topic(options.topic or "")) from None
        resources = {name: ConfigResource(ConfigResourceType.TOPIC, name) for name in topics}
        configs = admin.describe_configs(resources.values(), names=[_MAX_BATCH])
        return {
            name: TopicLayout(len(topic.partitions), int(configs[resources[name]][_MAX_BATCH].value or 0))
            for name, topic in topics.items()
        }
