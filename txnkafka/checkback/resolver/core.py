"""``ResolverCore``: a member of the group of resolvers, which owns partitions of ``__txn_half``.

All coroutines run in one reactor: beside a broker in this process without a thread of their own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from txnkafka.checkback.half_topics import HALF_TOPIC, RESOLVER_GROUP
from txnkafka.checkback.internal_topics import create_internal_topics
from txnkafka.checkback.payloads import Payloads
from txnkafka.checkback.resolver.asker import Asker
from txnkafka.checkback.resolver.half_owner import HalfOwner
from txnkafka.checkback.resolver.pace import Pace
from txnkafka.checkback.resolver.parts import Parts
from txnkafka.checkback.shared_config import derived
from txnkafka.client.admin.admin_config import AdminConfig
from txnkafka.client.admin.core import AdminCore
from txnkafka.client.cluster import Cluster
from txnkafka.client.consumer.consumer_config import ConsumerConfig
from txnkafka.client.consumer.consumer_errors import WakeupError
from txnkafka.client.consumer.core import ConsumerCore
from txnkafka.client.consumer.membership import ListenerCall
from txnkafka.coordinator.half.check_schedule import CheckRules
from txnkafka.errors import ClosedError, KafkaError
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from txnkafka.checkback.checkback_config import CheckBackConfig
    from txnkafka.checkback.resolver.half_owner import OwnerStatus
    from txnkafka.client.transport import Transport

LOG = logging.getLogger("txnkafka.checkback")
_MOST_RECORDS: Final = 200  # replayed at a time, while other tasks wait
_POLL_MS: Final = 500  # a change of the assignment waits for the next poll, records do not
_SESSION_MS: Final = 6_000  # the least that brokers allow by default
_HEARTBEAT_MS: Final = 1_000
_MAX_POLL_MS: Final = 10_000  # the others wait so long for a member that hangs in a rebalance
_LOADING_MS: Final = 50
_PAUSE_MS: Final = 1_000  # after an error, and before a lost partition is taken again


class ResolverCore:
    """``run`` resolves until it is cancelled; ``close`` ends it."""

    def __init__(self, transport: Transport, config: CheckBackConfig) -> None:
        self.config = config
        self.owners: dict[int, HalfOwner] = {}
        self._transport = transport
        self._reactor = transport.reactor
        rules = CheckRules(
            config.transaction_timeout, config.transaction_check_interval, config.transaction_check_max,
            config.transaction_check_policy, config.transaction_max_age,
        )  # fmt: skip
        cluster = Cluster(transport, config, allow_auto_creation=False)
        self._asker = Asker(transport, config)
        self._parts = Parts(transport, config, rules, self._asker, Payloads(cluster))
        self._consumer: ConsumerCore | None = None
        self._pace = Pace(transport.reactor)
        self._is_closed = False

    def status(self) -> list[OwnerStatus]:
        """Return the numbers of halves of each owned partition."""
        return [self.owners[number].status() for number in sorted(self.owners)]

    async def run(self) -> None:
        """Create the topics if they are missing, join the group, and resolve."""
        admin = AdminCore(self._transport, derived(AdminConfig, self.config))
        while not self._is_closed:
            try:
                await create_internal_topics(admin, self.config)
                consumer = self._consumer = self._joined()
                break
            except ClosedError:
                return
            except KafkaError as error:
                LOG.warning("the resolver cannot start yet: %s", error)
                await self._reactor.sleep(_PAUSE_MS)
        while not self._is_closed:
            try:
                await self._turn(consumer)
            except (ClosedError, WakeupError):
                continue
            except Exception as error:
                LOG.warning("the resolver continues after an error: %s", error, exc_info=True)
                for state in consumer.subscription.some(lambda each: each.failure is not None):
                    LOG.error("%s is not resolved until the resolver starts again", state.partition)
                    state.is_paused = True
                await self._reactor.sleep(_PAUSE_MS)

    async def close(self) -> None:
        """Leave the group, and stop."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._give_up(list(self.owners))
        consumer = self._consumer
        if consumer is not None:
            consumer.wakeup()
            call = await consumer.leaving()
            if call is not None:
                consumer.called(call)
            await consumer.leave()
        await self._asker.close()

    def _joined(self) -> ConsumerCore:
        """Return a consumer of the group. With the classic protocol another resolver takes over after six
        seconds; a member of a KIP-848 group is missed after the broker's 45 seconds only."""
        settings = derived(
            ConsumerConfig, self.config, group_id=RESOLVER_GROUP, enable_auto_commit=False,
            group_instance_id=self.config.group_instance_id, session_timeout_ms=_SESSION_MS,
            heartbeat_interval_ms=_HEARTBEAT_MS, max_poll_interval_ms=_MAX_POLL_MS,
            partition_assignment_strategy="cooperative-sticky", auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        )  # fmt: skip
        consumer = ConsumerCore(self._transport, settings, None, None)
        consumer.subscribe([HALF_TOPIC], None)
        return consumer

    async def _turn(self, consumer: ConsumerCore) -> None:
        """Replay the next records, or change the assignment."""
        is_loading = any(not owner.is_live for owner in self.owners.values())
        found = await consumer.poll(
            lambda reader: reader.records(_MOST_RECORDS), _LOADING_MS if is_loading else _POLL_MS
        )
        if isinstance(found, ListenerCall):
            numbers = [each.partition for each in found.partitions]
            if found.kind == "assigned":
                self._take(consumer, numbers)
            else:
                await self._give_up(numbers)
            consumer.called(found)
            return
        for record in found:
            owner = self.owners.get(record.partition)
            if owner is not None:
                owner.replay(record.offset, record.key, record.value)
        changed = {record.partition for record in found}
        for owner in list(self.owners.values()):
            state = consumer.subscription.assigned.get(TopicPartition(HALF_TOPIC, owner.number))
            if state is not None and (owner.number in changed or not owner.is_live):
                owner.advance(state.position)
        if is_loading:
            self._report()
        pause_ms = 1 if is_loading else self._pace.pause_ms()
        if found and pause_ms:
            await self._reactor.sleep(pause_ms)  # other tasks have their turn

    def _report(self) -> None:
        owners = self.owners.values()
        if all(owner.is_live for owner in owners):
            LOG.info(
                "the resolver owns partitions %s of __txn_half, with %d halves, %d decided",
                ", ".join(map(str, sorted(self.owners))), sum(len(owner.image) for owner in owners),
                sum(len(owner.image.decided) for owner in owners),
            )  # fmt: skip

    # Partitions

    def _take(self, consumer: ConsumerCore, numbers: Iterable[int]) -> None:
        """Begin to own partitions, whose records are not read before their owner is ready."""
        for number in numbers:
            place = TopicPartition(HALF_TOPIC, number)
            consumer.set_paused([place], is_paused=True)
            consumer.seek(place, 0)
            owner = self.owners[number] = HalfOwner(self._parts, number, self._lost)
            self._spawn(self._begin(consumer, owner, place))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background, and log its failure."""
        task = self._reactor.spawn(work)

        def report() -> None:
            if task.error is not None and not isinstance(task.error, ClosedError):
                LOG.error("the resolver failed", exc_info=task.error)

        task.on_done(report)

    async def _begin(self, consumer: ConsumerCore, owner: HalfOwner, place: TopicPartition) -> None:
        """Fence the owner before, then replay the log from its beginning."""
        limit_ms = self.config.request_timeout_ms
        try:
            await owner.begin()
            start = (await consumer.limits([place], limit_ms, is_end=False))[place]
            owner.end = (await consumer.limits([place], limit_ms, is_end=True))[place]
        except ClosedError:
            return
        except KafkaError as error:
            LOG.warning("partition %d of __txn_half cannot be taken: %s", owner.number, error)
            self._lost(owner)
            return
        if self._is_own(owner):
            consumer.seek(place, start)
            consumer.set_paused([place], is_paused=False)
            consumer.wakeup()

    def _is_own(self, owner: HalfOwner) -> bool:
        return self.owners.get(owner.number) is owner

    def _lost(self, owner: HalfOwner) -> None:
        """Take a partition again, after a pause, if it is still assigned to this member."""
        if self._is_own(owner):
            self._reactor.soon(lambda: self._spawn(self._take_again(owner)))  # not within the owner's task

    async def _take_again(self, owner: HalfOwner) -> None:
        consumer, place = self._consumer, TopicPartition(HALF_TOPIC, owner.number)
        if consumer is None:
            return
        if place in consumer.subscription.assigned:
            consumer.set_paused([place], is_paused=True)
        await owner.close()
        await self._reactor.sleep(_PAUSE_MS)
        if not self._is_closed and self._is_own(owner):
            if place in consumer.subscription.assigned:
                self._take(consumer, [owner.number])
            else:
                del self.owners[owner.number]

    async def _give_up(self, numbers: Iterable[int]) -> None:
        gone = [self.owners.pop(number) for number in numbers if number in self.owners]
        for closing in [self._reactor.spawn(owner.close()) for owner in gone]:
            await closing
