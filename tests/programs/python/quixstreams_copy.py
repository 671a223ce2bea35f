"""Copies a topic with quixstreams, exactly once, and counts the records of each key in its state.

Arguments: bootstrap servers, topic, target, directory of the state.
"""

from __future__ import annotations

import sys

from quixstreams import Application, State

server, source, target, directory = sys.argv[1:]
app = Application(
    broker_address=server, consumer_group="quixstreams-copy", processing_guarantee="exactly-once",
    state_dir=directory, auto_offset_reset="earliest", commit_interval=0.5, loglevel="WARNING",
    consumer_extra_config={"session.timeout.ms": 6000},
    producer_extra_config={"transaction.timeout.ms": 10000},
)  # fmt: skip


def counted(value: dict[str, int], state: State) -> dict[str, int]:
    count = state.get("count", 0) + 1
    state.set("count", count)
    return {**value, "count": count}


stream = app.dataframe(app.topic(source, key_deserializer="str", value_deserializer="json"))
stream.apply(counted, stateful=True).to_topic(
    app.topic(target, key_serializer="str", value_serializer="json")
)
app.run()
