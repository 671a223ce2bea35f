"""Kafka's transactions as a Python library: reads and writes real Kafka log directories, without a broker.

    from txnkafka import LogDir

    partition = LogDir("/var/lib/kafka/data").partition("orders", 0)
    for record in partition.records(isolation_level="read_committed"):
        print(record.offset, record.key, record.value)

``txnkafka.log`` has the names for writing. Importing the package loads nothing else; each public name loads
its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka.errors import (
        CorruptFileError,
        CorruptRecordError,
        KafkaError,
        LogDirError,
        OffsetOutOfRangeError,
        UnknownTopicOrPartitionError,
        UnsupportedCompressionTypeError,
    )
    from txnkafka.logdir import LogDir
    from txnkafka.model import IsolationLevel, ProducerIdAndEpoch, TimestampType, TopicPartition

    __version__: str

__all__ = [
    "CorruptFileError",
    "CorruptRecordError",
    "IsolationLevel",
    "KafkaError",
    "LogDir",
    "LogDirError",
    "OffsetOutOfRangeError",
    "ProducerIdAndEpoch",
    "TimestampType",
    "TopicPartition",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "__version__",
]

_ROOMS = {
    "IsolationLevel": "model",
    "LogDir": "logdir",
    "ProducerIdAndEpoch": "model",
    "TimestampType": "model",
    "TopicPartition": "model",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import distributions, version

        # an archive for Spark's executors contains its metadata; other versions may be installed beside it
        inside = next(iter(distributions(name=__name__, path=__path__)), None)
        value: object = inside.version if inside else version(__name__)
    elif name in __all__:
        value = getattr(import_module(f"{__name__}.{_ROOMS.get(name, 'errors')}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
