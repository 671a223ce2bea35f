"""``Sender``: sends the closed batches to the leaders of their partitions, and handles the answers.

Source: ``Sender``, ``RecordAccumulator.drain``.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.cluster import backoff
from txnkafka.client.producer.produce_messages import Answer, answers_of, produce_request, record_errors_of
from txnkafka.client.producer.txn_state import State
from txnkafka.error_codes import ErrorCode, Family
from txnkafka.errors import (
    ClientError,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    error_for,
)
from txnkafka.model import NO_SEQUENCE
from txnkafka.record.builder import RecordBatchBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.client.cluster import Cluster
    from txnkafka.client.producer.accumulator import Accumulator, PartitionQueue
    from txnkafka.client.producer.producer_batch import ProducerBatch
    from txnkafka.client.producer.producer_config import ProducerConfig
    from txnkafka.client.producer.txn_manager import TransactionManager
    from txnkafka.client.producer.txn_requests import TxnRequests
    from txnkafka.client.promise import Promise, Task
    from txnkafka.client.reactor import Timer
    from txnkafka.client.transport import Connection

LOG = logging.getLogger("txnkafka.client")
_DONE: Final = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


class Sender:
    """``txn`` and ``requests`` are None without idempotence. ``wake`` is called after every change."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, txn: TransactionManager | None) -> None:
        self.accumulator: Accumulator
        self.requests: TxnRequests | None = None
        self.on_metadata: Callable[[], None] = lambda: None
        self.is_closed = False
        self._cluster = cluster
        self._reactor = cluster.reactor
        self._config = config
        self._txn = txn
        self._builder = RecordBatchBuilder(config.compression_type, config.compression_level)
        self._mutes = config.max_in_flight_requests_per_connection == 1 and txn is None
        self._queues: dict[ProducerBatch, PartitionQueue] = {}  # of the sent batches
        self._in_flight = Counter[int]()  # requests by node
        self._connections: dict[int, Connection] = {}
        self._tasks: dict[object, Task[Any]] = {}
        self._timers: dict[str, Timer] = {}
        self._is_awake = False

    def wake(self) -> None:
        """Send the batches that are ready, before the reactor's lock is released."""
        if not self._is_awake and not self.is_closed:
            self._is_awake = True
            self._reactor.soon(self._run)

    async def drained(self) -> None:
        """Send all batches, and wait until they have a result."""
        self.accumulator.close_all()
        for batch in list(self.accumulator.incomplete):
            await batch.done

    def close(self, error: KafkaError) -> None:
        """Fail all batches, and stop."""
        self.accumulator.abort(error, also_sent=True)
        self.is_closed = True
        self.accumulator.close()
        for task in list(self._tasks.values()):
            task.cancel(error)
        for timer in self._timers.values():
            timer.cancel()

    # Sending

    def _run(self) -> None:
        self._is_awake = False
        if self.is_closed or not self._is_allowed():
            return
        accumulator, txn = self.accumulator, self._txn
        if accumulator.incomplete and "expiry" not in self._timers:
            first = next(iter(accumulator.incomplete))
            self._at("expiry", first.created_ms + self._config.delivery_ms, self._expire)
        if not accumulator.ready:
            return
        if self._cluster.is_stale:
            self._once("metadata", self._refresh)
        now_ms = self._reactor.now_ms()
        by_node: dict[int, list[PartitionQueue]] = defaultdict(list)
        for queue in accumulator.ready:
            batch = queue.closed[0] if queue.closed else None
            if queue.is_muted or (batch is not None and batch.ready_ms > now_ms):
                continue
            if txn is not None and batch is not None and not txn.may_send(batch):
                continue
            leader = self._cluster.leader_of(queue.partition)
            if leader is None or queue.stale_at == self._cluster.changes:
                self._once("metadata", self._refresh)
            else:
                by_node[leader].append(queue)
        for node_id, queues in by_node.items():
            self._send_to(node_id, queues)

    def _is_allowed(self) -> bool:
        """Act on the state of the producer; return whether batches may be sent."""
        txn, requests = self._txn, self.requests
        if txn is None or requests is None:
            return True
        txn.resolve()
        if txn.state is State.FATAL_ERROR:
            if txn.error is not None:
                self.accumulator.abort(txn.error, also_sent=True)
            return False
        if txn.state is State.ABORTABLE_ERROR and txn.error is not None:
            self.accumulator.abort(txn.error, also_sent=False)
        elif txn.state is State.ABORTING_TRANSACTION:
            aborted = ClientError(f"{txn.name}: the transaction was aborted before the record was sent")
            self.accumulator.abort(aborted, also_sent=False)
        txn.bump()
        if txn.new_partitions and not txn.has_failed:
            self._once("add partitions", requests.add_partitions)
        if txn.state is State.UNINITIALIZED and not txn.is_transactional and self.accumulator.incomplete:
            txn.transition(State.INITIALIZING)
            self._once("init", self._init)
        return txn.has_producer

    async def _init(self) -> None:
        """Get the producer id of a producer without transactions."""
        assert self.requests is not None
        try:
            await self.requests.init()
        except KafkaError as error:
            self.accumulator.abort(error, also_sent=True)
            raise

    def _send_to(self, node_id: int, queues: list[PartitionQueue]) -> None:
        connection = self._connections.get(node_id)
        if connection is None or connection.is_closed:
            self._once(node_id, partial(self._connect, node_id))
            return
        most = self._config.max_in_flight_requests_per_connection
        while self._in_flight[node_id] < most:
            batches = self._taken(queues)
            if not batches:
                return
            self._send(node_id, connection, batches)

    def _taken(self, queues: Iterable[PartitionQueue]) -> list[tuple[ProducerBatch, bytearray]]:
        """Take the first batch of each queue, as many as one request holds."""
        taken: list[tuple[ProducerBatch, bytearray]] = []
        size, txn = 0, self._txn
        is_transactional = txn is not None and txn.is_transactional
        for queue in queues:
            batch = self.accumulator.first(queue)
            if batch is None or queue.is_muted or batch.ready_ms > self._reactor.now_ms():
                continue
            if txn is not None and not txn.may_send(batch):
                continue
            try:
                size += batch.encode(self._builder)
            except (KafkaError, ValueError) as error:  # columns that are wrong, or were changed
                self.accumulator.take(queue)
                refused = error if isinstance(error, KafkaError) else InvalidRecordError(str(error))
                self._fail(batch, refused, is_refused=True)
                continue
            if taken and size > self._config.max_request_size:
                break
            if txn is not None and batch.base_sequence == NO_SEQUENCE:
                txn.number(batch)
            self.accumulator.take(queue)
            self._queues[batch] = queue
            queue.is_muted = self._mutes
            taken.append((batch, batch.sealed(is_transactional=is_transactional)))
        return taken

    def _send(
        self, node_id: int, connection: Connection, batches: list[tuple[ProducerBatch, bytearray]]
    ) -> None:
        config, txn = self._config, self._txn
        try:
            name = txn.transactional_id if txn is not None else None
            is_v1 = name is not None and txn is not None and not txn.is_v2
            version, message = produce_request(
                self._cluster, connection.versions, batches, transactional_id=name, acks=config.required_acks,
                timeout_ms=config.request_timeout_ms, is_v1=is_v1,
            )  # fmt: skip
        except KafkaError as error:
            for batch, _ in batches:
                self._queues.pop(batch).is_muted = False
                self._fail(batch, error, is_refused=True)
            return
        self._in_flight[node_id] += 1
        sent = [batch for batch, _ in batches]
        for batch in sent:
            batch.attempts += 1
        promise = connection.request("Produce", version, message, config.request_timeout_ms)
        promise.on_done(partial(self._answered, node_id, sent, promise))

    # Answers

    def _answered(self, node_id: int, batches: list[ProducerBatch], promise: Promise[Any]) -> None:
        self._in_flight[node_id] -= 1
        if self.is_closed:
            return
        error = promise.error
        if error is not None:
            lost = isinstance(error, NetworkError)
            code = ErrorCode.NETWORK_EXCEPTION if lost else getattr(error, "code", ErrorCode.NONE)
            answer = Answer(code or ErrorCode.UNKNOWN_SERVER_ERROR, message=str(error))
            answers = dict.fromkeys((batch.partition for batch in batches), answer)
        elif promise.result() is None:  # acks=0
            answers = dict.fromkeys((batch.partition for batch in batches), Answer(ErrorCode.NONE))
        else:
            answers = answers_of(promise.result(), self._cluster.names)
        missing = Answer(ErrorCode.NETWORK_EXCEPTION, message="the response lacks the partition")
        for batch in batches:
            self._finish(batch, answers.get(batch.partition, missing))
        self.wake()

    def _finish(self, batch: ProducerBatch, answer: Answer) -> None:
        """Complete, repeat, split or fail a batch."""
        txn, code = self._txn, answer.code
        queue = self._queues.pop(batch)
        queue.is_muted = False
        if code in _DONE:
            if txn is not None:
                txn.acknowledged(batch, answer.base_offset)
            batch.complete(answer.base_offset, answer.log_append_time)
        elif code is ErrorCode.MESSAGE_TOO_LARGE and self._split(queue, batch):
            pass
        elif self._may_retry(batch, answer):
            config = self._config
            pause = backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, batch.attempts)
            self._retry(queue, batch, pause)
        else:
            reason = code.name + (f": {answer.message}" if answer.message else "")
            error = error_for(code, f"{batch.partition}: {reason}")
            self._fail(batch, error, is_refused=batch.attempts <= self._config.retries, answer=answer)
        if code.family is Family.REFRESH:
            queue.stale_at = self._cluster.changes
            self._once("metadata", self._refresh)

    def _may_retry(self, batch: ProducerBatch, answer: Answer) -> bool:
        if batch.done.is_done or batch.attempts > self._config.retries:
            return False
        if batch.created_ms + self._config.delivery_ms <= self._reactor.now_ms():
            return False
        if self._txn is None:
            return answer.code.retriable
        if self._txn.state is State.FATAL_ERROR:
            return False
        return self._txn.may_retry(answer.code, batch, answer.log_start_offset)

    def _retry(self, queue: PartitionQueue, batch: ProducerBatch, pause_ms: int) -> None:
        batch.ready_ms = self._reactor.now_ms() + pause_ms
        place = 0
        if self._txn is not None:
            order = self._txn.entry(batch.partition).in_flight
            mine = order.index(batch) if batch in order else 0
            before = (each for each in queue.closed if each in order and order.index(each) < mine)
            place = sum(1 for _ in before)
        self.accumulator.put_back(queue, batch, place)
        self._reactor.call_at(batch.ready_ms, self.wake)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        if batch.count < 2 or batch.done.is_done or batch.content is None:
            return False
        size = batch.content.size
        limit = self.accumulator.batch_size if size > self.accumulator.batch_size else size // 2
        parts = batch.split(limit)
        if not parts:
            return False
        if self._txn is not None:
            self._txn.entry(batch.partition).replace(batch, parts)
        self.accumulator.replace(batch, parts)
        for part in reversed(parts):
            self._retry(queue, part, 0)
        return True

    def _fail(
        self, batch: ProducerBatch, error: KafkaError, *, is_refused: bool, answer: Answer | None = None
    ) -> None:
        errors = {} if answer is None else record_errors_of(answer, error)
        if batch.fail(error, errors) and self._txn is not None:
            self._txn.failed(batch, error, is_refused=is_refused)
        self.wake()

    # Time

    def _expire(self) -> None:
        """Fail the batches that were not acknowledged within ``delivery.timeout.ms``."""
        limit = self._config.delivery_ms
        self.accumulator.close_all()
        for batch in self.accumulator.expired(self._reactor.now_ms() - limit):
            reason = "sent, but not acknowledged" if batch.attempts else "not sent"
            error = KafkaTimeoutError(
                f"{batch.partition}: {batch.count} records were {reason} within delivery.timeout.ms ({limit})"
            )
            self._give_up(batch, error)
        self.wake()

    def _give_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        for queue in list(self.accumulator.ready):
            self.accumulator.remove(queue, batch)
        was_numbered = batch.base_sequence != NO_SEQUENCE
        self._fail(batch, error, is_refused=False)
        if self._txn is not None and was_numbered and self._txn.state is not State.FATAL_ERROR:
            self._txn.expired(batch)

    def _at(self, name: str, at_ms: int, call: Any) -> None:
        def due() -> None:
            self._timers.pop(name, None)
            if not self.is_closed:
                call()

        self._timers[name] = self._reactor.call_at(at_ms, due)

    # Background tasks

    def _once(self, name: object, begin: Any) -> None:
        """Run a task, unless one of this name is running; then wake."""
        if name in self._tasks:
            return

        def over() -> None:
            self._tasks.pop(name, None)
            error = task.error
            if error is not None and not isinstance(error, KafkaError):  # an impossible answer
                LOG.error("the producer failed in %s", name, exc_info=error)
                failure = ClientError(f"the producer failed in {name}: {error!r}")
                failure.__cause__ = error
                self.accumulator.abort(failure, also_sent=True)
            self.wake()

        task = self._reactor.spawn(begin())
        self._tasks[name] = task
        task.on_done(over)

    async def _connect(self, node_id: int) -> None:
        try:
            self._connections[node_id] = await self._cluster.connection(node_id)
        except KafkaError:
            self._connections.pop(node_id, None)
            await self._refresh()

    async def _refresh(self) -> None:
        """Look up the leaders, after a pause that keeps lookups apart."""
        config = self._config
        since = self._reactor.now_ms() - self._cluster.updated_ms
        if 0 <= since < config.retry_backoff_ms:
            await self._reactor.sleep(config.retry_backoff_ms - since)
        try:
            await self._cluster.refresh()
            self.on_metadata()
        except KafkaError:
            await self._reactor.sleep(config.retry_backoff_max_ms)
