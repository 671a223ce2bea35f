"""``HalfCore``: writes halves and decisions to ``__txn_half``, as coroutines without threads.

The log is the arbiter: the first DECIDE of a half in the order of offsets counts. A decision is appended
first, and then the partition is read from the half to the decision, to learn which one came first.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.checkback.errors import (
    HalfTooLargeError,
    TransactionDecidedError,
    TransactionParkedError,
    UnknownTransactionError,
    WrongGroupError,
)
from txnkafka.checkback.half_content import batches_of
from txnkafka.checkback.half_log import HalfLog, Standing
from txnkafka.checkback.half_topics import CHECK_TOPIC, HALF_TOPIC, half_partition
from txnkafka.checkback.internal_topics import create_internal_topics
from txnkafka.checkback.message import LocalTransactionState
from txnkafka.checkback.payloads import Payloads
from txnkafka.checkback.shared_config import derived
from txnkafka.checkback.targets import Targets
from txnkafka.client.admin.admin_config import AdminConfig
from txnkafka.client.admin.core import AdminCore
from txnkafka.client.cluster import Cluster
from txnkafka.client.producer.producer_core import ProducerCore
from txnkafka.client.promise import Promise
from txnkafka.coordinator.half.half_image import Half, HalfState
from txnkafka.env import random_below, unique_name
from txnkafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from txnkafka.record.builder import RecordBatchBuilder
from txnkafka.wire.records.half_records import AskedRecord, DecidedBy, DecideRecord, HalfRecord, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka._core.record_list import RecordFuture
    from txnkafka.checkback.checkback_config import CheckBackConfig
    from txnkafka.checkback.message import Message
    from txnkafka.client.producer.producer_config import ProducerConfig
    from txnkafka.client.producer.record_metadata import RecordMetadata
    from txnkafka.client.transport import Transport
    from txnkafka.wire.records.check_records import AskRecord
    from txnkafka.wire.records.half_records import HalfBatch

LOG = logging.getLogger("txnkafka.checkback")
STATES: Final = {
    Outcome.COMMIT: LocalTransactionState.COMMIT_MESSAGE,
    Outcome.ROLLBACK: LocalTransactionState.ROLLBACK_MESSAGE,
}
OUTCOMES: Final = {state: outcome for outcome, state in STATES.items()}
_RECORD_OVERHEAD: Final = 200  # of the HALF record around its value, at most
_INT63: Final = 1 << 63


class SentHalf(NamedTuple):
    """A half in the log. ``offset`` is -1 if the broker did not return it. ``outcome`` is not None if an
    earlier half with the same id is decided."""

    transaction_id: str
    group: str
    partition: int
    offset: int
    born_ms: int
    outcome: Outcome | None = None


class Decision(NamedTuple):
    """A decision to append; see ``DecideRecord``."""

    outcome: Outcome
    by: DecidedBy = DecidedBy.PRODUCER
    ask_no: int = 0
    remark: str | None = None


class HalfCore:
    """The writer of one producer group; "" is an administrator, who decides the halves of any group. Its
    coroutines run in the reactor of ``transport``, and may run at the same time. ``config`` has the settings
    of the producer; its codec compresses the messages."""

    def __init__(self, transport: Transport, group: str, config: ProducerConfig) -> None:
        self.group = group
        self.config = config
        self.reactor = transport.reactor
        self.producer = ProducerCore(transport, replace(config, compression_type="none"))
        self._builder = RecordBatchBuilder(config.compression_type, config.compression_level)
        limits = derived(AdminConfig, config, default_api_timeout_ms=config.max_block_ms)
        self._admin = AdminCore(transport, limits)
        self._targets = Targets(self.producer, self._admin)
        cluster = Cluster(transport, config, allow_auto_creation=False)
        self._log = HalfLog(cluster)
        self._payloads = Payloads(cluster)

    def new_id(self) -> str:
        """Return an id that no other half has."""
        return unique_name()

    async def start(self, topics: CheckBackConfig) -> None:
        """Create the topics if they are missing, and look them up."""
        await create_internal_topics(self._admin, topics)
        for topic in (HALF_TOPIC, CHECK_TOPIC):  # a broker may learn of a new topic a little later
            await self.producer.partitions_for(topic)

    async def close(self, timeout_ms: float | None) -> None:
        """Wait until the decisions that were appended are acknowledged, and stop."""
        await self.producer.close(timeout_ms)

    async def send_plain(self, message: Message) -> RecordMetadata:
        """Send a message outside of any half, and wait for its place."""
        future = await self.producer.send(
            message.topic, message.key_bytes(), message.value_bytes(), partition=message.partition,
            timestamp=message.timestamp, headers=message.record_headers() or None,
        )  # fmt: skip
        return await _placed(future)

    # Halves

    async def send(
        self,
        messages: Sequence[Message],
        *,
        transaction_id: str,
        is_new: bool,
        immunity_ms: int = -1,
        check_max: int = -1,
    ) -> SentHalf:
        """Append a half, and wait until it is durable. Unless its id ``is_new``, it may be a
        half that the log has already: returns that one then.

        Raises what ``Targets.check`` raises, HalfTooLargeError, and the broker's error; KafkaTimeoutError
        after ``delivery.timeout.ms``, and the half may be in the log then."""
        await self._targets.check(messages)
        now_ms = self.reactor.clock.now_ms()
        placed = [(message, self._targets.partition(message)) for message in messages]
        batches = batches_of(placed, transaction_id, self._builder, now_ms)
        for batch in batches:
            self._targets.check_size(batch.topic, len(batch.records))
        record = HalfRecord(transaction_id, _nonce(), self.group, now_ms, batches, immunity_ms, check_max)
        key, value = record.encode()
        size, largest = len(value) + _RECORD_OVERHEAD, self.config.max_request_size
        if size > largest:
            raise HalfTooLargeError(
                f"half {transaction_id} has {size:,} bytes; the producer's max.request.size is {largest:,}"
            )
        partition = self.partition_of(transaction_id)
        offset = (await self._append(partition, key, value)).offset
        sent = SentHalf(transaction_id, self.group, partition, offset, now_ms)
        return sent if is_new else await self._known(sent)

    async def send_one(self, message: Message) -> SentHalf:
        """Append a half with one message; see ``send``."""
        given = message.transaction_id
        return await self.send(
            [message], transaction_id=given or self.new_id(), is_new=given is None,
            immunity_ms=immunity_ms(message.check_immunity_time_in_seconds),
        )  # fmt: skip

    async def _known(self, sent: SentHalf) -> SentHalf:
        """Return the half that the id belongs to. Raises WrongGroupError, TransactionParkedError."""
        stop = None if sent.offset < 0 else sent.offset + 1
        found = await self._log.standing(sent.transaction_id, sent.partition, stop)
        self._check_group(sent.transaction_id, found)
        if found.state is HalfState.PARKED or found.outcome is Outcome.PARK:
            raise parked(sent.transaction_id)
        outcome = found.outcome if found.state in (HalfState.DECIDED, HalfState.DONE) else None
        return sent._replace(offset=found.offset, born_ms=found.born_ms, outcome=outcome)

    # Decisions

    async def decide(self, sent: SentHalf, decision: Decision) -> None:
        """Append a decision, and wait until it is durable and known to be the first one.

        Raises TransactionDecidedError if another outcome came first, TransactionParkedError,
        UnknownTransactionError, and the broker's error."""
        place = await (await self._decision(sent, decision))
        if 0 <= sent.offset == place.offset - 1:
            return  # no record between the half and its decision
        stop = None if place.offset < 0 else place.offset + 1
        found = await self._log.decided(sent.transaction_id, sent.partition, sent.offset, stop)
        self._check_group(sent.transaction_id, found)
        check_outcome(sent.transaction_id, found, decision.outcome)

    async def decide_soon(self, sent: SentHalf, decision: Decision) -> None:
        """Append a decision without waiting for the broker. A failure is logged: a check repairs it."""
        decided = await self._decision(sent, decision)

        def report() -> None:
            if decided.error is not None:
                LOG.warning(
                    "half %s: the decision %s was not written, and a check will ask for it: %s",
                    sent.transaction_id, decision.outcome.name, decided.error,
                )  # fmt: skip

        decided.on_done(report)

    async def decide_by_id(self, transaction_id: str, decision: Decision) -> None:
        """Decide a half that this process may not have sent; see ``decide``. The same outcome as before is
        no error."""
        partition = self.partition_of(transaction_id)
        found = await self._log.standing(transaction_id, partition)
        self._check_group(transaction_id, found)
        if found.state is not HalfState.PREPARED:
            check_outcome(transaction_id, found, decision.outcome)
            return
        sent = SentHalf(transaction_id, found.group, partition, found.offset, found.born_ms)
        await self.decide(sent, decision)

    async def done(self, sent: SentHalf | str, timeout_ms: int) -> LocalTransactionState:
        """Wait until a half is visible or rolled back; return its outcome.

        Raises TransactionParkedError, KafkaTimeoutError, UnknownTransactionError."""
        if isinstance(sent, str):
            partition = self.partition_of(sent)
            found = await self._log.standing(sent, partition)
            sent = SentHalf(sent, found.group, partition, found.offset, found.born_ms)
            if found.state in (None, HalfState.PARKED):
                return _outcome(sent.transaction_id, found)
        waits = self.reactor.spawn(self._log.done(sent.transaction_id, sent.partition, sent.offset))
        await self.reactor.first(waits, timeout_ms)
        if not waits.is_done:
            late = KafkaTimeoutError(
                f"half {sent.transaction_id} was not carried out within {timeout_ms} ms: it is undecided, or "
                "no resolver runs ('txnkafka resolve')"
            )
            waits.cancel(late)
        return _outcome(sent.transaction_id, waits.result())

    async def resume(self, transaction_id: str) -> None:
        """Ask the owner to take a parked half back. Raises TransactionDecidedError for a half that is
        decided, IllegalStateError for one that is not parked, UnknownTransactionError."""
        partition = self.partition_of(transaction_id)
        found = await self._log.standing(transaction_id, partition)
        self._check_group(transaction_id, found)
        if found.state is HalfState.PREPARED:
            raise IllegalStateError(f"half {transaction_id} is not parked: it is still checked")
        check_outcome(transaction_id, found, Outcome.PARK)
        sent = SentHalf(transaction_id, found.group, partition, found.offset, found.born_ms)
        await (await self._decision(sent, Decision(Outcome.RESUME, DecidedBy.ADMIN)))

    async def asked(self, ask: AskRecord, listener: str) -> None:
        """Append that a listener was asked."""
        record = AskedRecord(ask.transaction_id, ask.ask_no, self.reactor.clock.now_ms(), listener)
        await self._send(ask.half_partition, *record.encode())

    async def prepared(self, offsets: Mapping[tuple[int, str], int]) -> set[tuple[int, str]]:
        """Return those halves, by partition and id, that are at these offsets and not decided."""
        by_partition: dict[int, dict[str, int]] = {}
        for (partition, transaction_id), offset in offsets.items():
            by_partition.setdefault(partition, {})[transaction_id] = offset
        return {
            (partition, transaction_id)
            for partition, some in by_partition.items()
            for transaction_id in await self._log.prepared(partition, some)
        }

    async def halves(self, transaction_id: str | None = None) -> list[tuple[int, Half]]:
        """Return the halves that are not done, with their partitions: of all, or of an id's partition."""
        count = self.producer.topics[HALF_TOPIC].count
        chosen = range(count) if transaction_id is None else [self.partition_of(transaction_id)]
        return [(number, half) for number in chosen for half in await self._log.halves(number)]

    async def content(self, partition: int, half: Half) -> tuple[HalfBatch, ...]:
        """Return the messages of a half; of a parked half from its copy. Empty if it is done by now."""
        if half.state is HalfState.PARKED:
            parked = await self._payloads.parked(partition, half.transaction_id)
            return () if parked is None else parked.batches
        return (await self._payloads.of(partition, [half])).get(half.transaction_id, ())

    def partition_of(self, transaction_id: str) -> int:
        """Return the partition of a half."""
        return half_partition(transaction_id, self.producer.topics[HALF_TOPIC].count)

    # Shared parts

    def _check_group(self, transaction_id: str, found: Standing) -> None:
        if self.group and found.group not in ("", self.group):
            raise WrongGroupError(
                f"half {transaction_id} belongs to the producer group {found.group!r}, not {self.group!r}"
            )

    async def _decision(self, sent: SentHalf, decision: Decision) -> Promise[RecordMetadata]:
        record = DecideRecord(
            sent.transaction_id, _nonce(), sent.group, decision.outcome, decision.by,
            self.reactor.clock.now_ms(), decision.ask_no, decision.remark,
        )  # fmt: skip
        return await self._send(sent.partition, *record.encode())

    async def _append(self, partition: int, key: bytes, value: bytes) -> RecordMetadata:
        return await (await self._send(partition, key, value))

    async def _send(self, partition: int, key: bytes, value: bytes) -> Promise[RecordMetadata]:
        """Add a record to the next request; return the promise of its place."""
        future = await self.producer.send(
            HALF_TOPIC, key, value, partition=partition, timestamp=None, headers=None
        )
        return _placed(future)


def _placed(future: RecordFuture[RecordMetadata]) -> Promise[RecordMetadata]:
    """Return the promise of a record's place."""
    placed: Promise[RecordMetadata] = Promise()

    def end(done: RecordFuture[RecordMetadata]) -> None:
        try:
            placed.set(done.result())
        except KafkaError as error:
            placed.fail(error)

    future.add_done_callback(end)
    return placed


def immunity_ms(seconds: float | None) -> int:
    """Return the time of a half before its first check; -1 for the resolver's setting."""
    if seconds is None:
        return -1
    if seconds < 0:
        raise ValueError(f"check_immunity_time_in_seconds must not be negative: {seconds}")
    return round(seconds * 1000)


def check_outcome(transaction_id: str, found: Standing, wanted: Outcome) -> None:
    """Raise an error unless the standing of a half has the outcome that was wanted."""
    if found.state is None:
        raise UnknownTransactionError(
            f"the log has no half {transaction_id}, or it was decided more than decision.retention.ms ago"
        )
    if found.outcome is wanted:
        return
    if found.outcome is Outcome.PARK:
        raise parked(transaction_id)
    outcome = STATES[found.outcome or Outcome.ROLLBACK]
    raise TransactionDecidedError(
        f"half {transaction_id} was decided before: {outcome.name}. The decision {wanted.name} has no effect",
        outcome,
    )


def _outcome(transaction_id: str, found: Standing) -> LocalTransactionState:
    """Return the outcome of a half. Raises UnknownTransactionError, TransactionParkedError."""
    check_outcome(transaction_id, found, found.outcome or Outcome.COMMIT)
    if found.outcome is Outcome.PARK:
        raise parked(transaction_id)
    return STATES[found.outcome or Outcome.COMMIT]


def parked(transaction_id: str) -> TransactionParkedError:
    """Return the error for a half that is parked."""
    return TransactionParkedError(
        f"half {transaction_id} is parked: 'txnkafka halves resume' or resume_check_half_message resumes it"
    )


def _nonce() -> int:
    return random_below(_INT63)
