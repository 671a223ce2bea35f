"""Transactions with two-phase commit: find open ones, and commit a prepared one (KIP-939)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.admin.call import Call
from txnkafka.client.admin.refusals import refusal
from txnkafka.client.admin.route import TRANSACTION
from txnkafka.client.admin.transaction_types import NO_TIMEOUT, TransactionDescription
from txnkafka.client.admin.transactions import TransactionCalls
from txnkafka.client.prepared_txn_state import PreparedTxnState, prepared_state
from txnkafka.errors import InvalidTxnStateError
from txnkafka.model import ProducerIdAndEpoch
from txnkafka.wire.messages.end_txn import EndTxnRequest
from txnkafka.wire.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnkafka.errors import KafkaError

    Kept = tuple[ProducerIdAndEpoch, PreparedTxnState]

_KEEPS_SINCE: Final = 6  # of InitProducerId
_EPOCH_BUMP: Final = 2  # of transaction.version; then the last version of EndTxn has the next epoch
_LAST_WITHOUT_BUMP: Final = 4


class TwoPhaseCalls(TransactionCalls):
    """A part of ``AdminCore``."""

    async def list_two_phase_transactions(
        self, *, min_duration_ms: int = 0, pattern: str | None = None
    ) -> list[TransactionDescription]:
        """Return the open transactions of producers with two-phase commit, oldest first. They have no
        timeout, and hold back read_committed consumers until they are completed or aborted.

        ``min_duration_ms`` selects transactions that are open for at least that time, ``pattern`` those
        whose whole id a regular expression (RE2) matches (KIP-1152). The broker is not
        informed when a client prepares, so some of the transactions may not be prepared yet."""
        listed = await self.list_transactions(states=("Ongoing",), pattern=pattern)
        coordinators = {each.transactional_id: each.coordinator for each in listed}
        described = await self._existing_transactions(coordinators)
        before_ms = self.reactor.clock.now_ms() - min_duration_ms
        began = [
            (each.transaction_start_time_ms or 0, each._replace(coordinator=coordinators[name]))
            for name, each in described.items()
            if each.is_two_phase and each.state == "Ongoing"
        ]
        return [each for begun_ms, each in sorted(began) if begun_ms <= before_ms]

    async def complete_transaction(self, transactional_id: str, state: PreparedTxnState | str) -> None:
        """Commit the prepared transaction of an id whose producer does not come back. ``state`` is the one
        that ``Producer.prepare_transaction`` has returned. The producer is fenced. ``fence_producers`` aborts
        the transaction instead.

        Raises ValueError for a wrong text; InvalidTxnStateError, and changes nothing, if the id has no open
        transaction of this state; TransactionalIdNotFoundError; UnsupportedVersionError from a broker
        without two-phase commit."""
        wanted = prepared_state(state)
        found = (await self.describe_transactions(transactional_id))[transactional_id]
        if found.state != "Ongoing":
            raise InvalidTxnStateError(
                f"transactional id {transactional_id} has no open transaction: its state is {found.state}"
            )
        _check_same(transactional_id, PreparedTxnState(found.producer_id, found.producer_epoch), wanted)
        producer, ongoing = await self.result(KEEP, transactional_id)
        _check_same(transactional_id, ongoing, wanted)

        def request(keys: Sequence[str], version: int) -> EndTxnRequest:
            return EndTxnRequest(
                transactional_id=keys[0], producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch, committed=True,
            )  # fmt: skip

        at_most = 1 << 15
        if self.cluster.features.get("transaction.version", 0) < _EPOCH_BUMP:
            at_most = _LAST_WITHOUT_BUMP
        call = Call(
            "EndTxn", TRANSACTION, "transactional id", request, _ended, is_single=True, at_most=at_most
        )
        await self.result(call, transactional_id)


def _check_same(transactional_id: str, found: PreparedTxnState, wanted: PreparedTxnState) -> None:
    if found != wanted:
        raise InvalidTxnStateError(
            f"transactional id {transactional_id}: the open transaction is {found}, and not "
            f"{str(wanted) or 'an empty state'}; it stays open"
        )


def _ask_to_keep(keys: Sequence[str], version: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=keys[0], transaction_timeout_ms=NO_TIMEOUT, enable2_pc=True, keep_prepared_txn=True
    )


def _kept(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, Kept | KafkaError]]:
    error = refusal(response.error_code, f"transactional id {keys[0]}")
    producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
    ongoing = response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch
    yield keys[0], error or (producer, PreparedTxnState(*ongoing))


def _ended(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, KafkaError | None]]:
    yield keys[0], refusal(response.error_code, f"transactional id {keys[0]}")


KEEP: Final = Call(
    "InitProducerId", TRANSACTION, "transactional id", _ask_to_keep, _kept, is_single=True,
    at_least=_KEEPS_SINCE,
)  # fmt: skip
