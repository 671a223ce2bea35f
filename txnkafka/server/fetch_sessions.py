"""Incremental fetch sessions (KIP-227): a consumer names its partitions once and then only what changes; it
is answered with the partitions that have something new.

With a few bytes a client has the broker look at all partitions of a session, so that it has a limit of them:
who fetches more names them in each request.

A session belongs to the broker, not to a connection. It has an epoch that grows with each request, so that a
repeated or lost request is noticed. Partitions whose records were sent go to the end, so that with a limit of
bytes all of them get their turn (KIP-74).

Source: ``FetchSession``, ``FetchManager``.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from txnkafka.env import random_below
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

__all__ = ["FetchSessions", "Key", "Wanted"]

IDLE_MS: Final = 120_000  # min.incremental.fetch.session.eviction.ms
MOST_PARTITIONS: Final = 1 << 15  # of a session
_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_INT32_MAX: Final = 0x7FFFFFFF
_FIRST_WITH_IDS: Final = 13

Key = tuple[str, int]
"""A partition: the id of its topic and its number, or the name before version 13."""


class _Partition:
    """What a session knows of a partition: how it is fetched, and what was answered last."""

    __slots__ = ("high_watermark", "log_start_offset", "wanted")

    def __init__(self, wanted: FetchPartition) -> None:
        self.wanted = wanted
        self.high_watermark = self.log_start_offset = -1

    def is_new(self, data: PartitionData) -> bool:
        """Whether an answer says something that the last one did not; it is the last one now."""
        is_new = bool(
            data.error_code
            or data.records
            or data.diverging_epoch.epoch >= 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
        )
        # when an error is over the partition is answered again, whatever it was before
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return is_new


class _Session:
    """One session; ``epoch`` is that of the next request."""

    def __init__(self, session_id: int, has_topic_ids: bool, now_ms: int) -> None:
        self.id = session_id
        self.has_topic_ids = has_topic_ids
        self.epoch = _FIRST_EPOCH + 1
        self.created_ms = self.used_ms = now_ms
        self.partitions: dict[Key, _Partition] = {}

    def update(self, request: FetchRequest, version: int) -> None:
        """Take over what a request adds, changes and forgets."""
        for key, wanted in _named(request, version):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = _Partition(wanted)
            else:
                known.wanted = wanted
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                self.partitions.pop((_topic(topic.topic_id, topic.topic, version), number), None)


class Wanted:
    """What one request fetches: ``partitions`` in the order in which they are read."""

    def __init__(
        self, partitions: Mapping[Key, FetchPartition], session: _Session | None, *, is_full: bool
    ) -> None:
        self.partitions = partitions
        self._session = session
        self._is_full = is_full

    @property
    def session_id(self) -> int:
        """That of the answer; 0 where there is no session."""
        return _NO_SESSION if self._session is None else self._session.id

    def answer(self, found: Iterable[tuple[Key, PartitionData]]) -> list[tuple[Key, PartitionData]]:
        """What of the answers is sent."""
        if self._session is None:
            return list(found)
        sent, known = [], self._session.partitions
        for key, data in found:
            partition = known.get(key)
            if partition is None:
                continue
            if partition.is_new(data) or self._is_full:
                sent.append((key, data))
            if data.records:
                known[key] = known.pop(key)
        return sent


class FetchSessions:
    """The sessions of a broker, ``limit`` at most (``max.incremental.fetch.session.cache.slots``)."""

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._sessions: OrderedDict[int, _Session] = OrderedDict()  # what was used last is last

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> Wanted | ErrorCode:
        """What a request fetches, or the error of its session."""
        if request.session_epoch in (_FIRST_EPOCH, _FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            session = None
            if request.session_epoch == _FIRST_EPOCH:
                session = self._new(request, version, now_ms)
            if session is not None:
                session.update(request, version)
            return Wanted(dict(_named(request, version)), session, is_full=True)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.has_topic_ids != (version >= _FIRST_WITH_IDS):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = session.epoch + 1 if session.epoch < _INT32_MAX else _FIRST_EPOCH + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session.id)
        session.update(request, version)
        if len(session.partitions) > MOST_PARTITIONS:
            del self._sessions[session.id]
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND  # the client goes on with all of its partitions
        if not session.partitions:
            del self._sessions[session.id]
            return Wanted({}, None, is_full=True)
        partitions = {key: partition.wanted for key, partition in session.partitions.items()}
        return Wanted(partitions, session, is_full=False)

    def _new(self, request: FetchRequest, version: int, now_ms: int) -> _Session | None:
        """A session; None for too many partitions, and when there are too many sessions, of which none has to
        go for it."""
        size = sum(len(topic.partitions) for topic in request.topics)
        if size > MOST_PARTITIONS:
            return None
        if len(self._sessions) >= self._limit:
            evicted = self._evictable(size, now_ms)
            if evicted is None:
                return None
            del self._sessions[evicted.id]
        has_topic_ids = version >= _FIRST_WITH_IDS
        session_id = _NO_SESSION
        while session_id == _NO_SESSION or session_id in self._sessions:
            session_id = 1 + random_below(_INT32_MAX)
        session = self._sessions[session_id] = _Session(session_id, has_topic_ids, now_ms)
        return session


    def _evictable(self, size: int, now_ms: int) -> _Session | None:
        """The session that goes for a new one of ``size`` partitions: the one that was not used for the
        longest time, if that is long enough, or else the smallest of those that have had theirs, if it is
        smaller."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.used_ms >= IDLE_MS:
            return oldest
        old = (each for each in self._sessions.values() if each.used_ms - each.created_ms > IDLE_MS)
        smallest = min(old, key=lambda each: (len(each.partitions), each.id), default=None)
        return smallest if smallest is not None and len(smallest.partitions) < size else None


def _named(request: FetchRequest, version: int) -> Iterable[tuple[Key, FetchPartition]]:
    for topic in request.topics:
        name = _topic(topic.topic_id, topic.topic, version)
        for partition in topic.partitions:
            yield (name, partition.partition), partition


def _topic(topic_id: str, name: str, version: int) -> str:
    return topic_id if version >= _FIRST_WITH_IDS else name
