"""``Call``: one API as ``Admin`` uses it, and ``Calls``, which makes calls until each key has an outcome.

Source of the retries: ``AdminApiDriver`` and the handlers of ``KafkaAdminClient``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from txnkafka.client.admin.refusals import checked
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, KafkaTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from txnkafka.client.admin.admin_config import AdminConfig
    from txnkafka.client.admin.route import Route
    from txnkafka.client.cluster import Cluster
    from txnkafka.client.transport import Connection

K = TypeVar("K")
R = TypeVar("R")
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_UNKNOWN_MS: Final = 1_000  # a broker may not know a topic yet that was created through another one


@dataclass(frozen=True)
class Call(Generic[K, R]):
    """``request`` builds the message of a version for keys; ``outcomes`` reads the response, and returns a
    result or an error for each key. ``noun`` names a key in errors. ``is_single``: a request has one key."""

    api: str
    route: Route
    noun: str
    request: Callable[[Sequence[K], int], Any]
    outcomes: Callable[[Any, Sequence[K]], Iterable[tuple[K, R | KafkaError]]]
    is_single: bool = False
    at_least: int = 0
    at_most: int = 1 << 15


class Calls:
    """Base class of the parts of ``AdminCore``."""

    def __init__(self, cluster: Cluster, config: AdminConfig) -> None:
        self.cluster = cluster
        self.config = config
        self.reactor = cluster.reactor

    async def results(self, call: Call[K, R], keys: Iterable[K]) -> dict[K, R]:
        """Return the result of each key. Raises the error of the first key that has one."""
        found = await self.outcomes(call, keys)
        return checked(found)

    async def result(self, call: Call[K, R], key: K) -> R:
        """Return the result of one key, or raise its error."""
        return (await self.results(call, [key]))[key]

    async def nodes(self) -> list[int]:
        """Return the ids of all brokers."""
        await self.cluster.retried(self.cluster.refresh, self.config.default_api_timeout_ms, "Metadata")
        return sorted(self.cluster.nodes)

    async def outcomes(self, call: Call[K, R], keys: Iterable[K]) -> dict[K, R | KafkaError]:
        """Return a result or an error for each key. Keys whose error may pass are asked for again, until
        ``default.api.timeout.ms``."""
        order = list(dict.fromkeys(keys))
        run = _Run(call, self.cluster, self.config, order)
        if order:
            try:
                await self.cluster.retried(run.attempt, self.config.default_api_timeout_ms, call.api)
            except KafkaTimeoutError:
                run.expire()
        return {key: run.found[key] for key in order}


class _Run(Generic[K, R]):
    """The progress of one call."""

    def __init__(self, call: Call[K, R], cluster: Cluster, config: AdminConfig, keys: Iterable[K]) -> None:
        self.call = call
        self.cluster = cluster
        self.config = config
        self.left: dict[K, KafkaError | None] = dict.fromkeys(keys)  # with the last error
        self.found: dict[K, R | KafkaError] = {}
        self.began_ms = cluster.reactor.now_ms()

    async def attempt(self) -> None:
        """Ask once for the keys that are left. Raises a retriable error if some stay without an outcome."""
        spawn = self.cluster.reactor.spawn
        try:
            placed = await self._placed()
        except KafkaError as error:
            placed = {}
            for key in list(self.left):
                self._settle(key, error)
        for task in [spawn(self._ask(connection, keys)) for connection, keys in placed.items()]:
            await task
        for last in self.left.values():
            if last is not None:
                raise last

    def expire(self) -> None:
        """Give the keys that are left a KafkaTimeoutError, with the last error as its cause."""
        for key, last in self.left.items():
            limit = self.config.default_api_timeout_ms
            place = f"{self.call.noun} {key}".rstrip()  # the cluster has no key
            error = KafkaTimeoutError(f"{self.call.api} of {place} failed for {limit} ms: {last}")
            error.__cause__ = last
            self.found[key] = error

    async def _placed(self) -> dict[Connection, list[K]]:
        """Return the keys by the broker to ask."""
        route, keys = self.call.route, list(self.left)
        if route.prepare is not None:
            await route.prepare(self.cluster, keys)
        if route.is_shared:
            return {await route.find(self.cluster, keys[0]): keys}
        placed: dict[Connection, list[K]] = {}
        tasks = [(key, self.cluster.reactor.spawn(self._place(key))) for key in keys]
        for key, task in tasks:
            connection = await task
            if connection is not None:
                placed.setdefault(connection, []).append(key)
        return placed

    async def _place(self, key: K) -> Connection | None:
        try:
            return await self.call.route.find(self.cluster, key)
        except KafkaError as error:
            self._settle(key, error)
            return None

    async def _ask(self, connection: Connection, keys: list[K]) -> None:
        for part in [[key] for key in keys] if self.call.is_single else [keys]:
            try:
                found = dict(await self._answer(connection, part))
            except KafkaError as error:
                found = dict.fromkeys(part, error)
            for key in part:
                missing = KafkaError(f"{connection.node} has not answered {self.call.api} of {key}")
                self._settle(key, found.get(key, missing))

    async def _answer(self, connection: Connection, keys: list[K]) -> Iterable[tuple[K, R | KafkaError]]:
        call = self.call
        version = connection.versions.pick(call.api, call.at_most, call.at_least)
        left_ms = self.began_ms + self.config.default_api_timeout_ms - self.cluster.reactor.now_ms()
        limit_ms = max(1, min(self.config.request_timeout_ms, left_ms))
        response = await self.cluster.request(
            connection, call.api, version, call.request(keys, version), limit_ms
        )
        return call.outcomes(response, keys)

    def _settle(self, key: K, outcome: R | KafkaError) -> None:
        if isinstance(outcome, KafkaError) and self._may_pass(outcome):
            self.left[key] = outcome
            self.call.route.forget(self.cluster, key)
        else:
            self.left.pop(key, None)
            self.found[key] = outcome

    def _may_pass(self, error: KafkaError) -> bool:
        if error.code in _UNKNOWN and self.cluster.reactor.now_ms() - self.began_ms >= _UNKNOWN_MS:
            return False
        return error.retriable and error.code not in self.call.route.final
