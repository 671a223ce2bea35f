"""Producer, consumer and administrator for asyncio.

    from txnkafka import aio

    async with aio.Producer(bootstrap_servers="127.0.0.1:9092", transactional_id="shop") as producer:
        async with producer.transaction():
            await producer.send("orders", b"a book", key=b"anna")

They run the same clients as ``txnkafka.Producer``, ``Consumer`` and ``Admin``, with the same settings and
errors. IO is done in the thread of the client's reactor, so that nothing blocks the event loop. ``broker=`` a
``txnkafka.Broker`` takes the place of ``bootstrap_servers``.
"""

from __future__ import annotations

from txnkafka.aio.admin import Admin
from txnkafka.aio.consumer import Consumer
from txnkafka.aio.producer import Producer

__all__ = ["Admin", "Consumer", "Producer"]
