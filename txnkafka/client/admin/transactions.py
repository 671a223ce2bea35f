"""Transactions: list, describe, abort in a partition, fence producers (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.admin.call import Call, Calls
from txnkafka.client.admin.names import by_topic, names_of, partitions_of
from txnkafka.client.admin.refusals import checked, refusal
from txnkafka.client.admin.route import LEADER, NODE, TRANSACTION, at_node
from txnkafka.client.admin.transaction_types import (
    AbortTransactionSpec,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from txnkafka.wire.messages.describe_transactions import DescribeTransactionsRequest
from txnkafka.wire.messages.init_producer_id import InitProducerIdRequest
from txnkafka.wire.messages.list_transactions import ListTransactionsRequest
from txnkafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Producers = tuple[ProducerState, ...]

_DURATION_SINCE, _PATTERN_SINCE = 1, 2  # of ListTransactions


class TransactionCalls(Calls):
    """A part of ``AdminCore``."""

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        min_duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Return the transactional ids of all coordinators, sorted; with several filters only those that fit
        all of them.

        ``states`` are Kafka's names, such as ``Ongoing``. ``min_duration_ms`` selects transactions that are
        open for longer (KIP-994); an id without a transaction also passes. ``pattern`` is a regular
        expression (RE2) for the whole id (KIP-1152)."""
        message = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter=-1 if min_duration_ms is None else min_duration_ms,
            transactional_id_pattern=pattern,
        )
        since = _PATTERN_SINCE if pattern else 0 if min_duration_ms is None else _DURATION_SINCE
        call = Call(
            "ListTransactions", NODE, "node", lambda keys, version: message, _listed, at_least=since
        )  # fmt: skip
        found = await self.results(call, await self.nodes())
        return sorted(each for rows in found.values() for each in rows)

    async def describe_transactions(
        self, transactional_ids: str | Iterable[str]
    ) -> dict[str, TransactionDescription]:
        """Return the states of transactional ids, by id.

        Raises TransactionalIdNotFoundError (KafkaError with the code TRANSACTIONAL_ID_NOT_FOUND)."""
        described = await self.results(DESCRIPTIONS, names_of(transactional_ids))
        return {
            name: each._replace(coordinator=(await TRANSACTION.find(self.cluster, name)).node.node_id)
            for name, each in described.items()
        }

    async def _existing_transactions(self, ids: Iterable[str]) -> dict[str, TransactionDescription]:
        """Return the descriptions of transactional ids that still exist; their coordinator is -1."""
        outcomes = await self.outcomes(DESCRIPTIONS, ids)
        return checked({
            name: outcome
            for name, outcome in outcomes.items()
            if not isinstance(outcome, KafkaError) or outcome.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        })  # fmt: skip

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> dict[TopicPartition, Producers]:
        """Return the producers that have written to partitions, and their open transactions, as the leader of
        each partition knows them, or the replica on ``broker_id``.

        Raises UnknownTopicOrPartitionError; NotLeaderOrFollowerError for a broker without a replica."""
        route = LEADER if broker_id is None else at_node(broker_id)
        call = Call("DescribeProducers", route, "partition", _ask_producers, _producers)
        return await self.results(call, partitions_of(partitions))

    async def abort_transaction(self, spec: AbortTransactionSpec) -> None:
        """Abort an open transaction in one partition, by an ABORT marker that the leader writes. The
        transaction coordinator does not learn of it: use it for a transaction that hangs, and
        ``fence_producers`` for one that is merely open (KIP-664).

        Raises InvalidProducerEpochError and TransactionCoordinatorFencedError for numbers that are older than
        the partition's, UnknownTopicOrPartitionError."""
        partition = TopicPartition(spec.topic, spec.partition)
        marker = WritableTxnMarker(
            producer_id=spec.producer_id,
            producer_epoch=spec.producer_epoch,
            transaction_result=False,
            topics=(WritableTxnMarkerTopic(name=spec.topic, partition_indexes=(spec.partition,)),),
            # a transaction without an earlier marker has no epoch: 0 is not after any coordinator's
            coordinator_epoch=max(0, -1 if spec.coordinator_epoch is None else spec.coordinator_epoch),
        )
        message = WriteTxnMarkersRequest(markers=(marker,))
        call = Call("WriteTxnMarkers", LEADER, "partition", lambda keys, version: message, _marked)
        await self.result(call, partition)

    async def fence_producers(self, transactional_ids: str | Iterable[str]) -> dict[str, ProducerIdAndEpoch]:
        """Fence the producers of transactional ids: an open transaction is aborted, and the next request of
        the running producer fails with ProducerFencedError. Returns the new producer ids and epochs.

        An unused id is created. The transaction timeout of the id becomes
        ``request.timeout.ms``, as with Java's client, until its next producer sets its own."""
        timeout_ms = self.config.request_timeout_ms

        def request(keys: Sequence[str], version: int) -> InitProducerIdRequest:
            return InitProducerIdRequest(transactional_id=keys[0], transaction_timeout_ms=timeout_ms)

        call = Call(
            "InitProducerId", TRANSACTION, "transactional id", request, _fenced, is_single=True
        )  # fmt: skip
        return await self.results(call, names_of(transactional_ids))


def _listed(
    response: Any, keys: Sequence[int]
) -> Iterator[tuple[int, list[TransactionListing] | KafkaError]]:
    (node_id,) = keys
    rows = [
        TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, node_id)
        for each in response.transaction_states
    ]
    yield node_id, refusal(response.error_code, f"the transactions of broker {node_id}") or rows


def _ask_descriptions(ids: Sequence[str], version: int) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=tuple(ids))


def _descriptions(
    response: Any, ids: Sequence[str]
) -> Iterator[tuple[str, TransactionDescription | KafkaError]]:
    for each in response.transaction_states:
        error = refusal(each.error_code, f"transactional id {each.transactional_id}")
        start_ms = each.transaction_start_time_ms
        yield (
            each.transactional_id,
            error
            or TransactionDescription(
                each.transactional_id,
                -1,
                each.transaction_state,
                each.producer_id,
                each.producer_epoch,
                each.transaction_timeout_ms,
                start_ms if start_ms >= 0 else None,
                tuple(TopicPartition(row.topic, number) for row in each.topics for number in row.partitions),
            ),
        )


def _ask_producers(partitions: Sequence[TopicPartition], version: int) -> DescribeProducersRequest:
    topics = by_topic(partitions)
    rows = tuple(TopicRequest(name=name, partition_indexes=tuple(topics[name])) for name in topics)
    return DescribeProducersRequest(topics=rows)


def _producers(
    response: Any, partitions: Sequence[TopicPartition]
) -> Iterator[tuple[TopicPartition, Producers | KafkaError]]:
    for topic in response.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            states = tuple(map(_producer_state, each.active_producers))
            yield key, refusal(each.error_code, str(key), each.error_message) or states


def _producer_state(row: Any) -> ProducerState:
    start, epoch = row.current_txn_start_offset, row.coordinator_epoch
    return ProducerState(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        epoch if epoch >= 0 else None,
        start if start >= 0 else None,
    )


def _marked(
    response: Any, keys: Sequence[TopicPartition]
) -> Iterator[tuple[TopicPartition, KafkaError | None]]:
    for marker in response.markers:
        for topic in marker.topics:
            for each in topic.partitions:
                key = TopicPartition(topic.name, each.partition_index)
                yield key, refusal(each.error_code, f"{key}, producer {marker.producer_id}")


def _fenced(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, ProducerIdAndEpoch | KafkaError]]:
    error = refusal(response.error_code, f"transactional id {keys[0]}")
    yield keys[0], error or ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


DESCRIPTIONS: Final = Call(
    "DescribeTransactions", TRANSACTION, "transactional id", _ask_descriptions, _descriptions
)
