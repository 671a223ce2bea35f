"""``ShopProgram``: a service that stores an order in its database and sends a message about it, both or
neither: a half, the local transaction, the decision. It stops, sleeps and forgets at any step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.checkback.checkback_config import CheckBackConfig
from txnkafka.checkback.errors import TransactionDecidedError
from txnkafka.checkback.half_core import OUTCOMES, Decision, HalfCore, SentHalf
from txnkafka.checkback.half_topics import CHECK_TOPIC, check_group
from txnkafka.checkback.message import LocalTransactionState, Message
from txnkafka.checkback.resolver.core import ResolverCore
from txnkafka.client.client_config import read_config
from txnkafka.client.consumer.consumer_config import ConsumerConfig
from txnkafka.client.consumer.core import ConsumerCore
from txnkafka.client.consumer.membership import ListenerCall
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.errors import KafkaError
from txnkafka.testing.simulation.program import Program
from txnkafka.testing.simulation.simulated_reactor import StoppedError
from txnkafka.wire.records.check_records import ask_record_of, decode_ask_log
from txnkafka.wire.records.half_records import DecidedBy, Outcome

if TYPE_CHECKING:
    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.shop_database import ShopDatabase
    from txnkafka.wire.records.check_records import AskRecord

SHOP_GROUP: Final = "shop"
SHOP_TOPIC: Final = "s"
SHOP_PARTITIONS: Final = 2
CHECK_MS: Final = 200
"""The age of a half at its first check, and the time between two checks."""
_STEP_US: Final = 20_000  # of a resolver, which may stop after each
_TIMES: Final = {"request.timeout.ms": 2_000}  # a Fetch waits for half a second


class ShopProgram(Program):
    """A producer of the group; all shops share ``database``."""

    def __init__(self, world: World, name: str, random: Random, database: ShopDatabase) -> None:
        super().__init__(world, name, random)
        self._database = database

    async def process(self) -> None:
        """Handle orders until the end."""
        core = await half_core(self)
        while not self.world.is_ending:
            await self.rest()
            await self._order(core)
        await core.close(1_000)

    async def _order(self, core: HalfCore) -> None:
        database, order = self._database, core.new_id()
        value = database.number(order).to_bytes(8)
        message = Message(SHOP_TOPIC, value, keys=f"key-{self.random.randrange(4)}")
        is_new = self.random.random() < 0.5
        try:
            sent = await core.send([message], transaction_id=order, is_new=is_new)
        except KafkaError as error:  # the half may be in the log: a check rolls it back
            self.world.counts[f"half failed: {type(error).__name__}"] += 1
            return
        self._incident("shop stopped before its database")
        database.begin(order, self.reactor)
        if self.happens(0.1):
            self.world.counts["local transaction longer than a check"] += 1
            await self.reactor.pause(self.random.randrange(4 * CHECK_MS) * 1_000)
        choice = self.random.random()
        is_committed = choice < 0.7 and database.commit(order)
        database.roll_back(order)
        self._incident("shop stopped after its database")
        if choice < 0.85:
            await self._decide(core, sent, Outcome.COMMIT if is_committed else Outcome.ROLLBACK)
        else:
            self.world.counts["shop left a half undecided"] += 1

    def _incident(self, name: str) -> None:
        if self.happens(0.05):
            self.world.counts[name] += 1
            raise StoppedError

    async def _decide(self, core: HalfCore, sent: SentHalf, outcome: Outcome) -> None:
        decision = Decision(outcome)
        try:
            if self.random.random() < 0.5:
                await core.decide_soon(sent, decision)
            else:
                await core.decide(sent, decision)
                self.world.counts[f"half decided: {outcome.name}"] += 1
        except TransactionDecidedError as error:
            self.world.complaints.append(f"{self.name}: {sent.transaction_id}: {outcome.name}: {error}")
        except KafkaError as error:
            self.world.counts[f"decision failed: {type(error).__name__}"] += 1


async def half_core(program: Program) -> HalfCore:
    """Return the core of the group's clients in a process."""
    times = {**_TIMES, "delivery.timeout.ms": 3_000, "max.block.ms": 3_000}
    core = HalfCore(program.transport(), SHOP_GROUP, read_config(ProducerConfig, program.settings(**times)))
    await core.start(read_config(CheckBackConfig, program.settings()))
    return core


class CheckProgram(Program):
    """A process that answers the checks of the shops from their database. It does what ``CheckListener``
    does, without threads."""

    def __init__(self, world: World, name: str, random: Random, database: ShopDatabase) -> None:
        super().__init__(world, name, random)
        self._database = database

    @property
    def restarts(self) -> bool:
        """Return True: checks are answered up to the very end."""
        return True

    async def process(self) -> None:
        """Receive checks, and answer them."""
        core = await half_core(self)
        consumer = self._consumer()
        while True:
            found = await consumer.poll(lambda reader: reader.records(20), 50)
            if isinstance(found, ListenerCall):
                consumer.called(found)
                continue
            for record in found:
                ask = ask_record_of(decode_ask_log(record.key, record.value))
                if ask is not None and ask.producer_group == SHOP_GROUP:
                    await self._answer(core, ask)
            if found:
                await self._commit(consumer)

    def _consumer(self) -> ConsumerCore:
        world = self.world
        settings = self.settings(
            **{
                "group.id": check_group(SHOP_GROUP), "enable.auto.commit": False,
                "auto.offset.reset": "earliest", "fetch.max.wait.ms": 100,
                **_TIMES, "session.timeout.ms": world.swarm.session_timeout_ms,
                "heartbeat.interval.ms": world.swarm.session_timeout_ms // 4,
                "max.poll.interval.ms": 1_000,
            }
        )  # fmt: skip
        consumer = ConsumerCore(self.transport(), read_config(ConsumerConfig, settings), None, None)
        consumer.subscribe([CHECK_TOPIC], None)
        return consumer

    async def _answer(self, core: HalfCore, ask: AskRecord) -> None:
        counts = self.world.counts
        try:
            await core.asked(ask, self.name)
            if self.happens(0.05):
                counts["listener stopped in a check"] += 1
                raise StoppedError
            state = self._database.check(ask.transaction_id)
            if self.happens(0.1):
                state = LocalTransactionState.UNKNOWN
            counts[f"check answered: {state.name}"] += 1
            if state in OUTCOMES:
                sent = SentHalf(
                    ask.transaction_id, core.group, ask.half_partition, ask.half_offset, ask.born_ms
                )
                await core.decide_soon(sent, Decision(OUTCOMES[state], DecidedBy.CHECK, ask.ask_no))
        except KafkaError as error:
            counts[f"check failed: {type(error).__name__}"] += 1

    async def _commit(self, consumer: ConsumerCore) -> None:
        try:
            await consumer.commit(None, 1_000)
        except KafkaError as error:  # the checks come again
            self.world.counts[f"commit of checks failed: {type(error).__name__}"] += 1


class ResolverProgram(Program):
    """A resolver process, which stops and starts again."""

    @property
    def restarts(self) -> bool:
        """Return True: halves are settled up to the very end."""
        return True

    async def process(self) -> None:
        """Resolve."""
        config = read_config(
            CheckBackConfig,
            self.settings(
                **_TIMES, transaction_timeout=CHECK_MS, transaction_check_interval=CHECK_MS,
                transaction_check_max=32_767, transaction_max_age=1 << 40,
                group_instance_id=self.first_name if self.random.random() < 0.7 else "",
            ),
        )  # fmt: skip
        core = ResolverCore(self.transport(), config)
        self.reactor.spawn(core.run())
        while True:
            await self.reactor.pause(_STEP_US)
            if self.happens(0.02):
                self.world.counts["resolver stopped"] += 1
                raise StoppedError
            if self.happens(0.01):
                self.world.counts["resolver closed"] += 1
                await core.close()
                raise StoppedError
