"""Copies a topic with faust, exactly once. Arguments: bootstrap servers, topic, target, directory."""

from __future__ import annotations

import sys

import faust

server, source, target, directory = sys.argv[1:]
app = faust.App(
    "faust-copy", broker=f"kafka://{server}", processing_guarantee="exactly_once", datadir=directory,
    key_serializer="raw", value_serializer="raw", topic_partitions=2, topic_replication_factor=1,
    broker_session_timeout=6.0, broker_heartbeat_interval=1.0, broker_commit_interval=0.5,
    consumer_auto_offset_reset="earliest", web_enabled=False,
)  # fmt: skip
inputs = app.topic(source, key_type=bytes, value_type=bytes)
copies = app.topic(target, key_type=bytes, value_type=bytes)


@app.agent(inputs)
async def copy(stream: faust.Stream[bytes]) -> None:
    async for key, value in stream.items():
        await copies.send(key=key, value=value)


sys.argv[1:] = ["worker", "--loglevel=warn"]
app.main()
