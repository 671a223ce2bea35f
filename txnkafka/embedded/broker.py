"""``Broker``: a Kafka broker of one node inside of this process.

    from txnkafka import Broker

    with Broker.open("data") as broker:                      # or Broker.in_memory()
        broker.admin().create_topic("orders", partitions=3)
        producer = broker.producer(transactional_id="shop")
        with producer.transaction():
            producer.send("orders", b"a book", key=b"anna")
        for record in broker.consumer("orders", group_id="readers"):
            print(record.key, record.value)

Everything is as with ``txnkafka serve``, which runs the same server: settings, defaults, durability, and the
data directory, which is Apache Kafka's. ``broker.serve()`` opens a socket for other programs.

One lock guards the engine (``broker.Broker``). The threads of callers take it, the keeper of the
``EngineReactor``, and after ``serve`` the event loop of the ``ServerThread``.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Self

from txnkafka.broker.broker import open_broker
from txnkafka.embedded.engine_reactor import EngineReactor
from txnkafka.embedded.in_process import InProcessTransport
from txnkafka.env import AnyPath, LocalDataFiles, SystemClock, list_of_paths, remove_tree, this_process
from txnkafka.env.memory_directory import memory_directory
from txnkafka.errors import KafkaStorageError
from txnkafka.server.listeners import address_text, parse_address
from txnkafka.server.server_settings import server_settings

if TYPE_CHECKING:
    from types import TracebackType

    from txnkafka.broker import broker as engine
    from txnkafka.broker.durability import Mode
    from txnkafka.client.admin import Admin
    from txnkafka.client.consumer import Consumer
    from txnkafka.client.producer import Producer
    from txnkafka.env import Clock, DataFiles
    from txnkafka.server.server_thread import ServerThread


class Broker:
    """A broker on an open data directory; ``Broker.open`` makes one. Any thread may call it.

    The directory stays locked until ``close``, which the end of a ``with`` block and the exit of the
    interpreter call. A broker that is not closed, because its process was killed, has lost no acknowledged
    record: the next ``open`` recovers the directory. A forked child cannot use it."""

    def __init__(self, path: str, opened: engine.Broker, given: Mapping[str, str], clock: Clock) -> None:
        self.path = path
        self.cluster_id = opened.cluster_id
        self._given = given
        self._is_in_memory = False
        self._process = this_process()
        self._lock = RLock()  # guards the fields below, but not the engine
        self._engine: engine.Broker | None = opened
        self._reactor = EngineReactor(f"the broker of {path}", opened, clock)
        self._server: ServerThread | None = None
        self._address: str | None = None
        atexit.register(self.close)

    @classmethod
    def open(cls, path: AnyPath, *, durability: Mode = "fsync", **settings: object) -> Self:
        """Open the data directory at ``path``, or create it; recover its logs if it was not closed cleanly.

        ``settings`` are Kafka's settings of a broker, with dots or underscores: ``num_partitions=3``, or
        ``**{"num.partitions": 3}``; ``group.initial.rebalance.delay.ms`` is 0 by default, so that the first
        member of a group gets its partitions at once. ``durability`` is ``fsync`` (appends are acknowledged
        after they are synced to the disk) or ``page_cache`` (before, like Apache Kafka).

        Raises ValueError for settings that ``txnkafka serve`` refuses; LogDirError for a directory that
        another process has locked (with its process id), that contains other files, or that belongs to
        another node than ``node_id``; KafkaError and OSError when it cannot be recovered."""
        return cls._open(path, LocalDataFiles(), SystemClock(), durability, settings)

    @classmethod
    def in_memory(cls, **settings: object) -> Self:
        """Open a broker whose files are in memory (in ``/dev/shm``; without it, as on macOS, in a temporary
        directory). ``close`` deletes them. ``settings`` and errors are as in ``open``."""
        return cls._in_memory(LocalDataFiles(), SystemClock(), "page_cache", settings)

    @classmethod
    def _in_memory(
        cls, files: DataFiles, clock: Clock, durability: Mode, settings: Mapping[str, object]
    ) -> Self:
        path = memory_directory()
        try:
            broker = cls._open(path, files, clock, durability, settings)
        except BaseException:
            remove_tree(LocalDataFiles(), path)
            raise
        broker._is_in_memory = True
        return broker

    @classmethod
    def _open(
        cls, path: AnyPath, files: DataFiles, clock: Clock, durability: Mode, settings: Mapping[str, object]
    ) -> Self:
        """Open a directory with the clock and files of a test."""
        (text,) = list_of_paths(path)
        if durability not in ("fsync", "page_cache"):
            raise ValueError(f"durability must be fsync or page_cache, not {durability!r}")
        given = {**_DEFAULTS, **_by_kafkas_names(settings)}
        node_id, _, config = server_settings(given, text)
        opened = open_broker(
            files, text, config, now_ms=clock.now_ms(), durability=durability, node_id=node_id
        )
        return cls(text, opened, given, clock)

    # Clients

    def producer(self, **settings: Any) -> Producer:
        """Return a producer of this broker. ``settings`` are Kafka's, such as ``transactional_id="shop"``;
        ``bootstrap.servers`` is not needed. Raises ValueError and TypeError for wrong settings, ClosedError
        after ``close``."""
        from txnkafka.client.producer import Producer

        return Producer(settings, transport=self._transport)

    def consumer(self, *topics: str, **settings: Any) -> Consumer:
        """Return a consumer of this broker. With ``group_id`` it is subscribed to ``topics``, without it has
        all their partitions. It reads committed records, from the earliest one of each partition unless its
        group has committed offsets: ``auto_offset_reset`` is ``earliest``. Other settings and errors are as
        in ``producer``."""
        from txnkafka.client.consumer import Consumer

        given = {"auto_offset_reset": "earliest", **settings}
        return Consumer(given, topics=topics, transport=self._transport)

    def admin(self, **settings: Any) -> Admin:
        """Return an administrator of this broker; settings and errors are as in ``producer``."""
        from txnkafka.client.admin import Admin

        return Admin(settings, transport=self._transport)

    def _transport(self, client_id: str) -> InProcessTransport:
        """Return a new transport for one client."""
        self._process.check(self.path)
        with self._lock:
            self._opened()
            return InProcessTransport(self._reactor, client_id)

    def __repr__(self) -> str:
        if self._engine is None:
            state = "closed"
        elif self._server is not None and self._server.failure is not None:
            state = "failed"
        else:
            state = "open" if self._address is None else f"serving {self._address}"
        return f"<Broker {self.path!r} cluster_id={self.cluster_id!r} {state}>"

    @property
    def address(self) -> str | None:
        """The result of ``serve``; None before, and after ``close``."""
        return self._address

    def serve(self, address: str | None = None) -> str:
        """Serve Kafka clients in a thread until ``close``; returns the listening address, for
        ``bootstrap.servers``, once clients can connect.

        ``address`` is HOST:PORT, with brackets around an IPv6 address; port 0 picks a free port. Without it
        the setting ``listeners`` counts, by default 127.0.0.1:9092; several addresses are separated by
        commas. Nothing is encrypted and no client is authenticated: a listener that other machines can reach
        is logged as a warning.

        Raises OSError if the address is in use or not of this machine, and the broker can serve another one
        then; ValueError for a wrong address and for listeners that are not served; KafkaError if it serves
        already; KafkaStorageError after ``close``; LogDirError in a forked child."""
        from txnkafka.server.server_thread import ServerThread  # loads asyncio

        self._process.check(self.path)
        with self._lock:
            opened = self._opened()
            if self._server is not None:
                raise KafkaStorageError(f"{self.path} is served already, at {self._address}")
            addresses = () if address is None else (parse_address(address),)
            listeners = server_settings(self._given, self.path, addresses).listeners
            server = ServerThread(opened, self._reactor.clock, listeners, self._reactor.lock)
            try:
                bound = server.addresses()
            except BaseException as error:
                server.stop()
                if not isinstance(error, OSError):
                    raise
                wanted = ", ".join(address_text(*each.listen[1:]) for each in listeners)
                reason = f"cannot listen on {wanted}: {error.strerror or error}; port 0 picks a free port"
                raise OSError(error.errno, reason) from None
            self._server, self._reactor.on_leave = server, server.wake
            self._address = ",".join(address_text(*each) for each in bound)
            return self._address

    def close(self) -> None:
        """Stop serving, finish acknowledged requests, and close the directory cleanly. A second call does
        nothing, and so does a call in a forked child.

        Raises what closing a log raises, and the exception of a broker that failed while it served: its
        directory is then released without the marker of a clean stop, and the next ``open`` recovers it."""
        if not self._process.is_here:
            return
        with self._lock:
            opened, self._engine = self._engine, None
            if opened is None:
                return
            atexit.unregister(self.close)
            try:
                self._finish(opened)
            except BaseException:
                opened.abandon()
                raise
            finally:
                self._address = None
                if self._is_in_memory:
                    remove_tree(LocalDataFiles(), self.path)

    def _finish(self, opened: engine.Broker) -> None:
        self._reactor.close()
        if self._server is not None:
            self._reactor.on_leave = None
            self._server.stop()
            if self._server.failure is not None:
                raise self._server.failure
        self._reactor.host.idle()
        opened.close()

    def _opened(self) -> engine.Broker:
        """Return the engine. Raises KafkaStorageError after ``close``, and after a failure."""
        if self._engine is None:
            raise KafkaStorageError(f"{self.path} is closed; reopen it with Broker.open")
        failure = None if self._server is None else self._server.failure
        if failure is not None:
            raise KafkaStorageError(
                f"the broker of {self.path} failed ({failure}); close it, and reopen it with Broker.open"
            ) from failure
        return self._engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_DEFAULTS: Final = {"group.initial.rebalance.delay.ms": "0"}
"""Defaults other than Kafka's: a first member of a group does not wait three seconds for others."""


def _by_kafkas_names(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings by Kafka's names, as text. Raises ValueError for a name given twice, TypeError for a
    value that is no text, number, truth value or list."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        kafkas = name.replace("_", ".")
        if kafkas in found:
            raise ValueError(f"the setting {kafkas} is given twice")
        found[kafkas] = _text(name, value)
    return found


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value).strip()
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return ",".join(_text(name, each) for each in value)
    raise TypeError(f"the setting {name} cannot be {value!r}: give a str, a number, a bool or a list")
