"""A broker of scripted answers for consumers: logs of batches, and the errors that a test plants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.client.fakes import FakeTransport, Request
from txnkafka.client.consumer import Consumer
from txnkafka.model import TopicPartition
from txnkafka.record.builder import build_batch
from txnkafka.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from txnkafka.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

PARTITION = TopicPartition("orders", 0)
WAIT = 5_000


class ScriptedBroker:
    """``logs`` have the bytes of batches from an offset on. ``answer`` may replace the answer for a
    partition; a Fetch without data is answered when ``fetch.max.wait.ms`` is over."""

    def __init__(self, partitions: int = 1, **options: Any) -> None:
        self.transport = FakeTransport({"orders": partitions}, **options)
        self.transport.answers["Fetch"] = self._fetch
        self.transport.answers["ListOffsets"] = self._list_offsets
        self.logs: dict[int, dict[int, bytes]] = {number: {} for number in range(partitions)}
        self.answer: Callable[[int, Any], PartitionData | None] = lambda number, wanted: None
        self.session_id = 0
        self.delay_ms = 0
        self._session: dict[int, Any] = {}
        self.top_error = 0

    def consumer(self, *numbers: int, **settings: Any) -> Consumer:
        given = {"auto_offset_reset": "earliest", **settings}
        consumer = Consumer(given, transport=self.transport.for_client)
        consumer.assign([TopicPartition("orders", number) for number in numbers or (0,)])
        return consumer

    def put(self, offset: int, *values: bytes, number: int = 0, epoch: int = 0) -> None:
        batch = build_batch(
            [(None, value, 5) for value in values], base_offset=offset, partition_leader_epoch=epoch
        )
        self.logs[number][offset] = bytes(batch)

    def _fetch(self, request: Request) -> FetchResponse | None:
        message = request.message
        if self.top_error:
            error, self.top_error = self.top_error, 0
            return FetchResponse(error_code=error)
        if message.session_epoch <= 0:
            self._session = {}
        for topic in message.topics:
            self._session |= {each.partition: each for each in topic.partitions}
        for topic in message.forgotten_topics_data:
            for number in topic.partitions:
                del self._session[number]
        rows = [(number, self._row(number, each)) for number, each in self._session.items()]
        found = tuple(row for _, row in rows if row is not None)
        id_ = self.transport.topic_id("orders")
        topic = FetchableTopicResponse(topic_id=id_, topic="orders", partitions=found)
        response = FetchResponse(session_id=self.session_id, responses=(topic,) if found else ())
        pause_ms = self.delay_ms if found else message.max_wait_ms
        if not pause_ms:
            return response
        reactor = self.transport.reactor
        reactor.call_at(reactor.now_ms() + pause_ms, lambda: request.reply(response))
        return None

    def _row(self, number: int, wanted: Any) -> PartitionData | None:
        planted = self.answer(number, wanted)
        if planted is not None:
            return planted
        data = self.logs.get(number, {}).get(wanted.fetch_offset)
        if data is None:
            return None
        return PartitionData(
            partition_index=number,
            high_watermark=1_000,
            last_stable_offset=1_000,
            log_start_offset=0,
            records=data,
        )

    def _list_offsets(self, request: Request) -> ListOffsetsResponse:
        rows = tuple(
            ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                offset=0 if each.timestamp == -2 else 1_000,
                leader_epoch=0,
            )
            for each in request.message.topics[0].partitions
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="orders", partitions=rows),))
