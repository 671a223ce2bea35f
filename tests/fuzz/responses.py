"""The target for responses: bytes as they come from a socket, in any pieces, to the frames of a client.

Nothing raises but InvalidRequestError, which ends the connection. Records of a Fetch response are decoded as
a consumer does it, and only CorruptRecordError is raised. Memory is bounded by the received bytes.

An input is a seed for the pieces (4 bytes), the API and version of the requests (2 bytes each), and the
stream.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.fuzz.engine import Target, require
from tests.fuzz.mutations import change_bytes, put_number, resize_bytes
from tests.fuzz.requests import CONSTANT_SIZE, LARGEST_GROWTH, shown_size
from tests.unit.broker.node import batch_of
from tests.unit.wire.messages.kafka_apis import Message
from tests.unit.wire.messages.values import random_message
from txnkafka.client import framing
from txnkafka.client.consumer.fetched_data import FetchedData
from txnkafka.client.framing import FrameReader
from txnkafka.errors import CorruptRecordError, InvalidRequestError
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.wire.messages import APIS, read_response, write_response
from txnkafka.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

__all__ = ["RESPONSE", "response_seeds"]

START = struct.Struct(">4shh")
MOST_FRAME_BYTES = 1 << 20
FETCH = 1


def check_response(content: bytes) -> str:
    """Feed the stream in pieces, and read each frame."""
    if len(content) < START.size:
        return "refused: no API"
    seed, key, version = START.unpack_from(content)
    api = APIS.get(key)
    if api is None or not api.has(version):
        return "refused: unknown API or version"
    random, stream = Random(seed), content[START.size :]
    reader, position, count = FrameReader("peer", MOST_FRAME_BYTES), 0, 0
    try:
        while position < len(stream):
            space = reader.space()
            size = min(len(space), random.choice((1, 4, 100, 1 << 20)), len(stream) - position)
            require(size > 0, "there is no room for bytes")
            space[:size] = stream[position : position + size]
            space.release()
            position += size
            room = len(reader._buffer)
            require(room <= max(framing._AT_ONCE, 4 * position) + framing._BUFFER, f"{room} bytes of buffer")
            for frame in reader.received(size):
                _, message = read_response(api, version, frame)
                shown = shown_size(message)
                limit = CONSTANT_SIZE + LARGEST_GROWTH * len(frame)
                assert shown <= limit, f"{len(frame)} bytes become {shown}"
                count += 1
                if key == FETCH:
                    _decode(message)
    except InvalidRequestError as error:
        return "refused: " + "".join(c for c in str(error)[:90] if not c.isdigit())
    return f"accepted: {min(count, 3)} of {api.name} {version}"


def _decode(response: FetchResponse) -> None:
    """Decode the records of each partition up to damage."""
    for topic in response.responses:
        for data in topic.partitions:
            for is_committed in (False, True):
                fetched = FetchedData(0, -1, data, is_committed=is_committed)
                try:
                    for columns in ChunkDecoder(headers=True).chunks(fetched.batches(0)):
                        require(len(columns) > 0, "empty columns")
                except CorruptRecordError:
                    pass


def mutate_response(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Frames are changed inside, with their sizes mostly kept, repeated, or cut."""
    start, stream = content[: START.size], content[START.size :]
    choice = random.random()
    if choice < 0.05:
        api = random.choice(list(APIS.values()))
        version = random.randint(api.min_version, api.max_version)
        return START.pack(random.randbytes(4), api.key, version) + stream
    if choice < 0.2 or len(stream) < 8:
        return start + resize_bytes(random, stream)
    if choice < 0.3:
        return start + stream + stream
    body = stream[4:]
    if choice < 0.6:
        body = put_number(random, body, (random.randrange(len(body)), random.choice((1, 2, 4, 8))))
    else:
        body = (change_bytes if choice < 0.85 else resize_bytes)(random, body)
    return start + len(body).to_bytes(4, "big") + body


def response_seeds() -> Iterator[tuple[str, bytes]]:
    """The response of each API in its last version, and Fetch responses with records."""
    for api in APIS.values():
        version = api.max_version
        yield f"{api.module}", _input(api.key, version, random_message(Message(api, "Response", version), 2))
    for version in (4, 12, 18):
        records = bytes(batch_of(b"a", b"b")) + bytes(
            batch_of(b"c", producer_id=3, producer_epoch=0, base_sequence=0)
        )
        data = PartitionData(
            partition_index=0, high_watermark=3, last_stable_offset=3, records=records,
            aborted_transactions=(AbortedTransaction(producer_id=3, first_offset=0),),
        )  # fmt: skip
        topic = FetchableTopicResponse(topic="t" if version < 13 else "", partitions=(data,))
        yield f"records-{version}", _input(FETCH, version, FetchResponse(responses=(topic,)))


def _input(key: int, version: int, message: Any) -> bytes:
    frame = b"".join(map(bytes, write_response(APIS[key], version, 7, message)))
    return START.pack(b"seed", key, version) + frame


RESPONSE = Target("response", check_response, mutate_response, iterations=3000)
