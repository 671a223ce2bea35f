"""Hanging transactions: open in a partition, but not known to any coordinator, so nothing will end them.

Source: ``TransactionsCommand.FindHangingTransactionsCommand`` (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.client.admin.names import names_of, partitions_of
from txnkafka.client.admin.topics import TopicCalls
from txnkafka.client.admin.transaction_types import HangingTransaction, TransactionDescription
from txnkafka.client.admin.transactions import TransactionCalls
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FIFTEEN_MINUTES: Final = 900_000
"""The largest transaction timeout that a broker allows by default, ``transaction.max.timeout.ms``."""
_BATCH: Final = 500  # partitions in one request


class HangingCalls(TopicCalls, TransactionCalls):
    """A part of ``AdminCore``."""

    async def find_hanging_transactions(
        self,
        *,
        topics: str | Iterable[str] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        broker_id: int | None = None,
        max_transaction_timeout_ms: int = FIFTEEN_MINUTES,
    ) -> list[HangingTransaction]:
        """Return the transactions that hang: open for longer than any transaction may be, in a partition that
        the transaction of their producer does not contain. They hold back read_committed consumers and
        compaction; ``abort_transaction(found.spec)`` ends one.

        Searches all topics, or those given, or single ``partitions``; with ``broker_id`` the replicas on that
        broker. ``max_transaction_timeout_ms`` is the largest ``transaction.max.timeout.ms`` of the brokers: a
        smaller number than theirs takes living transactions for hanging ones only if their coordinator does
        not know them either."""
        if partitions is None:
            searched = await self._searched(topics, broker_id)
        else:
            searched = partitions_of(partitions)
        candidates = [
            found
            for start in range(0, len(searched), _BATCH)
            for found in await self._open(
                searched[start : start + _BATCH], broker_id, max_transaction_timeout_ms
            )
        ]
        if not candidates:
            return []
        listed = await self.list_transactions(producer_ids={each.producer_id for each in candidates})
        ids = {each.producer_id: each.transactional_id for each in listed}
        described = await self._existing_transactions(ids.values())
        named = [_named(each, ids.get(each.producer_id), described) for each in candidates]
        return [each for each in named if not _is_known(each, described)]

    async def _searched(
        self, topics: str | Iterable[str] | None, broker_id: int | None
    ) -> list[TopicPartition]:
        if topics is None:
            topics = [each.name for each in await self.list_topics(include_internal=True)]
        return [
            TopicPartition(topic.name, each.partition)
            for topic in (await self.describe_topics(names_of(topics))).values()
            for each in topic.partitions
            if broker_id is None or broker_id in each.replicas
        ]

    async def _open(
        self, partitions: Sequence[TopicPartition], broker_id: int | None, longest_ms: int
    ) -> list[HangingTransaction]:
        """Return the transactions that are open for longer, by the time of their last record."""
        found = await self.describe_producers(partitions, broker_id=broker_id)
        before_ms = self.reactor.clock.now_ms() - longest_ms
        return [
            HangingTransaction(
                partition, each.producer_id, each.producer_epoch, each.coordinator_epoch,
                each.current_transaction_start_offset, each.last_timestamp, None,
            )
            for partition, states in found.items()
            for each in states
            if each.current_transaction_start_offset is not None and each.last_timestamp < before_ms
        ]  # fmt: skip


def _named(
    found: HangingTransaction, transactional_id: str | None, described: Mapping[str, TransactionDescription]
) -> HangingTransaction:
    description = described.get(transactional_id or "")
    is_two_phase = description is not None and description.is_two_phase
    return found._replace(transactional_id=transactional_id, is_two_phase=is_two_phase)


def _is_known(found: HangingTransaction, described: Mapping[str, TransactionDescription]) -> bool:
    """Return whether the coordinator will write the end marker of a transaction."""
    description = described.get(found.transactional_id or "")
    return description is not None and found.topic_partition in description.topic_partitions
