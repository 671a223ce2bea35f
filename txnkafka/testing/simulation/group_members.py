"""``GroupMembers``: the processes of a simulation that are group members, and the groups' progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.copier_program import CopierProgram
from txnkafka.testing.simulation.group_program import GroupProgram
from txnkafka.testing.simulation.history import Group
from txnkafka.testing.simulation.hostile_member import READERS, HostileMember
from txnkafka.testing.simulation.keeper_program import KEEPER, KeeperProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic

COPIERS: Final = "copiers"
"""The group of the copiers."""
_HOSTILE: Final = 0.5  # fraction of the seeds with a hostile reader
_STABLE_US = 300_000  # without changes at the end of a calm window
_LEAST_REBALANCE_MS = 600
_READ = ("a", "c", "o")  # topics whose records stay, except older ones of a key


class GroupMembers:
    """The group members; ``derived`` returns separate random numbers for each process."""

    def __init__(
        self, world: World, random: Random, derived: Callable[[], Random], topics: Sequence[Topic]
    ) -> None:
        self.members: list[CopierProgram | GroupProgram | HostileMember] = []
        self._world = world
        self._random = random
        self._derived = derived
        self._topics = {topic.name: topic for topic in topics}
        self._read = [topic for topic in topics if topic.name in _READ]
        self._is_version_1: dict[str, bool] = {}  # by transactional id

    def begin(self) -> None:
        """Start all members."""
        swarm, groups = self._world.swarm, self._world.history.groups
        if swarm.copiers:
            groups[COPIERS] = self._group(COPIERS, swarm.copier_protocols, copies_to="o")
        if swarm.group_consumers:
            groups[READERS] = self._group(READERS, swarm.reader_protocols)
        if swarm.offset_keepers:
            groups[KEEPER] = Group(KEEPER, swarm.forgets_offsets)
        for number in range(swarm.copiers):
            transactional_id = f"copier-{number}"
            # a late batch of a version 1 client with an expired producer may be repeated
            is_version_1 = self._random.random() < 0.3 and not swarm.forgets_producers
            self._is_version_1[transactional_id] = is_version_1
            self._add(self._copier(transactional_id, self._instance(transactional_id)))
        for number in range(swarm.group_consumers):
            # a leader that assigns round robin would break the promise of the cooperative protocol
            is_hostile = (
                number == 0 and self._random.random() < _HOSTILE and swarm.assignor != "cooperative-sticky"
            )
            self._add(self._consumer(self._instance(f"reader-{number}"), is_hostile=is_hostile))
        for number in range(swarm.offset_keepers):
            name = f"{KEEPER}-{number}"
            KeeperProgram(self._world, name, self._derived(), self._topics["a"]).begin()

    def _group(self, group_id: str, protocols: tuple[str, ...], copies_to: str | None = None) -> Group:
        swarm = self._world.swarm
        return Group(group_id, swarm.forgets_offsets, copies_to, protocols, swarm.session_timeout_ms)

    def _instance(self, name: str) -> str | None:
        """Return the instance id of some processes, which are static members."""
        return name if self._random.random() < 0.4 else None

    def _copier(self, transactional_id: str, instance_id: str | None) -> CopierProgram:
        return CopierProgram(
            self._world, f"{transactional_id}/{len(self.members)}", self._derived(),
            (self._topics["a"], self._topics["o"]), transactional_id, group_id=COPIERS,
            instance_id=instance_id, is_version_1=self._is_version_1[transactional_id],
        )  # fmt: skip

    def _consumer(self, instance_id: str | None, *, is_hostile: bool) -> GroupProgram | HostileMember:
        name = f"{READERS}/{len(self.members)}"
        if is_hostile:
            return HostileMember(self._world, name, self._derived(), self._read, instance_id)
        return GroupProgram(self._world, name, self._derived(), self._read, READERS, instance_id=instance_id)

    def _add(self, member: CopierProgram | GroupProgram | HostileMember) -> None:
        self.members.append(member)
        member.begin()

    def replace_one(self) -> None:
        """Start another process with the transactional id and instance id of a running one."""
        alive = [each for each in self.members if not each.is_over and not each.is_replaced]
        if not alive:
            return
        old = self._random.choice(alive)
        instance_id = old.member.instance_id
        if isinstance(old, CopierProgram):
            old.is_replaced = True
            self._add(self._copier(old.transactional_id, instance_id))
        elif instance_id is not None:
            old.is_replaced = True
            self._add(self._consumer(instance_id, is_hostile=isinstance(old, HostileMember)))

    def unassigned(self) -> Iterator[str]:
        """Yield each group's partitions without exactly one owner, and the members with assignment changes
        within ``_STABLE_US``."""
        resting = {group_id: topics for group_id, topics in self._reads() if self._comes_to_rest(group_id)}
        for group_id, topics in resting.items():
            members = [
                each for each in self.members
                if each.member.group_id == group_id and not each.is_over
            ]  # fmt: skip
            for topic in topics if members else ():
                for number in range(topic.partitions):
                    partition = TopicPartition(topic.name, number)
                    owners = [each.name for each in members if partition in each.member.assigned]
                    if len(owners) != 1:
                        yield f"{partition} of group {group_id} is owned by {owners or 'nobody'}"
        since_us = self._world.scheduler.now_us - _STABLE_US
        for each in reversed(self._world.history.ownerships):
            if each.at_us < since_us:
                break
            if each.assigned != each.owned and each.group_id in resting:
                yield f"{each.process} of group {each.group_id} has got other partitions at {each.at_us}"

    def _comes_to_rest(self, group_id: str) -> bool:
        """Return False for classic members that poll less often than their rebalance timeout: they evict each
        other for ever."""
        group = self._world.history.groups.get(group_id)
        is_quick = self._world.swarm.rebalance_timeout_ms >= _LEAST_REBALANCE_MS
        return group is not None and (is_quick or "classic" not in group.protocols)

    def _reads(self) -> Iterator[tuple[str, list[Topic]]]:
        """Yield the groups with their topics."""
        yield READERS, self._read
        yield COPIERS, [self._topics["a"]]

    def positions(self) -> Iterator[tuple[str, TopicPartition, int]]:
        """Yield each group's largest read position per partition."""
        for group_id, topics in self._reads():
            members = [each for each in self.members if each.member.group_id == group_id]
            if members:
                for topic in topics:
                    for number in range(topic.partitions):
                        partition = TopicPartition(topic.name, number)
                        at = max(each.member.read.get(partition, 0) for each in members)  # 0: unread
                        yield group_id, partition, at
