"""``HostileMember``: a scripted member of a group that sends what the package's consumer never sends.

It keeps partitions until it is expelled. Its process may stop silently, sleep until the group has a new
generation, or leave; then another process replaces it. Some requests must be refused: commits and heartbeats
of an older generation, and fetches beyond the end of a log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.broker.requests import FetchPartition, FetchRequest
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel
from txnkafka.testing.simulation.client import BACKOFF_US, Client
from txnkafka.testing.simulation.membership import LEFT_OUT, to_commit
from txnkafka.testing.simulation.memberships import new_membership
from txnkafka.testing.simulation.network import Request
from txnkafka.testing.simulation.reader import Reader, fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic
    from txnkafka.testing.simulation.membership import Membership

_ATTACKS: Final = 0.1  # per round
_BEYOND: Final = 1 << 40
READERS: Final = "readers"
"""The group of the consumers."""


class HostileMember(Client):
    """A group member that reads; ``is_replaced``: another process has its instance id."""

    def __init__(
        self, world: World, name: str, random: Random, topics: Sequence[Topic], instance_id: str | None
    ) -> None:
        super().__init__(world, name, random)
        self._topics, self._instance_id = topics, instance_id
        self.member = self._new_membership()
        self.reader = Reader(world, name, random, IsolationLevel.READ_COMMITTED)
        self.member.read = self.reader.read
        self.is_replaced = False
        self._committed: dict[TopicPartition, int] = {}
        self._process = name

    def _new_membership(self) -> Membership:
        protocols = self.world.swarm.reader_protocols
        return new_membership(self, protocols, READERS, self._topics, self._instance_id)

    def steps(self) -> Steps:
        """Run generations, in successive processes."""
        starts = 0
        while not self.is_replaced:
            self.name = self.reader.process = f"{self._process}.{starts}"
            starts += 1
            error = ErrorCode.NONE
            while error == ErrorCode.NONE:
                error = yield from self.member.join()
                if error == ErrorCode.NONE:
                    error = yield from self._generation()
            self.world.counts[f"member ended: {error.name}"] += 1
            self.world.counts["instance fenced"] += error == ErrorCode.FENCED_INSTANCE_ID
            self.member = self._new_membership()
            self.member.read = self.reader.read
            yield self.think()

    def _generation(self) -> Steps:
        """Read and commit until the next generation begins (NONE), or the process ends."""
        reader = self.reader
        reader.forget()
        error, positions = yield from self.member.committed()
        for partition, position in positions.items():
            reader.seek(partition, position)
        self._committed = positions
        while error == ErrorCode.NONE:
            yield from self._read()
            error = yield from self._incident()
            if error == ErrorCode.NONE:
                error = yield from self._commit()
            if error == ErrorCode.NONE and self.random.random() < _ATTACKS:
                yield from self._attack()
            if error == ErrorCode.NONE:
                error = yield from self.member.keep_alive()
        return ErrorCode.NONE if error in LEFT_OUT else error

    def _read(self) -> Steps:
        """Fetch once; rest without new records."""
        wanted = list(self.reader.positions)
        answer = None
        if wanted:
            (answer,) = yield [self.reader.request(wanted)]
        records = 0
        for each in answer or ():
            if each.error == ErrorCode.NONE:
                records += len(self.reader.take(each)[0])
            else:
                self.world.counts[f"Fetch: {each.error.name}"] += 1
        if not records:
            yield self.rest()

    def _commit(self) -> Steps:
        """Commit the positions from time to time."""
        positions = self.reader.positions
        new = {each: at for each, at in positions.items() if at != self._committed[each]}
        if not new or (self.random.random() < 0.5 and not self.world.is_calm):
            return ErrorCode.NONE
        error = yield from self.member.commit(new)
        if error == ErrorCode.NONE:
            self._committed |= new
        elif error in LEFT_OUT or error == ErrorCode.FENCED_INSTANCE_ID:
            self.world.counts[f"commit of a {self.member.kind} refused"] += 1
        return error

    def _attack(self) -> Steps:
        """Send a request that must be refused."""
        partition = next(iter(self.reader.positions), None)
        identity = self.member.identity
        old = identity._replace(generation=identity.generation - 1)
        kind = self.random.choice(("fetch beyond the end", "old heartbeat", "old commit"))

        def fetches(broker: Any, reply: Any) -> Any:
            assert partition is not None
            beyond = FetchRequest([FetchPartition(partition, _BEYOND, 4_096)], self.reader.isolation_level)
            return fetch(broker, beyond, lambda found: reply(found and found[0].error))

        def beats(broker: Any, reply: Any) -> None:
            reply(broker.groups.heartbeat(old))

        def commits(broker: Any, reply: Any) -> None:
            offsets = to_commit({(*partition,): 0}, broker)  # type: ignore[misc]
            broker.groups.commit(old, offsets, lambda errors: reply(next(iter(errors.values()))), version=9)

        if partition is None or (kind != "fetch beyond the end" and not self.member.is_classic):
            return
        if kind == "old commit" and not self.world.history.groups[READERS].is_classic:
            return  # after an upgrade, partitions owned since then may be committed (KIP-1251)
        if kind == "old commit":
            self.member.new_commit({partition: 0})
            self.world.history.commits[-1].is_refused = True
            self.world.history.commits[-1].generation = old.generation
        perform = {"fetch beyond the end": fetches, "old heartbeat": beats, "old commit": commits}[kind]
        api = {"fetch beyond the end": "Fetch", "old heartbeat": "Heartbeat", "old commit": "OffsetCommit"}
        (answer,) = yield [Request(api[kind], perform, can_be_late=False)]
        self.world.counts[f"hostile: {kind}"] += 1
        if answer == ErrorCode.NONE and answer is not None:
            self.world.complaints.append(f"hostile: the broker takes the {kind} of {self.name}: {old}")

    def _incident(self) -> Steps:
        """Draw an incident of the process. Returns an error if it ends the process."""
        world = self.world
        chance = 1.0 if world.is_calm else self.random.random()
        if chance < 0.04:
            world.counts["member stopped"] += 1
            yield self.rest()
            return ErrorCode.REQUEST_TIMED_OUT
        if chance < 0.14:
            yield from self.member.leave()
            return ErrorCode.REQUEST_TIMED_OUT
        if chance < 0.19:
            world.counts["member overslept"] += 1
            yield self.random.randrange(500, 3_000) * world.swarm.session_timeout_ms
        return ErrorCode.NONE

    def rest(self) -> int:
        """Return the time to wait for new records, in microseconds."""
        return self.random.randrange(BACKOFF_US, 4 * BACKOFF_US)
