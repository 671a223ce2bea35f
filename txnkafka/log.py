"""Write partition logs in Apache Kafka's own files: the public names for it.

This is the low-level door, to the logs below a broker; most programs need ``txnkafka.Broker`` instead.

    from txnkafka.log import DataDirectory, LocalDataFiles, LogConfig, TopicPartition, build_batch
    from txnkafka.log import random_uuid

    with DataDirectory(LocalDataFiles(), "data", lambda topic: LogConfig(), now_ms=now_ms) as data:
        log = data.create(TopicPartition("orders", 0), random_uuid(), now_ms=now_ms)
        log.append(build_batch([(b"key", b"value", now_ms)]), now_ms=now_ms)
        log.flush()

docs/writing.md says what is durable when, and shows whole transactions; errors are in ``txnkafka.errors``.
Importing this module loads nothing else; each name loads its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka._core.encode import end_txn_marker
    from txnkafka.broker.flush import Flush, FlushQueue
    from txnkafka.broker.log_manager import LogManager
    from txnkafka.config import CleanerConfig, LogConfig
    from txnkafka.env.data_files import LocalDataFiles
    from txnkafka.model import IsolationLevel, TopicPartition
    from txnkafka.record.builder import InputColumns, RecordBatchBuilder, build_batch
    from txnkafka.storage.data_directory import DataDirectory
    from txnkafka.storage.identity import random_uuid
    from txnkafka.storage.log.append_all import append_all
    from txnkafka.storage.log.append_info import AppendInfo, AppendRequest
    from txnkafka.storage.log.log_read import LogRead, read
    from txnkafka.storage.log.log_slice import LogSlice
    from txnkafka.storage.log.log_validator import AppendOrigin
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work, perform

__all__ = [
    "AppendInfo",
    "AppendOrigin",
    "AppendRequest",
    "CleanerConfig",
    "DataDirectory",
    "Flush",
    "FlushQueue",
    "InputColumns",
    "IsolationLevel",
    "LocalDataFiles",
    "LogConfig",
    "LogManager",
    "LogRead",
    "LogSlice",
    "PartitionLog",
    "RecordBatchBuilder",
    "TopicPartition",
    "Work",
    "append_all",
    "build_batch",
    "end_txn_marker",
    "perform",
    "random_uuid",
    "read",
]

_MODULES = {
    "AppendInfo": "storage.log.append_info",
    "AppendOrigin": "storage.log.log_validator",
    "AppendRequest": "storage.log.append_info",
    "CleanerConfig": "config",
    "DataDirectory": "storage.data_directory",
    "Flush": "broker.flush",
    "FlushQueue": "broker.flush",
    "InputColumns": "record.builder",
    "IsolationLevel": "model",
    "LocalDataFiles": "env.data_files",
    "LogConfig": "config",
    "LogManager": "broker.log_manager",
    "LogRead": "storage.log.log_read",
    "LogSlice": "storage.log.log_slice",
    "PartitionLog": "storage.log.partition_log",
    "RecordBatchBuilder": "record.builder",
    "TopicPartition": "model",
    "Work": "storage.work",
    "append_all": "storage.log.append_all",
    "build_batch": "record.builder",
    "end_txn_marker": "_core.encode",
    "perform": "storage.work",
    "random_uuid": "storage.identity",
    "read": "storage.log.log_read",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"txnkafka.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
