"""Settings that all clients have, with Kafka's names and defaults, and how a dictionary of settings is read.

Source: ``CommonClientConfigs``, ``ProducerConfig``, ``ConsumerConfig``, ``AdminClientConfig`` of Apache Kafka
4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from txnkafka.client.transport import Node
from txnkafka.config import ConfigDef, config_defs, long, row

C = TypeVar("C", bound="ClientConfig")
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """Times in milliseconds."""

    bootstrap_servers: str = row("brokers to begin with, HOST:PORT, separated by commas", "", kind="list")
    client_id: str = row("name of the client, for the broker's log and quotas", "txnkafka")
    request_timeout_ms: int = row("longest time for the response to a request", 30_000, 0)
    retry_backoff_ms: int = long("first pause before a request is repeated", 100, 0)
    retry_backoff_max_ms: int = long("longest pause before a request is repeated", 1_000, 0)
    reconnect_backoff_ms: int = long("first pause before a connection is repeated", 50, 0)
    reconnect_backoff_max_ms: int = long("longest pause before a connection is repeated", 1_000, 0)
    metadata_max_age_ms: int = long("age at which leaders and topics are looked up again", 300_000, 0)
    socket_connection_setup_timeout_ms: int = long("longest time to open a connection", 10_000, 1)


def read_config(cls: type[C], given: Mapping[str, Any]) -> C:
    """Return settings by Kafka's names, with dots or underscores; values may be texts. Raises ValueError for
    an unknown name, with the name that is probably meant, and for a value out of range; TypeError for a value
    of another type."""
    rows = config_defs(cls)
    kinds = {each.name: each for each in fields(cls)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        kafkas = name.replace("_", ".")
        spec = rows.get(kafkas)
        if spec is None:
            raise ValueError(f"unknown setting {name!r}{_meant(kafkas, rows)}")
        field = kafkas.replace(".", "_")
        if field in values:
            raise ValueError(f"the setting {kafkas} is given twice")
        values[field] = _value(spec, value, optional=kinds[field].default is None)
    return cls(**values)


def parse_bootstrap(text: str) -> list[Node]:
    """Return the bootstrap servers. Raises ValueError for a text that is not HOST:PORT."""
    nodes: list[Node] = []
    for each in text.split(","):
        host, colon, port = each.strip().rpartition(":")
        host = host.rpartition("://")[2]  # PLAINTEXT://, as in the settings of a broker
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"bootstrap.servers: {each.strip()!r} is not HOST:PORT")
        nodes.append(Node(-1 - len(nodes), host, int(port)))
    return nodes


def _meant(name: str, rows: Mapping[str, ConfigDef]) -> str:
    found = get_close_matches(name, rows, 1)
    return f"; do you mean {found[0]}?" if found else f"; the settings are {', '.join(sorted(rows))}"


def _value(spec: ConfigDef, value: Any, *, optional: bool) -> Any:
    if value is None and optional:
        return None
    name = spec.name
    if spec.kind == "boolean":
        found = value if isinstance(value, bool) else _TRUTH.get(str(value).lower())
        if found is None:
            raise ValueError(f"{name} must be true or false, not {value!r}")
        return found
    if isinstance(value, int) and str(value) in spec.allowed:
        return str(value)  # acks=1
    if spec.kind in ("string", "list"):
        if not isinstance(value, str) and (spec.kind == "string" or not isinstance(value, Iterable)):
            raise TypeError(f"{name} must be a str, not {value!r}")
        text = value if isinstance(value, str) else ",".join(str(each) for each in value)
        if spec.allowed and text not in spec.allowed:
            raise ValueError(f"{name} must be one of {', '.join(spec.allowed)}, not {value!r}")
        return text
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value) if spec.kind == "double" else int(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    if (spec.low is not None and number < spec.low) or (spec.high is not None and number > spec.high):
        raise ValueError(f"{name} must be {spec.low} to {spec.high}, not {value!r}")
    return number
