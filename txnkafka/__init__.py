"""Kafka's transactions as a Python library: reads, explains, writes and serves Kafka's own log directories.

    from txnkafka import Broker, LogDir

    partition = LogDir("/var/lib/kafka/data").partition("orders", 0)
    for record in partition.records(isolation_level="read_committed"):
        print(record.offset, record.key, record.value)
    print(partition.explain())                    # why a consumer gets no more, and what to do

    with Broker.open("data") as broker:           # a broker of one node, for any Kafka client
        bootstrap_servers = broker.serve("127.0.0.1:0")

The names here are these two classes, the types that they return, and the errors that they raise.
``txnkafka.commands`` has commands as functions, ``txnkafka.log`` the parts that logs are written with.
Importing the package loads nothing else; each public name loads its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka._core.columns import RecordColumns
    from txnkafka._core.read_committed import TransactionRange
    from txnkafka.embedded import Broker
    from txnkafka.errors import (
        CorruptFileError,
        CorruptRecordError,
        DecodeError,
        FileChangedError,
        FlushUnderWayError,
        InvalidProducerEpochError,
        InvalidRecordError,
        InvalidRequestError,
        InvalidTimestampError,
        InvalidTopicError,
        InvalidTxnStateError,
        KafkaError,
        KafkaStorageError,
        LogDirError,
        MessageTooLargeError,
        MissingPackageError,
        OffsetOutOfRangeError,
        OutOfOrderSequenceError,
        ProduceError,
        RecordListTooLargeError,
        TransactionCoordinatorFencedError,
        UnknownTopicOrPartitionError,
        UnsupportedCompressionTypeError,
    )
    from txnkafka.logdir import Finding, LogDir, PartitionView, ReadUnit, TopicView
    from txnkafka.logdir.explain import Explanation
    from txnkafka.logdir.groups import PendingOffset
    from txnkafka.logdir.partitions import Partitions
    from txnkafka.logdir.timestamps import OffsetAndTimestamp
    from txnkafka.logdir.verdict import Verdict
    from txnkafka.model import (
        IsolationLevel,
        ProducerIdAndEpoch,
        ProducerStateEntry,
        TimestampType,
        TopicPartition,
    )
    from txnkafka.record.batch import Record
    from txnkafka.wire.records import OffsetAndMetadata, TransactionMetadata

    __version__: str

__all__ = [
    "Broker",
    "CorruptFileError",
    "CorruptRecordError",
    "DecodeError",
    "Explanation",
    "FileChangedError",
    "Finding",
    "FlushUnderWayError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidRequestError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTxnStateError",
    "IsolationLevel",
    "KafkaError",
    "KafkaStorageError",
    "LogDir",
    "LogDirError",
    "MessageTooLargeError",
    "MissingPackageError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "PartitionView",
    "Partitions",
    "PendingOffset",
    "ProduceError",
    "ProducerIdAndEpoch",
    "ProducerStateEntry",
    "ReadUnit",
    "Record",
    "RecordColumns",
    "RecordListTooLargeError",
    "TimestampType",
    "TopicPartition",
    "TopicView",
    "TransactionCoordinatorFencedError",
    "TransactionMetadata",
    "TransactionRange",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "Verdict",
    "__version__",
]

_MODULES = {
    "Broker": "embedded",
    "Explanation": "logdir.explain",
    "Finding": "logdir",
    "IsolationLevel": "model",
    "LogDir": "logdir",
    "OffsetAndMetadata": "wire.records",
    "OffsetAndTimestamp": "logdir.timestamps",
    "PartitionView": "logdir",
    "Partitions": "logdir.partitions",
    "PendingOffset": "logdir.groups",
    "ProducerIdAndEpoch": "model",
    "ProducerStateEntry": "model",
    "ReadUnit": "logdir",
    "Record": "record.batch",
    "RecordColumns": "_core.columns",
    "TimestampType": "model",
    "TopicPartition": "model",
    "TopicView": "logdir",
    "TransactionMetadata": "wire.records",
    "TransactionRange": "_core.read_committed",
    "Verdict": "logdir.verdict",
}  # of the other names: errors


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module(f"{__name__}.version").package_version()
    elif name in __all__:
        value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
