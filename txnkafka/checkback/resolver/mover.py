"""``Mover``: carries settlements out, each in one transaction of the owner of a half partition."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from txnkafka.checkback.half_topics import HALF_TOPIC, PARKED_TOPIC, owner_id
from txnkafka.checkback.shared_config import derived
from txnkafka.client.producer.batch_content import FinishedBatch
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.client.producer.producer_core import ProducerCore
from txnkafka.client.producer.txn_state import State
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import (
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)

if TYPE_CHECKING:
    from txnkafka.client.client_config import ClientConfig
    from txnkafka.client.producer.producer_batch import ProducerBatch
    from txnkafka.client.transport import Transport
    from txnkafka.coordinator.half.settlement import Settlement

LOG = logging.getLogger("txnkafka.checkback")
_PATIENCE_MS: Final = 10_000  # for a partition without a leader, during which the other halves wait
_LOOKUP_MS: Final = 3_000  # for a topic, which may have been deleted
_LARGEST: Final = 64 << 20
_PERMANENT: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}  # fmt: skip
_CONSEQUENCES: Final = (TransactionAbortableError, ClosedError)
"""The errors of batches that were not sent because of another error."""


class SettlementError(Exception):
    """A settlement was aborted. ``targets`` has the errors by topic, if real topics are the reason;
    ``is_fatal``: the producer can do nothing more, because another owner has fenced it, or after an error."""

    def __init__(self, reason: KafkaError, targets: dict[str, KafkaError], *, is_fatal: bool) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.targets = targets
        self.is_fatal = is_fatal


class Mover:
    """The transactional producer of partition ``number`` of ``__txn_half``. One settlement at a time."""

    def __init__(self, transport: Transport, config: ClientConfig, number: int) -> None:
        self._number = number
        settings = derived(
            ProducerConfig, config, transactional_id=owner_id(number), linger_ms=0, batch_size=1 << 20,
            max_request_size=_LARGEST, buffer_memory=2 * _LARGEST, max_block_ms=_PATIENCE_MS,
            request_timeout_ms=min(config.request_timeout_ms, _PATIENCE_MS),
            delivery_timeout_ms=_PATIENCE_MS,
        )  # fmt: skip
        self._core = ProducerCore(transport, settings)
        self._core.cluster.allow_auto_creation = False  # a topic that was deleted stays deleted

    async def begin(self) -> None:
        """Fence the owner before, and finish its transaction. Raises the error of the coordinator."""
        while True:
            try:
                await self._core.init()
            except KafkaTimeoutError:
                LOG.warning("%s is not initialized yet", owner_id(self._number))
            else:
                return

    async def carry_out(self, content: Settlement) -> None:
        """Write the records of a settlement, and commit. Raises SettlementError if nothing was written."""
        await self._look_up({each.topic for each in content.batches})
        core = self._core
        sent: list[tuple[str, ProducerBatch]] = []
        refused: dict[str, KafkaError] = {}
        try:
            core.begin()
            for topic, partition, records in content.batches:
                try:
                    batches = await core.send_batch(topic, partition, FinishedBatch(records))
                except KafkaError as error:
                    refused[topic] = error
                    raise
                sent += [(topic, batch) for batch in batches.batches]
            for topic, rows in ((HALF_TOPIC, content.half_rows), (PARKED_TOPIC, content.parked_rows)):
                for key, value in rows:
                    await core.send(topic, key, value, partition=self._number, timestamp=None, headers=None)
            await self._end()
        except ClosedError:
            raise
        except KafkaError as error:
            for topic, batch in sent:
                if batch.error is not None and not isinstance(batch.error, _CONSEQUENCES):
                    refused[topic] = batch.error
            raise await self._aborted(error, refused) from error

    async def close(self) -> None:
        """Abort an open transaction, and stop."""
        await self._core.close(_LOOKUP_MS)

    async def _look_up(self, topics: set[str]) -> None:
        """Look up topics that are not known, or no longer. Raises SettlementError for those that are missing
        for some time."""
        cluster = self._core.cluster
        missing: dict[str, KafkaError] = {}
        for topic in sorted(topics - cluster.topics.keys()):
            try:
                await cluster.retried(
                    partial(cluster.topic, topic), _LOOKUP_MS, f"the lookup of topic {topic}"
                )
            except KafkaError as error:
                if not isinstance(error.__cause__, UnknownTopicOrPartitionError):
                    raise SettlementError(error, {}, is_fatal=False) from error
                missing[topic] = UnknownTopicOrPartitionError(f"topic {topic} does not exist")
        if missing:
            raise SettlementError(next(iter(missing.values())), missing, is_fatal=False)

    async def _end(self) -> None:
        """Commit; continue after a timeout, since the coordinator may have decided."""
        while True:
            try:
                await self._core.commit()
            except KafkaTimeoutError as error:
                LOG.warning("%s: the commit goes on: %s", owner_id(self._number), error)
            else:
                return

    async def _aborted(self, reason: KafkaError, targets: dict[str, KafkaError]) -> SettlementError:
        """Abort the transaction; return the error."""
        core = self._core
        while core.txn is not None and core.txn.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            try:
                await core.abort()
            except KafkaTimeoutError:
                LOG.warning("%s: the abort goes on", owner_id(self._number))
            except KafkaError as error:
                reason = error
                break
        is_fatal = core.txn is None or core.txn.state is State.FATAL_ERROR
        return SettlementError(reason, targets, is_fatal=is_fatal)


def is_permanent(error: KafkaError) -> bool:
    """Return whether a topic will not take a batch later either."""
    return error.code in _PERMANENT or isinstance(error, UnknownTopicOrPartitionError)
