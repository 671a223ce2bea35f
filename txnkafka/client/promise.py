"""``Promise``: a result that comes later, and ``Task``: a coroutine that waits for promises.

The clients are written with ``async def``, but without an event loop: a ``Reactor`` runs their tasks, over a
socket, in process or in a simulation. A task never blocks; it waits by ``await promise``. All methods are
called under the reactor's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")


class Promise(Generic[T]):
    """One result, or one error, that is set once."""

    __slots__ = ("_calls", "_error", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._calls: list[Callable[[], None]] = []
        self._value: Any = None
        self._error: BaseException | None = None

    @classmethod
    def of(cls, value: T) -> Promise[T]:
        """Return a promise that has its result."""
        made = cls()
        made.is_done, made._value = True, value
        return made

    @classmethod
    def failed(cls, error: BaseException) -> Promise[Any]:
        """Return a promise that has failed."""
        made: Promise[Any] = cls()
        made.is_done, made._error = True, error
        return made

    @property
    def error(self) -> BaseException | None:
        """The error, None without one or before the end."""
        return self._error

    def set(self, value: T) -> None:
        """Set the result, and make the calls that wait for it. A second end is ignored: the response to a
        request that has timed out may still come."""
        if not self.is_done:
            self._value = value
            self._end()

    def fail(self, error: BaseException) -> None:
        """Set the error instead of a result."""
        if not self.is_done:
            self._error = error
            self._end()

    def on_done(self, call: Callable[[], None]) -> None:
        """Make a call at the end; now, if the end was before."""
        if self.is_done:
            call()
        else:
            self._calls.append(call)

    def result(self) -> T:
        """Return the result, or raise the error. Only after the end."""
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def _end(self) -> None:
        self.is_done = True
        calls, self._calls = self._calls, []
        for call in calls:
            call()

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self.is_done:
            yield self
        return self.result()


class Task(Promise[T]):
    """A coroutine that is being run; its promise has the coroutine's result. ``soon`` makes a call in the
    next step of the reactor."""

    __slots__ = ("_coroutine", "_is_cancelled", "_soon")

    def __init__(self, coroutine: Coroutine[Any, Any, T], soon: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._coroutine = coroutine
        self._soon = soon
        self._is_cancelled = False
        self.step()

    def step(self) -> None:
        """Run the coroutine until it waits or ends."""
        if self.is_done:
            return
        try:
            waits_for = self._coroutine.send(None)
        except StopIteration as end:
            self.set(end.value)
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise
        else:
            waits_for.on_done(self._woken)

    def cancel(self, error: KafkaError) -> None:
        """End the coroutine where it waits, and fail with ``error``."""
        if not self.is_done:
            self._coroutine.close()
            self.fail(error)

    def _woken(self) -> None:
        self._soon(self.step)
