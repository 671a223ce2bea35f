"""Records that were appended and are not durable yet, and requests that wait for them.

A pending transition is stored here and not in the state of a transactional id, so that a failed append
leaves nothing to clear (KAFKA-5351, KAFKA-7519).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from txnkafka.coordinator.txn.txn_events import (
    AddOffsets,
    AddPartitions,
    Answer,
    EndTxn,
    Event,
    Reply,
    Result,
    TransactionRecord,
    Transition,
)
from txnkafka.coordinator.txn.txn_image import COMPLETE, ONGOING, PREPARED
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records import TransactionMetadata

NEVER: Final = 2**63 - 1


@dataclass(slots=True, eq=False)
class Request:
    """An event and the callback for its answer, None for the coordinator's own events. A request parked
    longer than ``until_ms`` is refused. ``on_append`` is called when a record with the requested change
    was appended, for this request or an earlier one."""

    event: Event
    reply: Reply | None
    until_ms: int
    on_append: Callable[[], None] | None = None

    def answer(self, answer: Answer) -> None:
        """Reply, unless this is the coordinator's own event."""
        if self.reply is not None:
            self.reply(answer)


@dataclass(slots=True, eq=False)
class Flight:
    """A record in flight, and what happens when it is durable. ``followers`` are answered after the request
    that has made it."""

    record: TransactionRecord
    result: Transition
    request: Request
    followers: list[Request] = field(default_factory=list)

    def answer_followers(self, answer: Answer) -> None:
        """Answer the followers with the outcome of the record."""
        for request in self.followers:
            request.answer(answer)


class InFlight:
    """``by_id``, which is for others to read, has the flights by id, in the order of the log."""

    def __init__(self) -> None:
        self.by_id: dict[str, list[Flight]] = {}

    def add(self, flights: list[Flight]) -> None:
        """Add the flights of one batch, which was appended."""
        for flight in flights:
            transactional_id = flight.record.transactional_id
            before = self.by_id.get(transactional_id)
            if before is None:
                self.by_id[transactional_id] = [flight]
            else:
                before.append(flight)

    def newest(self, transactional_id: str) -> TransactionRecord | None:
        """Return the last record of the id that is in flight, else None."""
        flights = self.by_id.get(transactional_id)
        return flights[-1].record if flights else None

    def is_ending(self, transactional_id: str) -> bool:
        """Return whether a decision about the transaction of the id is in flight."""
        newest = self.newest(transactional_id)
        return newest is not None and newest.metadata is not None and newest.metadata.state in PREPARED

    def follow(self, request: Request, result: Result) -> bool:
        """Attach a request to the newest record in flight if it needs no other; return whether it did.

        The leader of its partitions may append the data at once: later batches of the producer find the
        transaction open there, and would be appended before these. Not if the previous transaction's markers
        have the epoch of this data; see ``may_build_on``."""
        flights = self.by_id.get(request.event.transactional_id)
        if not flights or request.on_append is None or not isinstance(result, Transition):
            return False
        metadata = flights[-1].record.metadata
        if metadata is None or metadata.client_transaction_version < 2:
            return False
        flights[-1].followers.append(request)
        request.on_append()
        return True

    def land(self, flights: list[Flight]) -> list[Flight]:
        """Remove the flights of one batch; return the removed ones, without flights dropped before."""
        return list(filter(self._remove, flights))

    def _remove(self, flight: Flight) -> bool:
        transactional_id = flight.record.transactional_id
        flights = self.by_id.get(transactional_id)
        if flights is None or flight not in flights:
            return False
        flights.remove(flight)
        if not flights:
            del self.by_id[transactional_id]
        return True

    def drop(self, transactional_id: str) -> list[Request]:
        """Forget the flights of an id; return the requests that wait for them."""
        flights = self.by_id.pop(transactional_id, ())
        return [request for flight in flights for request in (flight.request, *flight.followers)]


class ParkedRequests:
    """Requests that wait: ``queues``, which other modules may read, has them by transactional id, in
    order of arrival. An empty queue stays while its last request is tried again, so that requests that arrive
    then wait.

    A host asks for the earliest deadline after each request, while a thousand producers may wait for their
    markers, so this must not iterate over all queues. A heap has one deadline for each id, at or before the
    deadline of its first request; only the top of the heap is read."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.queues: dict[str, deque[Request]] = {}
        self._deadlines: list[tuple[int, str]] = []  # a heap
        self._noted: dict[str, int] = {}  # a different entry of the id in the heap is obsolete

    def _note(self, request: Request) -> None:
        """Note the deadline of the first request of an id."""
        transactional_id, until_ms = request.event.transactional_id, request.until_ms
        if len(self.queues) == 1:  # no other id waits any more
            self._deadlines.clear()
            self._noted.clear()
        if until_ms < self._noted.get(transactional_id, NEVER):
            self._noted[transactional_id] = until_ms
            heappush(self._deadlines, (until_ms, transactional_id))

    def add(self, request: Request) -> None:
        """Add a request after all others of the id; refuse it above the limit."""
        queue = self.queues.setdefault(request.event.transactional_id, deque())
        if len(queue) < self._limit:
            queue.append(request)
            if len(queue) == 1:
                self._note(request)
        else:
            request.answer(Answer(ErrorCode.CONCURRENT_TRANSACTIONS))

    def add_first(self, request: Request) -> None:
        """Add a request before all others of the id: it was tried before them."""
        if not self._limit:
            self.add(request)
            return
        self.queues.setdefault(request.event.transactional_id, deque()).appendleft(request)
        self._note(request)

    def is_first(self, request: Request) -> bool:
        """Return whether the request is the next one of its id."""
        queue = self.queues.get(request.event.transactional_id)
        return queue is not None and len(queue) > 0 and queue[0] is request

    def take(self, transactional_id: str) -> Request | None:
        """Remove and return the first request of the id; None when none is left."""
        queue = self.queues.get(transactional_id)
        if queue:
            request = queue.popleft()
            if queue:
                self._note(queue[0])
            return request
        self.queues.pop(transactional_id, None)
        return None

    def take_ends(self, transactional_id: str) -> list[Request]:
        """Remove and return the requests that end the transaction of an id."""
        queue = self.queues.get(transactional_id, ())
        found = [request for request in queue if isinstance(request.event, EndTxn)]
        if found:
            left = self.queues[transactional_id] = deque(each for each in queue if each not in found)
            if left:
                self._note(left[0])
        return found

    def drop(self, transactional_id: str) -> list[Request]:
        """Forget the requests of an id; returns them."""
        return list(self.queues.pop(transactional_id, ()))

    def take_old(self, now_ms: int) -> list[Request]:
        """Remove and return the requests whose time is over. An answer may bring the next request at once."""
        found: list[Request] = []
        while self.deadline() <= now_ms:
            transactional_id = self._deadlines[0][1]
            queue = self.queues[transactional_id]
            while queue and queue[0].until_ms <= now_ms:
                found.append(queue.popleft())
            if not queue:
                del self.queues[transactional_id]
        return found

    def deadline(self) -> int:
        """Return the earliest time at which a parked request must be refused; NEVER without one. A queue that
        an exception has left empty has the deadline of its last request."""
        while self._deadlines:
            until_ms, transactional_id = self._deadlines[0]
            queue, is_noted = self.queues.get(transactional_id), self._noted.get(transactional_id) == until_ms
            if is_noted and queue is not None and (not queue or queue[0].until_ms <= until_ms):
                return until_ms
            heappop(self._deadlines)
            if is_noted:
                del self._noted[transactional_id]
                if queue:
                    self._note(queue[0])
        return NEVER


def may_build_on(metadata: TransactionMetadata | None, event: Event) -> bool:
    """Return whether an event may be decided from a state whose record is in flight: partitions that join a
    transaction, its end, and any event after COMPLETE_*.

    A leader that appends data beside the record must wait if the previous markers have the epoch of this
    data: written again after a crash, they would decide about it. They have this epoch if the record has
    transaction version 0 or 1, as Ongoing may follow a COMPLETE_* that is in flight."""
    if metadata is None:
        return False
    if isinstance(event, AddPartitions | AddOffsets):
        is_known = metadata.state == ONGOING or metadata.state in COMPLETE
        return is_known and (metadata.client_transaction_version >= 2 or event.client_transaction_version < 2)
    return metadata.state in COMPLETE or (metadata.state == ONGOING and isinstance(event, EndTxn))
