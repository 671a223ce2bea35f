"""Frames of single messages, without their sizes."""

from __future__ import annotations

from typing import Any

from tests.unit.wire.messages.kafka_apis import Message
from txnkafka.wire.messages import (
    RequestHeader,
    read_request,
    read_request_header,
    read_response,
    write_request,
    write_response,
)

__all__ = ["body_of", "frame_of", "header_size", "message_of"]

CORRELATION_ID = 7
CLIENT_ID = "client"


def frame_of(message: Message, value: Any) -> bytes:
    """The frame of a message, behind its size."""
    if message.kind == "Request":
        header = RequestHeader(message.api, message.version, CORRELATION_ID, CLIENT_ID)
        frame = b"".join(write_request(header, value))
    else:
        frame = b"".join(write_response(message.api, message.version, CORRELATION_ID, value))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return frame[4:]


def message_of(message: Message, frame: bytes | memoryview) -> Any:
    """The message in a frame."""
    if message.kind == "Request":
        header, position = read_request_header(frame)
        assert header == RequestHeader(message.api, message.version, CORRELATION_ID, CLIENT_ID)
        return read_request(header, frame, position)
    correlation_id, value = read_response(message.api, message.version, frame)
    assert correlation_id == CORRELATION_ID
    return value


def header_size(message: Message) -> int:
    """How many bytes of a frame are the header."""
    if message.kind == "Request":
        return 8 + 2 + len(CLIENT_ID) + (message.api.request_header_version(message.version) == 2)
    return 4 + message.api.response_header_version(message.version)


def body_of(message: Message, value: Any) -> bytes:
    """The bytes of a message alone."""
    return frame_of(message, value)[header_size(message) :]
