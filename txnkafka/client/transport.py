"""``Transport``: the way of requests to brokers, over sockets, in process, or in a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from txnkafka.errors import UnsupportedVersionError
from txnkafka.wire.messages.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.client.promise import Promise
    from txnkafka.client.reactor import Reactor
    from txnkafka.model import TopicPartition

API_OF = {api.name: api for api in APIS.values()}
"""The APIs by name."""


class Node(NamedTuple):
    """A broker. Bootstrap servers have negative ids until their broker is known."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" + (f" (node {self.node_id})" if self.node_id >= 0 else "")


class Versions(NamedTuple):
    """The versions that a broker accepts, by the API's name, and its finalized features."""

    ranges: Mapping[str, tuple[int, int]]
    features: Mapping[str, int]
    features_epoch: int = -1

    def pick(self, name: str, at_most: int = 1 << 15, at_least: int = 0) -> int:
        """Return the highest version of an API that both sides know; an unstable one only if ``at_least``
        demands it. Raises UnsupportedVersionError."""
        api = API_OF[name]
        low, high = api.announced
        is_unstable = at_least > high
        if is_unstable:
            high = api.max_version
        theirs = self.ranges.get(name)
        if theirs is None:
            raise UnsupportedVersionError(f"the broker does not support {name}")
        version = min(high, theirs[1], at_most)
        if version < max(low, api.min_version, theirs[0], at_least):
            raise UnsupportedVersionError(
                f"the broker supports {name} in versions {theirs[0]} to {theirs[1]}; "
                f"{max(at_least, api.min_version)} to {min(high, at_most)} are needed"
                + (", which needs unstable.api.versions.enable=true on the broker" if is_unstable else "")
            )
        return version

    def has(self, name: str, version: int = 0) -> bool:
        """Return whether both sides know an API in this version or a later one."""
        theirs = self.ranges.get(name)
        return theirs is not None and min(theirs[1], API_OF[name].announced[1]) >= version


class Connection(Protocol):
    """A connection to one broker. Responses come in any order."""

    node: Node
    versions: Versions

    @property
    def is_closed(self) -> bool:
        """Return whether it is useless: a new request fails."""

    def request(self, name: str, version: int, message: Any, timeout_ms: int) -> Promise[Any]:
        """Send a request. The promise fails with NetworkError when the connection ends first, or after the
        time, which also closes the connection. A request without a response gets None once it is sent."""


class Transport(Protocol):
    """Opens connections. ``bootstrap`` has the brokers to begin with."""

    bootstrap: list[Node]

    @property
    def reactor(self) -> Reactor:
        """The reactor that runs the connections."""

    def connect(self, node: Node, timeout_ms: int) -> Promise[Connection]:
        """Connect to a broker, and ask for its versions. The promise fails with NetworkError."""

    async def visible(self, partitions: Iterable[TopicPartition] | None) -> None:
        """Wait, after a commit, until consumers get the records in these partitions; None for all partitions.
        A client over a socket cannot know this, and returns at once."""

    def close(self) -> None:
        """Close all connections, and a reactor that only this transport uses. The promises of requests fail.
        Called without the reactor's lock."""
