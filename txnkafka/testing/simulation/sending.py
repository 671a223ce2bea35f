"""``Sending``: a program with a producer of the package; the base of its kinds."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.client_config import read_config
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.client.producer.producer_core import ProducerCore
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.batches import checksum
from txnkafka.testing.simulation.history import Ack, Fence
from txnkafka.testing.simulation.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Send, Topic
    from txnkafka.testing.simulation.simulated_transport import SimulatedTransport

KEYS: Final = [f"k{i:03}".encode() for i in range(8)]
_VALUE: Final = struct.Struct(">qI")
_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AT: Final = 43  # in a batch
_NEARLY_EXHAUSTED: Final = 32_700


class Sending(Program):
    """``may_repeat``: see ``Send``."""

    def __init__(self, world: World, name: str, random: Random, topics: Sequence[Topic]) -> None:
        super().__init__(world, name, random)
        self.may_repeat = False
        self.core: ProducerCore
        self._partitions = [
            TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)
        ]

    def new_core(self, transport: SimulatedTransport, **more: Any) -> ProducerCore:
        """Return a producer with drawn settings."""
        random = self.random
        linger_ms = random.choice((0, 0, 5))
        settings = self.settings(
            **{
                "linger.ms": linger_ms,
                "batch.size": random.choice((100, 400, 1_200)),
                "delivery.timeout.ms": 400 + linger_ms + random.choice((0, 500, 5_000, 30_000)),
                "max.block.ms": random.choice((500, 3_000)),
                "max.in.flight.requests.per.connection": random.choice((1, 2, 5)),
                "metadata.max.age.ms": random.choice((500, 300_000)),
                **more,
            }
        )
        return ProducerCore(transport, read_config(ProducerConfig, settings))

    def some_partitions(self) -> list[TopicPartition]:
        """Return at least one partition."""
        count = self.random.randrange(1, min(4, len(self._partitions) + 1))
        return self.random.sample(self._partitions, count)

    async def send_some(self, transaction: int) -> None:
        """Send a few records to some partitions."""
        random, history = self.random, self.world.history
        for partition in self.some_partitions():
            for _ in range(random.choice((1, 1, 1, 2, 5, 8))):
                key = random.choice(KEYS)
                send = history.send(self.name, partition, key, transaction, self.world.scheduler.now_us)
                await self.send(send)

    async def send(self, send: Send) -> None:
        """Send a record of the history, and keep its acknowledgement."""
        send.may_repeat = self.may_repeat
        topic, number = send.partition
        value = _VALUE.pack(send.number, checksum(send.number, topic, number))
        future = await self.core.send(topic, send.key, value, partition=number, timestamp=None, headers=None)
        future.add_done_callback(lambda done: self._acknowledged(send, done))

    def _acknowledged(self, send: Send, future: Any) -> None:
        if future.exception() is None:
            send.acked_us, send.offset = self.world.scheduler.now_us, future.result().offset

    # The messages

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """Keep what the broker has accepted, with the producer ids and epochs of the messages."""
        counts, history = self.world.counts, self.world.history
        if name == "Produce":
            self._produced(message, response, sent_us)
            return
        code = getattr(response, "error_code", 0)
        if code:
            last = name == "InitProducerId" and message.producer_epoch >= _NEARLY_EXHAUSTED
            is_known = last and code == ErrorCode.UNKNOWN_SERVER_ERROR  # same response as Kafka
            if not is_known and name != "ConsumerGroupHeartbeat":  # GroupHistory counts its errors
                counts[f"{name}: {ErrorCode.of(code).name}"] += 1
        elif name == "InitProducerId":
            self._identified(response, is_first=message.producer_id < 0)
            if message.transactional_id is not None:
                history.fences.append(
                    Fence(
                        message.transactional_id, response.producer_id, response.producer_epoch,
                        self.world.scheduler.now_us,
                    )
                )  # fmt: skip
        elif name in ("EndTxn", "AddOffsetsToTxn"):
            history.acks.append(Ack(name, message.producer_id, message.producer_epoch, sent_us))
            if name == "EndTxn" and response.producer_id >= 0:
                self._identified(response, is_first=False)

    def _produced(self, message: Any, response: Any, sent_us: int) -> None:
        sent = {
            (topic.name or topic.topic_id, row.index): row.records
            for topic in message.topic_data for row in topic.partition_data
        }  # fmt: skip
        sent |= {
            (topic.topic_id, row.index): row.records
            for topic in message.topic_data for row in topic.partition_data
        }  # fmt: skip
        for topic in response.responses:
            for row in topic.partition_responses:
                if row.error_code:
                    self.world.counts[f"Produce: {ErrorCode.of(row.error_code).name}"] += 1
                    continue
                self.world.counts["batch acknowledged"] += 1
                if message.transactional_id is not None:
                    records = sent[topic.name or topic.topic_id, row.index]
                    producer_id, epoch = _PRODUCER.unpack_from(records, _PRODUCER_AT)
                    self.world.history.acks.append(Ack("Produce", producer_id, epoch, sent_us))

    def _identified(self, response: Any, *, is_first: bool) -> None:
        """Count new producer ids."""
