"""Recovers a directory that was not stopped cleanly: runs the broker on it, without a server, until all work
is done, and stops it cleanly.

This includes the work that only a broker can do: it writes the markers of decided transactions, ends
transactions unknown to their coordinator, and creates missing directories of the registry's partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.broker import open_broker
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.host import CallerHost

if TYPE_CHECKING:
    from txnkafka.env import DataFiles
    from txnkafka.errors import KafkaError
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.repair_step import RepairStep

_LONGEST_MS: Final = (1 << 31) - 1  # idle time of a producer: the owners' setting is unknown here


class Recovered(NamedTuple):
    """``refused`` are the partitions that cannot be opened, with the reason; ``steps`` are the truncations,
    deletions and rebuilds, in a partition or in the directory (None)."""

    refused: dict[TopicPartition, KafkaError]
    steps: list[tuple[TopicPartition | None, RepairStep]]


def recover(files: DataFiles, path: str, *, now_ms: int) -> Recovered:
    """Recover the directory, and stop cleanly. Raises KafkaError, LogDirError and OSError."""
    config = BrokerConfig(
        topic_defaults={"producer.id.expiration.ms": str(_LONGEST_MS), "retention.ms": "-1"},
        log_cleaner_enable=False,
    )
    broker = open_broker(files, path, config, now_ms=now_ms)
    try:
        # time stands still, so that nothing is due: neither retention nor the timeout of a transaction
        CallerHost(broker, lambda: now_ms).idle()
        data = broker.data
        of_partitions = [(each, step) for each, log in sorted(data.logs.items()) for step in log.repairs]
        steps = [(None, step) for step in data.repairs_of_directory]
        recovered = Recovered(dict(data.refused), [*steps, *of_partitions])
    except BaseException:
        broker.abandon()
        raise
    broker.close()
    return recovered
