"""Requests and responses as frames: headers around the messages. Bytes only, without a connection.

A frame that is read begins behind its size, with the header. What follows the message is ignored, as in
Apache Kafka. A frame that is written begins with its size, and is a list of buffers for one gathered write:
what was encoded, and the records between, which are the caller's own buffers.

All errors are ``InvalidRequestError``.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

from txnkafka.bounds import MAX_MESSAGE_VALUES
from txnkafka.errors import InvalidRequestError
from txnkafka.wire.codegen.compiled import reader_of, writer_of
from txnkafka.wire.codegen.fields import Buffer
from txnkafka.wire.codegen.part_readers import skip_tagged_fields
from txnkafka.wire.codegen.primitive_readers import READERS
from txnkafka.wire.codegen.primitive_writers import WRITERS, Gather
from txnkafka.wire.messages.apis import API_VERSIONS, APIS, Api
from txnkafka.wire.scalar_writers import MAX_LENGTH
from txnkafka.wire.schema import SchemaError

__all__ = [
    "RequestHeader",
    "read_request",
    "read_request_header",
    "read_response",
    "write_request",
    "write_response",
]

_SIZE: Final = Struct(">i")
_REQUEST: Final = Struct(">hhi")
_SIZED_REQUEST: Final = Struct(">ihhi")
_SIZED_RESPONSE: Final = Struct(">ii")
# The one string of flexible headers that is not compact (KIP-482).
_READ_CLIENT_ID: Final = READERS["read_nullable_string"]
_WRITE_CLIENT_ID: Final = WRITERS["write_nullable_string"]


class RequestHeader(NamedTuple):
    """``RequestHeader.json``; version 0 is not known to Apache Kafka 4."""

    api: Api
    api_version: int
    correlation_id: int
    client_id: str | None = None


def read_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header of a request, and the position of the message.

    Of an ApiVersions request in a version that is not known, only what all versions have in common is read:
    it has to be answered in version 0 (KIP-511).
    """
    view = _view(frame)
    if len(view) < _REQUEST.size:
        raise _invalid("RequestHeader", SchemaError(f"needs {_REQUEST.size} bytes, {len(view)} are left", 0))
    api_key, version, correlation_id = _REQUEST.unpack_from(view)
    api = APIS.get(api_key)
    if api is None:
        raise InvalidRequestError(f"there is no API with key {api_key}", message="RequestHeader", position=0)
    try:
        client_id, position = _READ_CLIENT_ID(view, _REQUEST.size, len(view), "client_id")
        if api.is_flexible(version) and (api.has(version) or api_key != API_VERSIONS):
            position = skip_tagged_fields(view, position, len(view), [MAX_MESSAGE_VALUES, MAX_MESSAGE_VALUES])
    except SchemaError as error:
        raise _invalid("RequestHeader", error) from None
    return RequestHeader(api, version, correlation_id, client_id), position


def read_request(header: RequestHeader, frame: Buffer, position: int) -> Any:
    """The message behind a header: an object of ``header.api.request``. Its records are views of the frame,
    valid as long as the frame is not changed."""
    api, version = header.api, header.api_version
    return _read(api, "Request", version, _view(frame), position)


def read_response(api: Api, version: int, frame: Buffer) -> tuple[int, Any]:
    """Correlation id and message of a response to a request of this version."""
    view, position = _view(frame), _SIZE.size
    if len(view) < position:
        raise _invalid("ResponseHeader", SchemaError(f"needs {position} bytes, {len(view)} are left", 0))
    (correlation_id,) = _SIZE.unpack_from(view)
    if api.response_header_version(version):
        try:
            position = skip_tagged_fields(view, position, len(view), [MAX_MESSAGE_VALUES, MAX_MESSAGE_VALUES])
        except SchemaError as error:
            raise _invalid("ResponseHeader", error) from None
    return correlation_id, _read(api, "Response", version, view, position)


def write_request(header: RequestHeader, request: Any) -> list[Buffer]:
    """The frame of a request."""
    api, version = header.api, header.api_version
    out = bytearray(_SIZED_REQUEST.pack(0, api.key, version, header.correlation_id))
    try:
        _WRITE_CLIENT_ID(out, [], header.client_id, "client_id")
    except SchemaError as error:
        raise _invalid("RequestHeader", error) from None
    if api.is_flexible(version):
        out.append(0)
    return _write(api, "Request", version, out, request)


def write_response(api: Api, version: int, correlation_id: int, response: Any) -> list[Buffer]:
    """The frame of a response in the version of its request."""
    out = bytearray(_SIZED_RESPONSE.pack(0, correlation_id))
    if api.response_header_version(version):
        out.append(0)
    return _write(api, "Response", version, out, response)


def _view(frame: Buffer) -> memoryview:
    return frame if isinstance(frame, memoryview) else memoryview(frame)


def _read(api: Api, kind: str, version: int, view: memoryview, position: int) -> Any:
    name, cls = _message(api, kind, version)
    try:
        read = reader_of(cls, version, api.is_flexible(version))
        return read(view, position, len(view), [MAX_MESSAGE_VALUES, MAX_MESSAGE_VALUES])[0]
    except SchemaError as error:
        raise _invalid(name, error, version) from None


def _write(api: Api, kind: str, version: int, out: bytearray, message: Any) -> list[Buffer]:
    name, cls = _message(api, kind, version)
    gather: Gather = []
    try:
        writer_of(cls, version, api.is_flexible(version))(out, gather, message)
    except SchemaError as error:
        raise _invalid(name, error, version) from None
    size = len(out) - _SIZE.size + sum(memoryview(buffer).nbytes for _, buffer in gather)
    if size > MAX_LENGTH:
        raise _invalid(name, SchemaError(f"{size} bytes are more than a frame may have"), version)
    _SIZE.pack_into(out, 0, size)
    return _gathered(out, gather)


def _gathered(out: bytearray, gather: Gather) -> list[Buffer]:
    """``out`` with each buffer at its position, none of them copied."""
    if not gather:
        return [out]
    view, start = memoryview(out), 0
    buffers: list[Buffer] = []
    for position, buffer in gather:
        buffers += (view[start:position], buffer)
        start = position
    if start < len(out):
        buffers.append(view[start:])
    return buffers


def _message(api: Api, kind: str, version: int) -> tuple[str, Any]:
    name = api.name + kind
    if not api.has(version):
        reason = f"versions {api.min_version} to {api.max_version} are known"
        raise InvalidRequestError(reason, message=name, version=version)
    return name, api.request if kind == "Request" else api.response


def _invalid(name: str, error: SchemaError, version: int | None = None) -> InvalidRequestError:
    return InvalidRequestError(
        error.reason, message=name, version=version, path=error.path, position=error.position
    )
