"""Kafka's requests and responses: one module for each API, with the classes of both.

``APIS`` has every API by its key; ``frames`` reads and writes messages with their headers. The objects are
plain frozen dataclasses, so that a handler works without encoding a byte.
"""

from __future__ import annotations

from txnkafka.wire.messages.apis import APIS, Api
from txnkafka.wire.messages.frames import (
    RequestHeader,
    read_request,
    read_request_header,
    read_response,
    write_request,
    write_response,
)

__all__ = [
    "APIS",
    "Api",
    "RequestHeader",
    "read_request",
    "read_request_header",
    "read_response",
    "write_request",
    "write_response",
]
