"""Copies a topic with flechtwerk, exactly once, and counts the records of each key in its state.

Arguments: bootstrap servers, topic, target, directory; its state is in the topics alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

from flechtwerk import Event, Flechtwerk, IncomingMessage, Message, State, transformer
from flechtwerk.attribute import INT, Attribute

SERVER, SOURCE, TARGET, _ = sys.argv[1:]
COUNT = Attribute("count", INT)


@transformer(input_topics=[SOURCE])
async def counting(message: IncomingMessage, state: State) -> AsyncIterator[Message | State]:
    count = (state.get(COUNT) or 0) + 1
    yield Message(key=message.key, topic=TARGET, value=Event({**message.value, COUNT: count}))
    yield State({COUNT: count})


async def main() -> None:
    await Flechtwerk.of(
        application_id="flechtwerk-copy", bootstrap_servers=SERVER, client_id="flechtwerk-copy-0",
        stage=counting, compression_type=None,
    ).run()  # fmt: skip


asyncio.run(main())
