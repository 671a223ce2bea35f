"""``OffsetKeeper``: a client outside the group's generations that commits offsets, as with ``assign`` and
``commitSync``, reads them, and deletes them and the group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.coordinator.group.group_requests import Identity
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.client import Client
from txnkafka.testing.simulation.history import Commit
from txnkafka.testing.simulation.membership import committing, fetched

if TYPE_CHECKING:
    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic

KEEPER: Final = "keeper"
"""The group of the offset keeper."""


class OffsetKeeper(Client):
    """Commits arbitrary offsets for partitions of ``topic``."""

    def __init__(self, world: World, name: str, random: Random, topic: Topic) -> None:
        super().__init__(world, name, random)
        self._partitions = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        self._offset = 0
        self._kept: set[TopicPartition] = set()  # committed without a later request to delete them

    def steps(self) -> Steps:
        """Run random actions."""
        kinds = (self._commit, self._commit, self._look, self._look, self._delete, self._delete_group)
        while not self.world.is_ending:
            yield self.think() * 4
            yield from self.random.choices(kinds, (6, 6, 6, 6, 1, 1))[0]()

    def _new_commit(self, offsets: dict[TopicPartition, int]) -> Commit:
        places: dict[tuple[str, int], int] = {(*each,): offset for each, offset in offsets.items()}
        commit = Commit(self.name, KEEPER, -1, "", None, places, -1, self.world.scheduler.now_us)
        self.world.history.commits.append(commit)
        return commit

    def _commit(self) -> Steps:
        offsets = {}
        for partition in self._partitions:
            self._offset += 1  # unique, so that an offset identifies its commit
            offsets[partition] = self._offset
        error = yield from committing(self, Identity(KEEPER), self._new_commit(offsets))
        if error == ErrorCode.NONE:
            self._kept.update(offsets)

    def _look(self) -> Steps:
        answer = yield from fetched(self, KEEPER, self._partitions)
        gone = {each for each, offset in answer.offsets.items() if offset < 0 and each in self._kept}
        self.world.counts["offset expired"] += len(gone)
        self._kept -= gone

    def _delete(self) -> Steps:
        """Send OffsetDelete, without late copies: they would delete the next commit."""
        partition = self.random.choice(self._partitions)

        def perform(broker: Any, reply: Any) -> None:
            broker.groups.delete_offsets(
                KEEPER, [partition], lambda error, errors: reply(error or errors[partition])
            )

        yield from self._deleting("OffsetDelete", perform, [partition])

    def _delete_group(self) -> Steps:
        def perform(broker: Any, reply: Any) -> None:
            broker.groups.delete(KEEPER, reply)

        yield from self._deleting("DeleteGroups", perform, self._partitions)

    def _deleting(self, api: str, perform: Any, partitions: list[TopicPartition]) -> Steps:
        commit = self._new_commit(dict.fromkeys(partitions, -1))
        self._kept.difference_update(partitions)
        answer, is_uncertain = yield from self.ask(api, perform, can_be_late=False)
        if answer == ErrorCode.NONE:
            commit.acked_us = self.world.scheduler.now_us
            self.world.counts["offsets deleted"] += 1
        elif answer is not None:
            commit.is_refused = not is_uncertain
            self.world.counts[f"{api}: {answer.name}"] += 1
