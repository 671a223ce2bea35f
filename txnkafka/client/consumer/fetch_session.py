"""``FetchSession``: an incremental fetch session with one broker (KIP-227).

The first request names all partitions. A later one only has the partitions that are new or have another
offset, and those that are to be forgotten; the broker knows the others. Source: ``FetchSessionHandler``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.wire.messages.fetch import FetchPartition

Key = tuple[str, int]
"""Topic (an id or a name) and partition."""
_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_INT32_MAX: Final = (1 << 31) - 1


class SessionRequest(NamedTuple):
    """The session's part of a request."""

    session_id: int
    epoch: int
    partitions: Mapping[Key, FetchPartition]
    forgotten: list[Key]


class FetchSession:
    """One session. ``has_ids``: keys have topic ids, not names; a session cannot change that."""

    def __init__(self) -> None:
        self._id = _NO_SESSION
        self._epoch = _FIRST_EPOCH
        self._has_ids = False
        self._sent: dict[Key, FetchPartition] = {}

    def next(self, wanted: Mapping[Key, FetchPartition], *, has_ids: bool) -> SessionRequest:
        """Return the next request for exactly the partitions ``wanted``."""
        if has_ids != self._has_ids:
            self.reset()
        self._has_ids = has_ids
        if self._epoch == _FIRST_EPOCH:
            request = SessionRequest(self._id, _FIRST_EPOCH, dict(wanted), [])
        else:
            changed = {key: each for key, each in wanted.items() if self._sent.get(key) != each}
            forgotten = [key for key in self._sent if key not in wanted]
            request = SessionRequest(self._id, self._epoch, changed, forgotten)
        self._sent = dict(wanted)
        return request

    def answered(self, error: ErrorCode, session_id: int) -> bool:
        """Take the session's part of a response; return False if it has no partitions because of an error."""
        if error != ErrorCode.NONE:
            self._epoch = _FIRST_EPOCH
            if error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = _NO_SESSION
            return False
        if session_id == _NO_SESSION:  # the broker keeps no session
            self.reset()
        else:
            self._id = session_id
            self._epoch = self._epoch + 1 if self._epoch < _INT32_MAX else _FIRST_EPOCH + 1
        return True

    def reset(self) -> None:
        """Begin a new session with the next request, as after a lost connection."""
        self._id, self._epoch, self._sent = _NO_SESSION, _FIRST_EPOCH, {}
