"""The target for requests: a frame behind its size, as a client sends it.

What is no request is refused with InvalidRequestError and nothing else. What is read can be written, and
reads as it was. An input is the frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.fuzz.engine import Target, require
from tests.fuzz.mutations import boundary_number, put_number, resize_bytes
from tests.unit.wire.messages.kafka_apis import Message
from tests.unit.wire.messages.values import random_message
from txnkafka.errors import InvalidRequestError
from txnkafka.wire.fields import fields_of, is_message
from txnkafka.wire.messages import APIS, Api, RequestHeader, read_request, read_request_header, write_request

__all__ = ["CONSTANT_SIZE", "LARGEST_GROWTH", "REQUEST", "request_seeds", "shown_size"]

# What a request shows may not be much larger than what it is: hostile counts make nothing. A topic without a
# name is two bytes and is shown as 70 characters.
LARGEST_GROWTH, CONSTANT_SIZE = 100, 4000
HEADER = struct.Struct(">hh")


def mutate_request(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Mostly the message, now and then its API or version."""
    choice = random.random()
    if choice < 0.05 and len(content) >= HEADER.size:
        return _other_version(random) + content[HEADER.size :]
    at = random.randrange(len(content) + 1)
    if choice < 0.3:
        return put_number(random, content, (at, random.choice((1, 2, 4, 4, 8))))
    if choice < 0.5:  # a length of a compact string or array, or a tag
        return content[:at] + _uvarint(boundary_number(random, 4)) + content[at + random.randint(0, 2) :]
    return resize_bytes(random, content)


def _other_version(random: Random) -> bytes:
    api: Api = random.choice(list(APIS.values()))
    return HEADER.pack(api.key, random.randint(api.min_version - 1, api.max_version + 1))


def _uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def check_request(content: bytes) -> str:
    """Read, shown, written and read again."""
    try:
        header, position = read_request_header(content)
        message = read_request(header, content, position)
    except InvalidRequestError as error:
        place = 0 if error.position is None else error.position
        require(0 <= place <= len(content), f"position {place} of {len(content)} bytes")
        return "refused: " + "".join(c for c in str(error)[:90] if not c.isdigit())
    shown = shown_size(message)
    assert shown <= CONSTANT_SIZE + LARGEST_GROWTH * len(content), f"{len(content)} bytes become {shown}"
    again = b"".join(write_request(header, message))[4:]
    header_again, position = read_request_header(again)
    assert header_again == header
    assert read_request(header, again, position) == message
    return f"accepted: {header.api.name} {header.api_version}"


def shown_size(value: Any) -> int:
    """How long the values of a message are when they are shown."""
    if is_message(value):
        return sum(
            len(field.name) + shown_size(getattr(value, field.name)) for field in fields_of(type(value))
        )
    if isinstance(value, tuple):
        return 2 + sum(map(shown_size, value))
    return value.nbytes if isinstance(value, memoryview) else len(repr(value))


def request_seeds() -> Iterator[tuple[str, bytes]]:
    """Each request in its first, first flexible and last version, sparse and full."""
    for api in APIS.values():
        for version in sorted({api.min_version, max(api.flexible or 0, api.min_version), api.max_version}):
            for number in (0, 2):
                message = random_message(Message(api, "Request", version), number)
                frame = write_request(RequestHeader(api, version, 7, "client"), message)
                yield f"{api.module}-{version}-{number}", b"".join(frame)[4:]


REQUEST = Target("request", check_request, mutate_request, iterations=4000)
