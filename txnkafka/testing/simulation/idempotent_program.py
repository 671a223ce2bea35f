"""``IdempotentProgram``: an application with a producer without transactions, whose records arrive once."""

from __future__ import annotations

from txnkafka.testing.simulation.sending import Sending
from txnkafka.testing.simulation.simulated_reactor import StoppedError


class IdempotentProgram(Sending):
    """Sends until it stops; records that have failed are not sent again, and may have been written."""

    async def process(self) -> None:
        """Send groups of records."""
        self.core = self.new_core(self.transport())
        while not self.world.is_ending:
            await self.rest()
            await self.send_some(-1)
            if self.random.random() < 0.2:
                await self.core.flush(None)
            if self.happens(0.005):
                raise StoppedError
        await self.core.close(1_000)
