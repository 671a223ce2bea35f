"""``IdempotentProducer``: a client without transactions, whose records arrive exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txnkafka.error_codes import ErrorCode
from txnkafka.testing.simulation.producer import Producer

if TYPE_CHECKING:
    from txnkafka.testing.simulation.client import Steps


class IdempotentProducer(Producer):
    """Restarts with a new producer id when a batch is refused, and drops its outstanding batches."""

    def steps(self) -> Steps:
        """Send groups of batches."""
        self.start_sequence = self.world.swarm.start_sequence
        process, starts = self.name, 0
        while not self.world.is_ending:
            self.name = f"{process}.{starts}"  # outstanding batches may still arrive, after later ones
            starts += 1
            error = yield from self._init()
            while error == ErrorCode.NONE and not self.world.is_ending:
                yield self.think()
                outgoing = [
                    self.batch(partition, -1)
                    for partition in self.some_partitions()
                    for _ in range(self.random.choice((1, 1, 2, 5)))
                ]
                error = yield from self.produce(outgoing)
            yield self.think()

    def _init(self) -> Steps:
        def perform(broker: Any, reply: Any) -> None:
            broker.transactions.init_producer_id(None, 0, -1, -1, reply)

        answer, _ = yield from self.ask("InitProducerId", perform)
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        self.sequences.clear()
        return answer.error
