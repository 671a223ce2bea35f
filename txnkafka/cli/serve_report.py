"""The lines of ``serve`` on stderr for an operator: start, recovery, stop. With ``--log-format json`` the
values are fields as well."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import txnkafka
from txnkafka.storage.formats.layout import META_PROPERTIES, parse_partition_directory

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.env import DataFiles

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
