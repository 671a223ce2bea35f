"""``Client``: the common part of ``Producer``, ``Consumer`` and ``Admin``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from txnkafka.client.client_config import ClientConfig, parse_bootstrap, read_config
from txnkafka.client.socket_reactor import SocketReactor
from txnkafka.client.socket_transport import SocketTransport
from txnkafka.env import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from txnkafka.client.transport import Transport

C = TypeVar("C", bound=ClientConfig)


class Client(Generic[C]):
    """A client over a socket, or over ``transport``. ``settings`` have Kafka's names; keyword arguments add
    to them. Any thread may call it, except where a class has another rule.

    Raises ValueError for unknown and wrong settings, TypeError for values of another type."""

    kind: ClassVar[str]
    config_class: ClassVar[type[Any]]

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        transport: Callable[[str], Transport] | None = None,
        **more: Any,
    ) -> None:
        self.config: C = read_config(self.config_class, {**(settings or {}), **more})
        self._transport = self._opened() if transport is None else transport(self.config.client_id)
        self._reactor = self._transport.reactor
        self._is_closed = False

    def _opened(self) -> Transport:
        config = self.config
        if not config.bootstrap_servers:
            raise ValueError(f"bootstrap.servers is missing: the {self.kind} needs at least one HOST:PORT")
        bootstrap = parse_bootstrap(config.bootstrap_servers)
        reactor = SocketReactor(f"the {self.kind} {config.client_id!r}", SystemClock())
        return SocketTransport(reactor, bootstrap, config.client_id)

    def close(self) -> None:
        """Release the connections. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
