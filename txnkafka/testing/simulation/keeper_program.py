"""``KeeperProgram``: an application that commits, reads and deletes the offsets of a group without members,
and deletes the group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.administrator_program import Administering
from txnkafka.testing.simulation.history import Commit, FetchedOffset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic

KEEPER: Final = "keeper"
"""The group of the keeper."""
_CHANGES: Final = ("OffsetCommit", "OffsetDelete", "DeleteGroups")


class KeeperProgram(Administering):
    """Commits arbitrary offsets for partitions of ``topic``."""

    def __init__(self, world: World, name: str, random: Random, topic: Topic) -> None:
        super().__init__(world, name, random)
        self._partitions = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        self._offset = 0
        self._kept: set[TopicPartition] = set()  # committed without a later request to delete them
        self._attempts = 0  # requests of the present change

    def next_action(self) -> Callable[[], Awaitable[None]]:
        """Return a random action."""
        kinds: tuple[Callable[[], Awaitable[None]], ...]
        kinds = self._commit, self._look, self._delete, self._delete_group
        return self.random.choices(kinds, (12, 12, 1, 1))[0]

    async def _changed(
        self, offsets: dict[TopicPartition, int], change: Callable[[], Awaitable[None]]
    ) -> bool:
        """Make a change and record it: refused, if its only request was."""
        places: dict[tuple[str, int], int] = {(*each,): offset for each, offset in offsets.items()}
        commit = Commit(self.name, KEEPER, -1, "", None, places, -1, self.world.scheduler.now_us)
        self.world.history.commits.append(commit)
        self._attempts = 0
        try:
            await change()
        except KafkaError as error:
            commit.is_refused = self._attempts <= 1 and not error.retriable
            raise
        commit.acked_us = self.world.scheduler.now_us
        return True

    def sent(self, name: str, message: Any) -> None:
        """Count the requests of a change."""
        self._attempts += name in _CHANGES

    async def _commit(self) -> None:
        offsets = {}
        for partition in self._partitions:
            self._offset += 1  # unique, so that an offset identifies its commit
            offsets[partition] = self._offset
        await self._changed(offsets, lambda: self.core.alter_group_offsets(KEEPER, offsets))
        self._kept.update(offsets)

    async def _look(self) -> None:
        invoked_us = self.world.scheduler.now_us
        found = await self.core.list_group_offsets(KEEPER, self._partitions, require_stable=True)
        offsets = {each: found[each].offset if each in found else -1 for each in self._partitions}
        for partition, offset in offsets.items():
            self.world.history.fetched_offsets.append(
                FetchedOffset(
                    self.name, KEEPER, partition, offset, True, invoked_us, self.world.scheduler.now_us
                )
            )
        gone = {each for each, offset in offsets.items() if offset < 0 and each in self._kept}
        self.world.counts["offset expired"] += len(gone)
        self._kept -= gone

    async def _delete(self) -> None:
        partition = self.random.choice(self._partitions)
        self._kept.discard(partition)
        await self._changed({partition: -1}, lambda: self.core.delete_group_offsets(KEEPER, [partition]))
        self.world.counts["offsets deleted"] += 1

    async def _delete_group(self) -> None:
        self._kept.clear()
        gone = dict.fromkeys(self._partitions, -1)
        await self._changed(gone, lambda: self.core.delete_groups(KEEPER))
        self.world.counts["offsets deleted"] += 1
