"""Kafka's transactions as a Python library: reads, explains, writes and serves Kafka's own log directories.

    from txnkafka import Broker, LogDir

    partition = LogDir("/var/lib/kafka/data").partition("orders", 0)
    for record in partition.records(isolation_level="read_committed"):
        print(record.offset, record.key, record.value)
    print(partition.explain())                    # why a consumer gets no more, and what to do

    with Broker.open("data") as broker:           # a broker of one node, in this process
        producer = broker.producer(transactional_id="shop")
        with producer.transaction():
            producer.send("orders", b"a book", key=b"anna")
        bootstrap_servers = broker.serve("127.0.0.1:0")       # for other clients

The names here are ``LogDir``, ``Broker``, the clients ``Producer``, ``Consumer`` and ``Admin``, the types
that they return, and the errors that they raise. ``txnkafka.aio`` has the clients for asyncio,
``txnkafka.commands`` has commands as functions, ``txnkafka.log`` the parts that logs are written with.
Importing the package loads nothing else; each public name loads its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka._core.columns import RecordColumns
    from txnkafka._core.read_committed import TransactionRange
    from txnkafka.client.admin import Admin
    from txnkafka.client.consumer import Consumer, ConsumerRecord, RebalanceListener
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.offsets import OffsetAndMetadata
    from txnkafka.client.prepared_txn_state import PreparedTxnState
    from txnkafka.client.producer import Producer, RecordFuture, RecordMetadata
    from txnkafka.embedded import Broker
    from txnkafka.errors import (
        BufferExhaustedError,
        ClientError,
        ClosedError,
        CommitFailedError,
        ConcurrentTransactionsError,
        CorruptFileError,
        CorruptRecordError,
        DecodeError,
        FencedInstanceIdError,
        FileChangedError,
        FlushUnderWayError,
        IllegalGenerationError,
        IllegalStateError,
        InvalidProducerEpochError,
        InvalidProducerIdMappingError,
        InvalidRecordError,
        InvalidRequestError,
        InvalidTimestampError,
        InvalidTopicError,
        InvalidTxnStateError,
        KafkaError,
        KafkaStorageError,
        KafkaTimeoutError,
        LogDirError,
        MessageTooLargeError,
        MissingPackageError,
        NetworkError,
        OffsetOutOfRangeError,
        OutOfOrderSequenceError,
        ProduceError,
        ProducerFencedError,
        RebalanceInProgressError,
        RecordListTooLargeError,
        TopicAlreadyExistsError,
        TransactionAbortableError,
        TransactionCoordinatorFencedError,
        UnknownMemberIdError,
        UnknownTopicOrPartitionError,
        UnsupportedCompressionTypeError,
        UnsupportedVersionError,
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
    from txnkafka.wire.records import GroupOffset, TransactionMetadata

    __version__: str

__all__ = [
    "Admin",
    "Broker",
    "BufferExhaustedError",
    "ClientError",
    "ClosedError",
    "CommitFailedError",
    "ConcurrentTransactionsError",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "CorruptFileError",
    "CorruptRecordError",
    "DecodeError",
    "Explanation",
    "FencedInstanceIdError",
    "FileChangedError",
    "Finding",
    "FlushUnderWayError",
    "GroupOffset",
    "IllegalGenerationError",
    "IllegalStateError",
    "InvalidProducerEpochError",
    "InvalidProducerIdMappingError",
    "InvalidRecordError",
    "InvalidRequestError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTxnStateError",
    "IsolationLevel",
    "KafkaError",
    "KafkaStorageError",
    "KafkaTimeoutError",
    "LogDir",
    "LogDirError",
    "MessageTooLargeError",
    "MissingPackageError",
    "NetworkError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "PartitionView",
    "Partitions",
    "PendingOffset",
    "PreparedTxnState",
    "ProduceError",
    "Producer",
    "ProducerFencedError",
    "ProducerIdAndEpoch",
    "ProducerStateEntry",
    "ReadUnit",
    "RebalanceInProgressError",
    "RebalanceListener",
    "Record",
    "RecordColumns",
    "RecordFuture",
    "RecordListTooLargeError",
    "RecordMetadata",
    "TimestampType",
    "TopicAlreadyExistsError",
    "TopicPartition",
    "TopicView",
    "TransactionAbortableError",
    "TransactionCoordinatorFencedError",
    "TransactionMetadata",
    "TransactionRange",
    "UnknownMemberIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "UnsupportedVersionError",
    "Verdict",
    "__version__",
]

_MODULES = {
    "Admin": "client.admin",
    "Broker": "embedded",
    "GroupOffset": "wire.records",
    "Consumer": "client.consumer",
    "ConsumerGroupMetadata": "client.group_metadata",
    "ConsumerRecord": "client.consumer",
    "Explanation": "logdir.explain",
    "Finding": "logdir",
    "IsolationLevel": "model",
    "LogDir": "logdir",
    "OffsetAndMetadata": "client.offsets",
    "OffsetAndTimestamp": "logdir.timestamps",
    "PartitionView": "logdir",
    "Partitions": "logdir.partitions",
    "PendingOffset": "logdir.groups",
    "PreparedTxnState": "client.prepared_txn_state",
    "Producer": "client.producer",
    "ProducerIdAndEpoch": "model",
    "ProducerStateEntry": "model",
    "ReadUnit": "logdir",
    "RebalanceListener": "client.consumer",
    "Record": "record.batch",
    "RecordColumns": "_core.columns",
    "RecordFuture": "client.producer",
    "RecordMetadata": "client.producer",
    "TimestampType": "model",
    "TopicPartition": "model",
    "TopicView": "logdir",
    "TransactionMetadata": "wire.records",
    "TransactionRange": "_core.read_committed",
    "Verdict": "logdir.verdict",
}  # of the other names: errors


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module(f"{__name__}.version").VERSION
    elif name in __all__:
        value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
