"""The options of ``df.write.format("txnkafka")`` and ``df.writeStream.format("txnkafka")``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from txnkafka.client.admin import AdminConfig
from txnkafka.client.client_config import read_config
from txnkafka.client.producer import ProducerConfig
from txnkafka.config import config_defs
from txnkafka.env import absolute_path, is_remote
from txnkafka.shown import nearest
from txnkafka.staging import folder_beside

_NAMES: Final = {
    "path": "directory",
    "topic": "topic",
    "transactionalId": "transactional_id",
    "txnAppId": "app_id",
    "txnVersion": "version",
    "compression": "compression",
    "stagingPath": "staging",
    "checkpointLocation": "checkpoint",
}
OPTION_NAMES: Final = (*_NAMES, "kafka.bootstrap.servers")
_CLIENTS: Final = "kafka."
_OURS: Final = ("transactional.id", "enable.idempotence", "acks", "retries")
_TRANSACTION_TIMEOUT_MS: Final = 900_000  # the largest one that brokers allow by default


class SinkOptions(NamedTuple):
    """Checked options. Exactly one of ``directory`` and ``servers`` is given. ``version`` is the number of a
    batch write. ``client`` has settings of the producer by Kafka's names."""

    directory: str | None
    servers: str | None
    topic: str | None
    transactional_id: str | None
    version: int | None
    compression: str
    staging: str
    client: Mapping[str, str]

    @property
    def target(self) -> str:
        """The target, for messages."""
        return self.directory or f"the brokers {self.servers}"

    def producer_settings(self) -> dict[str, Any]:
        """Return the settings of the producer that publishes."""
        return {"transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS, "linger.ms": 0, **self.client}

    def admin_settings(self) -> dict[str, Any]:
        """Return those settings that are common to all clients."""
        known = config_defs(AdminConfig)
        return {name: value for name, value in self.client.items() if name in known}


def parse_sink_options(options: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    """Check and convert all options. Raises ValueError with the name of the option."""
    given, client = _named(options)
    servers = client.pop("bootstrap.servers", None)
    directory = None if "directory" not in given else _local(given["directory"], "path")
    if (directory is None) == (servers is None):
        raise ValueError(
            "give either the option path, a data directory that the query may own while it publishes, or "
            "kafka.bootstrap.servers"
        )
    compression = given.get("compression", client.pop("compression.type", "none")).lower()
    found = SinkOptions(
        directory, servers, given.get("topic"), *_identity(given, is_stream=is_stream), compression,
        _staging(given, directory), client,
    )  # fmt: skip
    _check_clients(found)
    return found


def _named(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options by our names, and the settings of clients by Kafka's."""
    lower = {name.lower(): ours for name, ours in _NAMES.items()}
    given: dict[str, str] = {}
    client: dict[str, str] = {}
    for name, text in options.items():
        if name.lower().startswith(_CLIENTS):
            client[name.lower().removeprefix(_CLIENTS)] = text
        elif name.lower() in lower:
            given[lower[name.lower()]] = text
        else:
            raise ValueError(f"unknown option {name} of the sink: {nearest(name, OPTION_NAMES)}")
    return given, client


def _identity(given: Mapping[str, str], *, is_stream: bool) -> tuple[str | None, int | None]:
    """Return the transactional id, and the number of a batch write."""
    name, app, version = (given.get(each) for each in ("transactional_id", "app_id", "version"))
    if is_stream and (app is not None or version is not None):
        raise ValueError("txnAppId and txnVersion are for batch writes: a stream takes transactionalId")
    if (app is None) != (version is None):
        raise ValueError("txnAppId and txnVersion need each other: they identify a batch write together")
    if app is not None and name is not None and app != name:
        raise ValueError("transactionalId and txnAppId name the same id: give one of them")
    for option, value in (("transactionalId", name), ("txnAppId", app)):
        if value == "":
            raise ValueError(f"option {option} is empty")
    if version is None:
        return name, None
    if not version.isascii() or not version.isdigit():
        raise ValueError(f"option txnVersion must be a whole number from 0 on, not {version!r}")
    return app, int(version)


def _staging(given: Mapping[str, str], directory: str | None) -> str:
    """Return the directory of staged files: never within the target, where Apache Kafka would refuse to start
    with it."""
    if "staging" in given:
        staging = _local(given["staging"], "stagingPath")
        if directory is not None and f"{staging}/".startswith(f"{directory}/"):
            raise ValueError(f"option stagingPath must not be within the data directory {directory}")
        return staging
    beside = directory
    if beside is None and "checkpoint" in given and not is_remote(given["checkpoint"]):
        beside = _local(given["checkpoint"], "checkpointLocation")
    if beside is None:
        raise ValueError(
            "option stagingPath is missing: name a directory that the driver and all executors have under "
            "the same path"
        )
    return folder_beside(beside)


def _local(path: str, option: str) -> str:
    if is_remote(path):
        raise ValueError(f"option {option} must be a local or mounted directory, not {path}")
    return absolute_path(path.removeprefix("file://").removeprefix("file:"))


def _check_clients(options: SinkOptions) -> None:
    for name in _OURS:
        if name in options.client:
            raise ValueError(
                f"option kafka.{name} is set by the sink; "
                "for kafka.transactional.id use the option transactionalId"
            )
    settings = {**options.producer_settings(), "compression.type": options.compression}
    try:
        read_config(ProducerConfig, settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options of the producer (kafka.…): {error}") from None
