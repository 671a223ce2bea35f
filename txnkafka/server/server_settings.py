"""The settings of a server, by Kafka's names: its node id, its listeners, and the settings of its broker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.env import absolute_path
from txnkafka.server.listeners import LISTENER_SETTINGS, LISTENERS, listeners_at, listeners_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from txnkafka.server.listeners import Listener

_NODE_IDS: Final = ("node.id", "broker.id")
_METADATA_DIRECTORY: Final = "metadata.log.dir"
_DEFAULT_ADDRESS: Final = ("127.0.0.1", 9092)


class SettingsError(ValueError):
    """Raised for unusable settings; ``reasons`` has a sentence for each."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = list(reasons)
        super().__init__("; ".join(self.reasons))


class ServerSettings(NamedTuple):
    """``node_id`` is None if not set."""

    node_id: int | None
    listeners: list[Listener]
    config: BrokerConfig


def server_settings(
    given: Mapping[str, str], data: str, addresses: Sequence[tuple[str, int]] = ()
) -> ServerSettings:
    """Return the settings ``given`` by Kafka's names, for the data directory ``data``. The server listens on
    ``addresses`` (hosts and ports) instead of ``listeners``; without both, on 127.0.0.1:9092. Raises
    SettingsError for settings that Kafka would refuse, and for settings of unsupported features."""
    try:
        _check_metadata_directory(given, data)
        return ServerSettings(_node_id(given), _listeners(addresses, given), _broker_config(given))
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError([str(error)]) from None


def _check_metadata_directory(given: Mapping[str, str], data: str) -> None:
    directory = given.get(_METADATA_DIRECTORY)
    if directory and absolute_path(directory) != absolute_path(data):
        raise ValueError(
            f"{_METADATA_DIRECTORY} cannot be {directory}: the metadata log is in the data directory, {data}"
        )


def _node_id(given: Mapping[str, str]) -> int | None:
    name = next((name for name in _NODE_IDS if name in given), None)
    if name is None:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", given[name]) or int(given[name]) >= 2**31:
        raise ValueError(f"{name} must be a number from 0 to {2**31 - 1}, not {given[name]!r}")
    return int(given[name])


def _listeners(addresses: Sequence[tuple[str, int]], given: Mapping[str, str]) -> list[Listener]:
    if LISTENERS in given and not addresses:
        return listeners_of(given)
    return listeners_at(addresses or [_DEFAULT_ADDRESS], given)


def _broker_config(given: Mapping[str, str]) -> BrokerConfig:
    elsewhere = {*LISTENER_SETTINGS, *_NODE_IDS, _METADATA_DIRECTORY}
    of_broker = {name: text for name, text in given.items() if name not in elsewhere}
    refused = BrokerConfig.refusals(of_broker)
    if refused:
        raise SettingsError(refused.values())
    return BrokerConfig.of(of_broker)
