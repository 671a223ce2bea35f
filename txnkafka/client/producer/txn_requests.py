"""``TxnRequests``: sends the requests of producer ids and transactions, one at a time, until an answer.

Source: ``TransactionManager.TxnRequestHandler`` and its subclasses.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.cluster import GROUP, TRANSACTION, backoff
from txnkafka.client.prepared_txn_state import PreparedTxnState
from txnkafka.client.producer.turn import Turn
from txnkafka.client.producer.txn_state import Reaction, State, reaction
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import (
    ClosedError,
    CommitFailedError,
    KafkaError,
    NetworkError,
    ProducerFencedError,
    UnsupportedVersionError,
    error_for,
)
from txnkafka.model import NO_PARTITION_LEADER_EPOCH, ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from txnkafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from txnkafka.wire.messages.end_txn import EndTxnRequest
from txnkafka.wire.messages.init_producer_id import InitProducerIdRequest
from txnkafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from txnkafka.client.cluster import Cluster
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.offsets import OffsetAndMetadata
    from txnkafka.client.producer.txn_manager import TransactionManager
    from txnkafka.client.transport import Connection, Versions

_NO_TIMEOUT: Final = (1 << 31) - 1
_V1: Final = {"AddPartitionsToTxn": 3, "EndTxn": 4, "TxnOffsetCommit": 4}
"""The last versions of requests with transaction versions 0 and 1."""
_V2: Final = {"EndTxn": 5, "TxnOffsetCommit": 5}
_2PC: Final = 6  # the first version of InitProducerId with two-phase commit (KIP-939)
_WITHOUT_2PC: Final = {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "two-phase commit needs transaction.two.phase.commit.enable=true on the broker, and its permission"
    ),
    ErrorCode.UNSUPPORTED_VERSION: "the broker keeps no prepared transaction (KIP-939)",
}
_FIRST_PAUSE_MS: Final = 20
"""The pause while the previous transaction is being completed (KAFKA-5482)."""
_GROUP_MISMATCH: Final = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)


class TxnRequests:
    """``drained`` is awaited before EndTxn, until every batch has a result. ``two_phase`` is
    ``transaction.two.phase.commit.enable``."""

    def __init__(
        self,
        cluster: Cluster,
        txn: TransactionManager,
        timeout_ms: int,
        drained: Callable[[], Any],
        *,
        two_phase: bool = False,
    ) -> None:
        self._cluster = cluster
        self._txn = txn
        self._timeout_ms = timeout_ms if txn.is_transactional else _NO_TIMEOUT
        self._two_phase = two_phase and txn.is_transactional
        self._drained = drained
        self._turn = Turn()

    async def init(self, *, keep_prepared: bool = False) -> None:
        """Get a producer id and epoch; for a transactional id, abort or keep the transaction of the producer
        before."""
        txn = self._txn
        async with self._turn:
            await self._init_producer_id(-1, -1, keep_prepared=keep_prepared)
            txn.use_version(is_v2=self._is_v2(), at_init=True)

    async def prepare(self) -> None:
        """Close the transaction for records, after every batch was acknowledged. Raises
        UnsupportedVersionError before transaction version 2, where transactions share an epoch."""
        if not self._txn.is_v2:
            raise UnsupportedVersionError(
                f"{self._txn.name} cannot prepare: two-phase commit needs transaction.version 2"
            )
        await self._drained()
        async with self._turn:
            self._txn.prepare()

    async def end(self, *, commit: bool) -> None:
        """Commit or abort, after the state was changed.

        A prepared transaction without records is aborted for the coordinator, which raises the epoch: the
        next transaction must not have the state of this one, which may be in a database."""
        txn = self._txn
        is_v2, producer = txn.is_v2, txn.producer
        txn.use_version(is_v2=self._is_v2(), at_init=False)
        await self._drained()
        async with self._turn:
            txn.check()
            partitions = None if txn.is_kept else tuple(txn.partitions)
            given = None
            if txn.is_started or txn.prepared.has_transaction:
                commits = commit and txn.is_started
                given = await self._end_txn(producer, commit=commits, is_v2=is_v2)
            txn.ended(given)
            if txn.state is State.INITIALIZING:
                await self._init_producer_id(*txn.producer)
        if commit:
            await self._cluster.transport.visible(partitions)

    async def add_partitions(self) -> None:
        """Add the new partitions of the transaction to it (transaction versions 0 and 1)."""
        txn = self._txn
        while txn.new_partitions and txn.state in (State.IN_TRANSACTION, State.COMMITTING_TRANSACTION):
            async with self._turn:
                added, txn.new_partitions = txn.new_partitions, set()
                try:
                    await self._call(
                        "AddPartitionsToTxn", partial(self._add_partitions, added), _add_partitions_code
                    )
                except KafkaError:
                    return  # the state has the error
                txn.partitions_added(added)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        """Add a group's offsets to the transaction."""
        txn = self._txn
        async with self._turn:
            txn.check_in_transaction("send offsets")
            if txn.is_v2:
                txn.is_started = True
            else:
                message = AddOffsetsToTxnRequest(
                    transactional_id=txn.transactional_id or "", producer_id=txn.producer.producer_id,
                    producer_epoch=txn.producer.producer_epoch, group_id=group.group_id,
                )  # fmt: skip
                await self._call("AddOffsetsToTxn", lambda _: message, _own_code)
                txn.is_started = True
            left = dict(offsets)
            await self._call(
                "TxnOffsetCommit", lambda _: self._offset_commit(left, group), partial(_offset_code, left),
                key=(GROUP, group.group_id),
            )  # fmt: skip

    # The requests

    async def _init_producer_id(self, producer_id: int, epoch: int, *, keep_prepared: bool = False) -> None:
        txn = self._txn

        def message(versions: Versions) -> InitProducerIdRequest:
            txn.can_bump = txn.is_transactional and versions.has("InitProducerId", 3)
            return InitProducerIdRequest(
                transactional_id=txn.transactional_id, transaction_timeout_ms=self._timeout_ms,
                producer_id=producer_id, producer_epoch=epoch, enable2_pc=self._two_phase,
                keep_prepared_txn=keep_prepared,
            )  # fmt: skip

        needs_2pc = self._two_phase or keep_prepared
        response = await self._call("InitProducerId", message, _own_code, at_least=_2PC if needs_2pc else 0)
        kept = None
        if keep_prepared:
            kept = PreparedTxnState(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
        txn.initialized(ProducerIdAndEpoch(response.producer_id, response.producer_epoch), kept)

    async def _end_txn(
        self, producer: ProducerIdAndEpoch, *, commit: bool, is_v2: bool
    ) -> ProducerIdAndEpoch | None:
        message = EndTxnRequest(
            transactional_id=self._txn.transactional_id or "", producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch, committed=commit,
        )  # fmt: skip
        response = await self._call("EndTxn", lambda _: message, _own_code, is_v2=is_v2, is_abort=not commit)
        if response.producer_id < 0:
            return None
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    def _add_partitions(self, partitions: Iterable[TopicPartition], _: Versions) -> AddPartitionsToTxnRequest:
        by_topic = defaultdict(list)
        for topic, number in sorted(partitions):
            by_topic[topic].append(number)
        txn = self._txn
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=txn.transactional_id or "",
            v3_and_below_producer_id=txn.producer.producer_id,
            v3_and_below_producer_epoch=txn.producer.producer_epoch,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=tuple(numbers))
                for name, numbers in by_topic.items()
            ),
        )

    def _offset_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> TxnOffsetCommitRequest:
        by_topic = defaultdict(list)
        for (topic, number), (offset, metadata, epoch) in offsets.items():
            row = TxnOffsetCommitRequestPartition(
                partition_index=number, committed_offset=offset, committed_metadata=metadata,
                committed_leader_epoch=NO_PARTITION_LEADER_EPOCH if epoch is None else epoch,
            )  # fmt: skip
            by_topic[topic].append(row)
        txn = self._txn
        return TxnOffsetCommitRequest(
            transactional_id=txn.transactional_id or "", group_id=group.group_id,
            producer_id=txn.producer.producer_id, producer_epoch=txn.producer.producer_epoch,
            generation_id_or_member_epoch=group.generation_id, member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=tuple(
                TxnOffsetCommitRequestTopic(name=name, partitions=tuple(rows))
                for name, rows in by_topic.items()
            ),
        )  # fmt: skip

    # Sending

    async def _call(
        self, name: str, message: Callable[[Versions], Any], code_of: Callable[[Any], ErrorCode], *,
        key: tuple[int, str] | None = None, is_v2: bool | None = None, is_abort: bool = False,
        at_least: int = 0,
    ) -> Any:  # fmt: skip
        """Send a request until it succeeds. Otherwise change the state by the tables, and raise."""
        config, failures = self._cluster.config, 0
        is_v2 = self._txn.is_v2 if is_v2 is None else is_v2
        if key is None and self._txn.is_transactional:
            key = TRANSACTION, self._txn.transactional_id or ""
        while True:
            self._txn.check()
            failed, code, text, response = name, ErrorCode.NONE, "", None
            try:
                connection = await self._connection(key)
                failed = name
                at_most = (_V2 if is_v2 else _V1).get(name, 1 << 15)
                version = connection.versions.pick(name, at_most, at_least)
                body = message(connection.versions)
                response = await self._cluster.request(connection, name, version, body)
                code = code_of(response)
            except _FindError as error:
                failed, code, text = "FindCoordinator", error.code, str(error)
            except NetworkError as error:
                code, text = ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)
            except KafkaError as error:
                if not isinstance(error, ClosedError):
                    self._txn.fail(error)
                raise
            if code is ErrorCode.NONE:
                return response
            found = reaction(failed, code, is_abort=is_abort)
            if found is Reaction.FIND_COORDINATOR and key is not None:
                self._cluster.forget_coordinator(*key)
            elif found not in (Reaction.RETRY, Reaction.FIND_COORDINATOR):
                text = text or (_WITHOUT_2PC.get(code, "") if at_least else "")
                raise self._failed(failed, code, text, found)
            failures += 1
            pause = backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, failures)
            if code is ErrorCode.CONCURRENT_TRANSACTIONS and not self._txn.is_started:
                pause = min(pause, _FIRST_PAUSE_MS)
            await self._cluster.reactor.sleep(pause)

    async def _connection(self, key: tuple[int, str] | None) -> Connection:
        if key is None:
            return await self._cluster.any_connection()
        try:
            return await self._cluster.coordinator(*key)
        except (NetworkError, ClosedError):
            raise
        except KafkaError as error:
            raise _FindError(error.code, str(error)) from error

    def _failed(self, name: str, code: ErrorCode, text: str, found: Reaction) -> KafkaError:
        """Change the state, and return the error of a request."""
        txn = self._txn
        reason = f"{txn.name}: {name} failed with {code.name}" + (f": {text}" if text else "")
        error: KafkaError = error_for(code, reason)
        if found is Reaction.FENCED:
            error = ProducerFencedError(
                f"{reason}: another producer uses the same transactional.id, close this one"
            )
        elif name == "TxnOffsetCommit" and code in _GROUP_MISMATCH:
            error = CommitFailedError(
                f"{reason}: the group has given the partitions to another member; abort the transaction"
            )
        if found is Reaction.ABORTABLE:
            txn.fail_transaction(error)
        elif found is Reaction.BUMP:
            txn.fail_for_bump(error)
        elif found is Reaction.UNINITIALIZED and txn.state is State.INITIALIZING:
            txn.transition(State.ABORTABLE_ERROR, error)
            txn.transition(State.UNINITIALIZED)
        else:
            txn.fail(error)
        return error

    def _is_v2(self) -> bool:
        return self._cluster.features.get("transaction.version", 0) >= 2


class _FindError(Exception):
    """FindCoordinator was answered with an error."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def _own_code(response: Any) -> ErrorCode:
    return ErrorCode.of(response.error_code)


def _add_partitions_code(response: Any) -> ErrorCode:
    """Return the code that decides: one that is no consequence of another partition's."""
    codes = [
        ErrorCode.of(row.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    ]
    failed = [code for code in codes if code is not ErrorCode.NONE]
    causes = [code for code in failed if code is not ErrorCode.OPERATION_NOT_ATTEMPTED]
    return next(iter(causes or failed), ErrorCode.NONE)


def _offset_code(left: dict[TopicPartition, OffsetAndMetadata], response: Any) -> ErrorCode:
    """Remove the committed offsets from ``left``; return the code that decides about the others: an error
    that ends the request, or one after which the coordinator is found again, or any other."""
    codes = [ErrorCode.NONE]
    for topic in response.topics:
        for row in topic.partitions:
            code = ErrorCode.of(row.error_code)
            codes.append(code)
            if code is ErrorCode.NONE:
                left.pop(TopicPartition(topic.name, row.partition_index), None)
    return max(codes, key=_weight)


def _weight(code: ErrorCode) -> int:
    if code is ErrorCode.NONE:
        return 0
    return {Reaction.RETRY: 1, Reaction.FIND_COORDINATOR: 2}.get(reaction("TxnOffsetCommit", code), 3)
