"""``CopierProgram``: an application that reads a topic as a member of a group, and copies each record in a
transaction that also commits the offsets: each record is copied exactly once, despite failures.

Every third transaction is aborted on purpose. After an abort the positions go back to its beginning.

Source: KIP-98, KIP-447.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.errors import CommitFailedError, KafkaError
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.history import Outcome
from txnkafka.testing.simulation.member import Member
from txnkafka.testing.simulation.sending import KEYS
from txnkafka.testing.simulation.simulated_reactor import StoppedError
from txnkafka.testing.simulation.transactional_program import TransactionalProgram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic
    from txnkafka.testing.simulation.reading import Found, Reading

_ABORTED_OF: Final = 3  # transactions


class CopierProgram(TransactionalProgram):
    """Copies the first of ``topics`` to the second, which has the same number of partitions."""

    def __init__(
        self, world: World, name: str, random: Random, topics: tuple[Topic, Topic], transactional_id: str,
        *, group_id: str, instance_id: str | None, is_version_1: bool,
    ) -> None:  # fmt: skip
        source, target = topics
        super().__init__(world, name, random, [target], transactional_id, is_version_1=is_version_1)
        self.member = Member(self, [source], group_id, instance_id, world.swarm.copier_protocols)
        self._target = target.name
        self._attempts = 0
        self._used_us = 0  # last use of the transactional id

    @property
    def restarts(self) -> bool:
        """Return whether another process follows; copiers copy up to the very end."""
        return not self.is_replaced

    async def process(self) -> None:
        """Copy until another process takes the transactional id."""
        await self._new_producer()
        reading = self.member.join()
        while True:
            found = await reading.poll(self.random.choice((5, 60)), self.random.choice((5, 20)))
            if found:
                await self._copy(reading, found)
            elif self._is_idle():
                await self.core.close(0)
                await self._new_producer()
            else:
                await self.rest()
            if self.happens(0.02):
                await self.member.leave()
                raise StoppedError

    async def _new_producer(self) -> None:
        self.core = self.transactional_core()
        await self.finish(self.core.init)
        self._used_us = self.world.scheduler.now_us

    def _is_idle(self) -> bool:
        """Return True if the transactional id would expire soon, so that the next transaction failed."""
        idle_us = self.world.scheduler.now_us - self._used_us
        return idle_us > self.world.swarm.transactional_id_expiration_ms * 500

    async def _copy(self, reading: Reading, found: Found) -> None:
        """Run one transaction. Raises the error that ends the process."""
        self._attempts += 1
        self._used_us = self.world.scheduler.now_us
        starts = {partition: values[0][0] for partition, values in found.items()}
        ends = {partition: reading.positions[partition] for partition in found}
        begun = self.begin_transaction()
        self.member.messages.transaction = begun.number
        begun.polls += [number for values in found.values() for _, number in values]
        try:
            await self._write(begun.number, found)
            await self._stop_or_sleep()
            offsets = {partition: OffsetAndMetadata(offset) for partition, offset in ends.items()}
            await self.core.send_offsets(offsets, reading.core.group_metadata())
            await self._stop_or_sleep()
        except KafkaError as error:
            refused = isinstance(error, CommitFailedError)
            self.world.counts["offsets of a former member refused"] += refused
            self.world.counts[f"copies failed: {type(error).__name__}"] += 1
            await self.abort(begun)
        else:
            if self._attempts % _ABORTED_OF == 0:
                await self.abort(begun)
            else:
                await self.commit(begun)
        self.member.messages.transaction = -1
        is_copied = begun.outcome is Outcome.COMMITTED
        self.world.counts["copies committed" if is_copied else "copies aborted"] += 1
        if not is_copied:
            self._go_back(reading, starts)

    def _go_back(self, reading: Reading, starts: Mapping[TopicPartition, int]) -> None:
        """Read the records again. Raises StoppedError if the commit may have happened: the committed offsets
        decide then, which the next process asks for."""
        if self._undecided:
            raise StoppedError
        for partition, offset in starts.items():
            reading.seek(partition, offset)

    async def _write(self, transaction: int, found: Found) -> None:
        """Send the copies to the partitions with the same numbers."""
        history = self.world.history
        for partition, values in found.items():
            target = TopicPartition(self._target, partition.partition)
            for offset, number in values:
                key, now_us = KEYS[number % len(KEYS)], self.world.scheduler.now_us
                send = history.send(self.name, target, key, transaction, now_us)
                send.source = partition, offset
                await self.send(send)
            self.world.counts["records copied"] += len(values)

    async def _stop_or_sleep(self) -> None:
        world = self.world
        if self.happens(0.02):
            world.counts["copier stopped in a transaction"] += 1
            raise StoppedError
        if self.happens(0.03):
            world.counts["copier overslept in a transaction"] += 1
            sleep = self.random.choice((self.reactor.pause, self.reactor.freeze))
            await sleep(self.random.randrange(500, 3_000) * world.swarm.session_timeout_ms)

    # The messages

    def sent(self, name: str, message: Any) -> None:
        """A request leaves a client."""
        self.member.sent(name, message)
        super().sent(name, message)

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """The response to a request has arrived."""
        self.member.answered(name, version, message, response, sent_us)
        super().answered(name, version, message, response, sent_us)

    def can_be_late(self, name: str, message: Any) -> bool:
        """Return False for requests whose late copy would have an effect."""
        return self.member.can_be_late(name, message) and super().can_be_late(name, message)
