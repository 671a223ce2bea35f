"""``CallerThread``: lets one thread at a time into a consumer, as in Java."""

from __future__ import annotations

from threading import get_ident

from txnkafka.errors import ClosedError, IllegalStateError


class CallerThread:
    """A context. The thread inside may enter again, as a listener does that commits. ``is_closed`` refuses
    all threads."""

    def __init__(self) -> None:
        self.is_closed = False
        self._thread: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        self.check()
        thread = get_ident()
        if self._thread not in (None, thread):
            raise IllegalStateError(
                "another thread is in a method of this consumer: use a consumer for each thread; only wakeup "
                "may be called from any thread"
            )
        self._thread = thread
        self._depth += 1

    def check(self) -> None:
        """Raise ClosedError after the end."""
        if self.is_closed:
            raise ClosedError("the consumer is closed")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._thread = None
