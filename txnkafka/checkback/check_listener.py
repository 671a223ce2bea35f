"""``CheckListener``: receives the checks of a producer group, and answers them.

Each process of the group is a member of the consumer group ``__txn_check-GROUP``, which divides the
partitions of ``__txn_check``: each check goes to one process. A check counts when a listener got it (ASKED);
the answer is a DECIDE, and nothing for UNKNOWN.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.checkback.half_content import messages_of
from txnkafka.checkback.half_core import OUTCOMES, Decision, SentHalf
from txnkafka.checkback.half_topics import CHECK_TOPIC
from txnkafka.checkback.message import LocalTransactionState, MessageExt
from txnkafka.client.consumer.consumer_errors import WakeupError
from txnkafka.client.consumer.rebalance_listener import RebalanceListener
from txnkafka.errors import ClosedError, KafkaError
from txnkafka.model import TopicPartition
from txnkafka.wire.records.check_records import AskRecord, ask_record_of, decode_ask_log
from txnkafka.wire.records.half_records import DecidedBy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from txnkafka._core.consumer_record import ConsumerRecord
    from txnkafka.checkback.half_core import HalfCore
    from txnkafka.client.consumer import Consumer

    Answer = Callable[[MessageExt], LocalTransactionState | None]

LOG = logging.getLogger("txnkafka.checkback")
_POLL_MS: Final = 5_000  # a member learns of new partitions at the beginning of a poll
_COMMIT_MS: Final = 500
_PAUSE_SECONDS: Final = 1.0
_MOST_WAITING: Final = 2_000  # RocketMQ's limit; the resolver repeats a check that was left out
_MOST_REMEMBERED: Final = 10_000
_LATE_MS: Final = 5_000  # the half of a check of this age may be decided


class _Check(NamedTuple):
    """The identity of a check. A resumed half begins again with the first check, at another offset."""

    transaction_id: str
    ask_no: int
    half_offset: int


class _Received(NamedTuple):
    """A check, and its place in ``__txn_check``."""

    ask: AskRecord
    place: TopicPartition
    offset: int


class _Handover(RebalanceListener):
    """Gives the checks that have not begun to the process that gets their partitions."""

    def __init__(self, listener: CheckListener) -> None:
        self._listener = listener

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit, so that the checks that have begun do not come again."""
        self._listener.hand_over(partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Commit nothing: another process may have the partitions already."""
        self._listener.give_up(partitions)


class CheckListener:
    """``consumer`` is a consumer of the group, which the listener closes. ``answer`` is called in a pool of
    ``threads``."""

    def __init__(self, consumer: Consumer, core: HalfCore, answer: Answer, name: str, threads: int) -> None:
        self._consumer = consumer
        self._core = core
        self._answer = answer
        self._name = name
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="txnkafka-check")
        self._thread = Thread(target=self._receive, name="txnkafka-check-listener", daemon=True)
        self._stops = Event()
        self._committed: dict[TopicPartition, int] = {}
        self._lock = Lock()  # guards the fields below
        self._waiting: dict[TopicPartition, set[int]] = {}  # offsets of checks whose callback has not begun
        self._begun: OrderedDict[_Check, int | None] = OrderedDict()  # time of the callback; None before it

    def start(self) -> None:
        """Begin to receive checks."""
        self._consumer.subscribe(CHECK_TOPIC, listener=_Handover(self))
        self._thread.start()

    def stop(self) -> None:
        """Leave the group, and wait for the callbacks that have begun."""
        self._stops.set()
        try:
            self._consumer.wakeup()
        except ClosedError:
            LOG.debug("the consumer of checks was closed before")
        if self._thread.ident is not None:
            self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def _receive(self) -> None:
        try:
            while not self._stops.is_set():
                self._receive_some()
        except (ClosedError, WakeupError) as error:
            if not self._stops.is_set():
                LOG.warning("checks of group %r are not received any more: %s", self._core.group, error)
        except Exception:
            LOG.exception("checks of group %r are not received any more", self._core.group)
        finally:
            self._close()

    def _receive_some(self) -> None:
        try:
            self._take(self._consumer.poll(_COMMIT_MS if self._commit() else _POLL_MS))
        except (ClosedError, WakeupError):
            raise
        except KafkaError as error:
            LOG.warning("checks of group %r: %s", self._core.group, error)
            self._stops.wait(_PAUSE_SECONDS)

    def _close(self) -> None:
        try:
            self._consumer.close()
        except KafkaError as error:
            LOG.debug("while the consumer of checks was closed: %s", error)

    def _commit(self) -> bool:
        """Commit up to the first check whose callback has not begun: another process gets those again, if
        this one ends. Returns whether checks wait."""
        with self._lock:
            waiting = self._first_waiting()
        ends = {place: each.offset for place, each in self._consumer.positions().items()}
        wanted = {place: min(end, waiting.get(place, end)) for place, end in ends.items()}
        changed = {place: end for place, end in wanted.items() if self._committed.get(place) != end}
        if changed:
            try:
                self._consumer.commit(changed)
            except ClosedError:
                raise
            except KafkaError as error:
                LOG.debug("checks may come again: %s", error)
        self._committed = wanted
        return bool(waiting)

    def hand_over(self, partitions: Collection[TopicPartition]) -> None:
        """Commit the checks that have begun, before another process gets the partitions."""
        waiting = self.give_up(partitions)
        ends = {
            place: each.offset for place, each in self._consumer.positions().items() if place in partitions
        }
        try:
            self._consumer.commit({place: min(end, waiting.get(place, end)) for place, end in ends.items()})
        except KafkaError as error:
            LOG.debug("checks may come again: %s", error)

    def give_up(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Cancel the checks that wait in these partitions; return the first offset of each partition."""
        with self._lock:
            first = self._first_waiting()
            for place in partitions:
                self._waiting.pop(place, None)
        return first

    def _first_waiting(self) -> dict[TopicPartition, int]:
        return {place: min(offsets) for place, offsets in self._waiting.items() if offsets}

    def _take(self, records: Iterable[ConsumerRecord]) -> None:
        """Begin the callbacks of the checks that concern this group."""
        newest: dict[str, _Received] = {}
        for record in records:
            ask = ask_record_of(decode_ask_log(record.key, record.value))
            if ask is not None and ask.producer_group == self._core.group:
                place = TopicPartition(record.topic, record.partition)
                newest[ask.transaction_id] = _Received(ask, place, record.offset)
        now_ms = self._core.reactor.clock.now_ms()
        late = {
            (ask.half_partition, ask.transaction_id): ask.half_offset
            for ask, *_ in newest.values()
            if now_ms - ask.asked_ms > _LATE_MS
        }
        prepared = self._core.reactor.run(self._core.prepared(late))
        for _, transaction_id in late.keys() - prepared:
            del newest[transaction_id]
        for received in newest.values():
            if self._begin(received):
                self._pool.submit(self._run, received)

    def _begin(self, received: _Received) -> bool:
        """Return whether a check is to be made: not if the same one waits, or was begun after it was sent."""
        ask, place, offset = received
        check = _Check(ask.transaction_id, ask.ask_no, ask.half_offset)
        with self._lock:
            at_ms = self._begun.get(check, -1)
            if at_ms is None or at_ms >= ask.asked_ms:
                return False
            waiting = sum(len(each) for each in self._waiting.values())
            if waiting >= _MOST_WAITING:
                LOG.warning(
                    "group %r: %d checks wait for a thread; the check of half %s is left out until it is "
                    "repeated", self._core.group, waiting, ask.transaction_id,
                )  # fmt: skip
                return False
            self._waiting.setdefault(place, set()).add(offset)
            self._begun[check] = None
            self._begun.move_to_end(check)
            if len(self._begun) > _MOST_REMEMBERED:
                self._begun.popitem(last=False)
        return True

    def _run(self, received: _Received) -> None:
        core = self._core
        ask, place, offset = received
        check = _Check(ask.transaction_id, ask.ask_no, ask.half_offset)
        with self._lock:
            waiting = self._waiting.get(place, set())
            if offset not in waiting:  # given up
                self._begun.pop(check, None)
                return
            waiting.discard(offset)
        try:
            core.reactor.run(core.asked(ask, self._name))
            state = self._ask(ask)
            if state in OUTCOMES:
                sent = SentHalf(
                    ask.transaction_id, core.group, ask.half_partition, ask.half_offset, ask.born_ms
                )
                decision = Decision(OUTCOMES[state], DecidedBy.CHECK, ask.ask_no)
                core.reactor.run(core.decide_soon(sent, decision))
        except KafkaError as error:
            LOG.warning("half %s: check %d failed: %s", ask.transaction_id, ask.ask_no, error)
        finally:
            with self._lock:
                self._begun[check] = core.reactor.clock.now_ms()

    def _ask(self, ask: AskRecord) -> LocalTransactionState:
        """Return the answer of the listener. An exception counts as UNKNOWN: the half is checked again."""
        first, *others = messages_of(ask.batches)
        message = MessageExt.of(
            first, transaction_id=ask.transaction_id, producer_group=self._core.group,
            born_timestamp=ask.born_ms, check_times=ask.ask_no, others=tuple(others),
        )  # fmt: skip
        try:
            state = self._answer(message)
        except Exception:
            LOG.exception("half %s: check %d raised; it counts as UNKNOWN", ask.transaction_id, ask.ask_no)
            return LocalTransactionState.UNKNOWN
        return checked(state, f"half {ask.transaction_id}: check {ask.ask_no}")


def checked(answer: object, what: str) -> LocalTransactionState:
    """Return the answer of a listener. None and other values count as UNKNOWN, with a warning."""
    if isinstance(answer, LocalTransactionState):
        return answer
    LOG.warning("%s returned %r instead of a LocalTransactionState; it counts as UNKNOWN", what, answer)
    return LocalTransactionState.UNKNOWN
