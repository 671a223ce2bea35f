"""``Resolver``: checks undecided halves back, and makes decided ones visible.

    with Resolver({"bootstrap.servers": "127.0.0.1:9092"}) as resolver:
        resolver.wait()

Several resolvers divide the partitions of ``__txn_half``. If one ends, the others get its partitions.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self
from weakref import WeakKeyDictionary

from txnkafka.checkback.checkback_config import CheckBackConfig
from txnkafka.checkback.resolver.core import ResolverCore
from txnkafka.client.client import Client
from txnkafka.errors import ClosedError, KafkaTimeoutError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.checkback.resolver.half_owner import OwnerStatus
    from txnkafka.client.promise import Task
    from txnkafka.embedded import Broker


class Resolver(Client[CheckBackConfig]):
    """An ordinary client program of a Kafka cluster. It needs a broker with transactions, and may run
    anywhere: beside the producers, as a separate process (``txnkafka resolve``), or as several processes.
    ``settings`` are those of ``CheckBackConfig``.

    ``start`` begins, in the background; ``close`` ends it. Both are called by a ``with`` block. Raises
    ValueError and TypeError for wrong settings."""

    kind: ClassVar[str] = "resolver"
    config_class: ClassVar[type[Any]] = CheckBackConfig

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._core = ResolverCore(self._transport, self.config)
        self._task: Task[None] | None = None

    def start(self) -> None:
        """Begin to resolve. A second call does nothing. Raises ClosedError after ``close``."""
        if self._is_closed:
            raise ClosedError(f"the resolver {self.config.client_id!r} is closed")
        with self._reactor:
            if self._task is None:
                self._task = self._reactor.spawn(self._core.run())

    def status(self) -> list[OwnerStatus]:
        """Return the numbers of halves in the partitions that this resolver owns."""
        with self._reactor:
            return self._core.status()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until ``close``, or ``timeout`` seconds."""
        if self._task is not None:
            try:
                self._reactor.wait(self._task, None if timeout is None else timeout * 1000)
            except (ClosedError, KafkaTimeoutError):
                return

    def abandon(self) -> None:
        """Stop at once, without requests to the brokers, which are about to stop."""
        if not self._is_closed:
            with self._reactor.lock:
                if self._task is not None:
                    self._task.cancel(ClosedError("the resolver is closed"))
            super().close()

    def close(self) -> None:
        """Finish, and leave the partitions to another resolver. A second call does nothing."""
        if not self._is_closed:
            try:
                self._reactor.run(self._core.close())
            except ClosedError:  # the broker of this process was closed before, or this is a forked child
                pass
            else:
                with self._reactor.lock:
                    if self._task is not None:
                        self._task.cancel(ClosedError("the resolver is closed"))
        super().close()

    def __enter__(self) -> Self:
        self.start()
        return self


BESIDE_BROKER: Final = "broker"
"""``group.instance.id`` of the resolver in the process of a broker of one node."""
_resolvers: WeakKeyDictionary[Broker, Resolver] = WeakKeyDictionary()
_lock = Lock()


def resolver_of(broker: Broker, settings: Mapping[str, Any] | None = None) -> Resolver:
    """Return the resolver of a broker of this process, which the first call starts, with these settings. It
    ends with the broker."""
    with _lock:
        found = _resolvers.get(broker)
        if found is None or found._is_closed:
            given = {"group_instance_id": BESIDE_BROKER, **(settings or {})}
            found = _resolvers[broker] = Resolver(given, transport=broker._transport)
            found.start()
        return found
