"""The lines of ``serve`` on stderr for an operator: start, recovery, stop, and listeners that other machines
can reach. With ``--log-format json`` the values are fields as well."""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING

import txnkafka
from txnkafka.server.listeners import address_text
from txnkafka.storage.formats.layout import META_PROPERTIES, parse_partition_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.env import DataFiles
    from txnkafka.server.listeners import Endpoint
    from txnkafka.server.tcp import Address

__all__ = ["is_loopback", "log_recovery", "log_start", "log_stop", "warn_of_exposure", "was_owned"]

LOG = logging.getLogger("txnkafka.server")


def was_owned(files: DataFiles, path: str) -> bool:
    """Return True for a directory that was opened before or has partitions. Call before opening it."""
    if not files.is_directory(path):
        return False
    names = [entry.name for entry in files.list(path)]
    return META_PROPERTIES in names or any(map(parse_partition_directory, names))


def log_recovery(broker: Broker, seconds: float) -> None:
    """Log the checks made while opening a directory that was not stopped cleanly; ``seconds`` is their
    duration."""
    data = broker.data
    if data.was_clean:
        return
    fields = {
        "event": "recovery", "directory": data.path, "logs_checked": len(data.recovered_from),
        "bytes_cut": sum(step.bytes_cut for log in data.logs.values() for step in log.repairs),
        "seconds": round(seconds, 3),
    }  # fmt: skip
    _log(
        "{directory} was not stopped cleanly: {logs_checked:,} logs checked, {bytes_cut:,} bytes cut, "
        "{seconds:.1f} s", fields,
    )  # fmt: skip


def log_start(broker: Broker) -> None:
    """Log the version, the directory and the number of partitions."""
    fields = {
        "event": "start", "version": txnkafka.__version__, "directory": broker.data.path,
        "cluster_id": broker.cluster_id, "node_id": broker.node_id, "partitions": len(broker.logs),
    }  # fmt: skip
    _log(
        "txnkafka {version} serves {directory}: cluster {cluster_id}, node {node_id}, "
        "partitions {partitions:,}",
        fields,
    )


def log_stop(broker: Broker, seconds: float) -> None:
    """Log the state of the directory after closing it."""
    fields = {"event": "stop", "is_clean": broker.data.is_left_clean, "seconds": round(seconds, 3)}
    if broker.data.is_left_clean:
        _log("stopped cleanly, {seconds:.1f} s", fields)
    else:
        _log("stopped, {seconds:.1f} s; the next start checks all logs, since some were not opened", fields)


def _log(text: str, fields: dict[str, object]) -> None:
    LOG.info("%s", text.format(**fields), extra={"fields": fields})


def warn_of_exposure(listening: Iterable[Sequence[Address]], endpoints: Iterable[Endpoint]) -> None:
    """Warn about each listener that other machines can reach: one of its addresses is not a loopback address,
    or its advertised address is not, which means that something forwards to it."""
    for addresses, endpoint in zip(listening, endpoints, strict=True):
        beyond = [address_text(*address) for address in addresses if not is_loopback(address[0])]
        if not beyond and (not endpoint.host or is_loopback(endpoint.host)):
            continue
        shown = ", ".join(beyond) or f"{address_text(*addresses[0])}, advertised as {endpoint}"
        LOG.warning(
            "the listener %s can be reached from other machines (%s), without encryption, and clients are "
            "not authenticated: each of them may read, write and delete; 'txnkafka docs serve' has ways to "
            "restrict this (Security)", endpoint.name, shown,
            extra={"fields": {"event": "exposed", "listener": endpoint.name, "addresses": shown}},
        )  # fmt: skip


def is_loopback(host: str) -> bool:
    """Return True for an address or host name that only programs on this machine can connect to."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
