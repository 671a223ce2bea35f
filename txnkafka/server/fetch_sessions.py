"""Incremental fetch sessions (KIP-227).

A consumer names all its partitions once and later only changes; the response has only partitions with news. A
session belongs to the broker, not to a connection. Its epoch grows with each request, so that a repeated or
lost request is noticed. Partitions whose records were sent move to the end of the order, so that every
partition gets its turn when the response has a limit of bytes (KIP-74).

A request of a few bytes makes the broker check all partitions of a session. Therefore a session has a limit
of partitions; a client with more names them in each request.

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

IDLE_MS: Final = 120_000  # min.incremental.fetch.session.eviction.ms
MOST_PARTITIONS: Final = 1 << 15  # in one session
_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_INT32_MAX: Final = 0x7FFFFFFF
_FIRST_WITH_IDS: Final = 13

Key = tuple[str, int]
"""A partition: topic id and number; topic name and number before version 13."""


class _Partition:
    """A partition of a session: how it is fetched, and the offsets in the last response."""

    __slots__ = ("high_watermark", "log_start_offset", "wanted")

    def __init__(self, wanted: FetchPartition) -> None:
        self.wanted = wanted
        self.high_watermark = self.log_start_offset = -1

    def is_new(self, data: PartitionData) -> bool:
        """Return whether a response differs from the last one, and remember it as the last one."""
        is_new = bool(
            data.error_code
            or data.records
            or data.diverging_epoch.epoch >= 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
        )
        # once an error has ended, the partition is sent again, whatever was sent before
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return is_new


class _Session:
    """One session; ``epoch`` is the epoch expected in the next request."""

    def __init__(self, session_id: int, has_topic_ids: bool, now_ms: int) -> None:
        self.id = session_id
        self.has_topic_ids = has_topic_ids
        self.epoch = _FIRST_EPOCH + 1
        self.created_ms = self.used_ms = now_ms
        self.partitions: dict[Key, _Partition] = {}

    def update(self, request: FetchRequest, version: int) -> None:
        """Add, change and forget partitions as the request asks."""
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
    """The partitions of one request, in the order in which they are read."""

    def __init__(
        self, partitions: Mapping[Key, FetchPartition], session: _Session | None, *, is_full: bool
    ) -> None:
        self.partitions = partitions
        self._session = session
        self._is_full = is_full

    @property
    def session_id(self) -> int:
        """Session id for the response; 0 without a session."""
        return _NO_SESSION if self._session is None else self._session.id

    def answer(self, found: Iterable[tuple[Key, PartitionData]]) -> list[tuple[Key, PartitionData]]:
        """Return the results that the response contains."""
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
    """The fetch sessions of a broker, at most ``limit`` (``max.incremental.fetch.session.cache.slots``)."""

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._sessions: OrderedDict[int, _Session] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> Wanted | ErrorCode:
        """Return the partitions that a request fetches, or the error of its session."""
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
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND  # the client continues with a full request
        if not session.partitions:
            del self._sessions[session.id]
            return Wanted({}, None, is_full=True)
        partitions = {key: partition.wanted for key, partition in session.partitions.items()}
        return Wanted(partitions, session, is_full=False)

    def _new(self, request: FetchRequest, version: int, now_ms: int) -> _Session | None:
        """Return a new session; None for too many partitions, or when the cache is full and no session can
        be evicted."""
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
        """Return the session to evict for a new one of ``size`` partitions, or None.

        The least recently used session goes if it was idle for ``IDLE_MS``. Otherwise the smallest session
        that has been used for longer than ``IDLE_MS`` goes, if it has fewer than ``size`` partitions."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.used_ms >= IDLE_MS:
            return oldest
        old = (
            session for session in self._sessions.values() if session.used_ms - session.created_ms > IDLE_MS
        )
        smallest = min(old, key=lambda each: (len(each.partitions), each.id), default=None)
        return smallest if smallest is not None and len(smallest.partitions) < size else None


def _named(request: FetchRequest, version: int) -> Iterable[tuple[Key, FetchPartition]]:
    for topic in request.topics:
        name = _topic(topic.topic_id, topic.topic, version)
        for partition in topic.partitions:
            yield (name, partition.partition), partition


def _topic(topic_id: str, name: str, version: int) -> str:
    return topic_id if version >= _FIRST_WITH_IDS else name
