"""Requests and responses as frames: headers around the messages. Bytes only, without a connection.

A frame that is read begins after its size prefix, with the header. Bytes after the message are ignored, as in
Apache Kafka. A frame that is written begins with its size, and is a list of buffers for one gathered write:
encoded bytes, and the records between them, which are the caller's own buffers.

All errors are ``InvalidRequestError``.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

from txnkafka._core.message_reader import read, read_client_id, skip_tagged_fields
from txnkafka._core.message_table import Table
from txnkafka._core.message_writer import write_client_id, write_frame
from txnkafka.bounds import MAX_MESSAGE_VALUES
from txnkafka.errors import InvalidRequestError
from txnkafka.wire.fields import Buffer
from txnkafka.wire.messages.apis import API_VERSIONS, APIS, Api
from txnkafka.wire.schema import SchemaError
from txnkafka.wire.tables import table_of

_CORRELATION_ID: Final = Struct(">i")
_REQUEST: Final = Struct(">hhi")


class RequestHeader(NamedTuple):
    """``RequestHeader.json``; Apache Kafka 4 does not support version 0."""

    api: Api
    api_version: int
    correlation_id: int
    client_id: str | None = None


def read_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Return the header of a request, and the position of the message.

    From an ApiVersions request in an unknown version only the fields common to all versions are read; it must
    be answered in version 0 (KIP-511)."""
    if len(frame) < _REQUEST.size:
        raise _invalid("RequestHeader", SchemaError(f"needs {_REQUEST.size} bytes, {len(frame)} are left", 0))
    api_key, version, correlation_id = _REQUEST.unpack_from(frame)
    api = APIS.get(api_key)
    if api is None:
        raise InvalidRequestError(f"unknown API key {api_key}", message="RequestHeader", position=0)
    has_tagged = _request_tags.get((api_key, version))
    if has_tagged is None:
        has_tagged = api.is_flexible(version) and (api.has(version) or api_key != API_VERSIONS)
        if api.has(version):  # a peer may send any other version
            _request_tags[api_key, version] = has_tagged
    try:
        client_id, position = read_client_id(frame, _REQUEST.size, has_tagged, MAX_MESSAGE_VALUES)
    except SchemaError as error:
        raise _invalid("RequestHeader", error) from None
    return RequestHeader(api, version, correlation_id, client_id), position


def read_request(header: RequestHeader, frame: Buffer, position: int) -> Any:
    """Return the message after a header: an object of ``header.api.request``. Its records are views of the
    frame, valid as long as the frame is not changed."""
    return _read(header.api, "Request", header.api_version, frame, position)


def read_response(api: Api, version: int, frame: Buffer) -> tuple[int, Any]:
    """Return correlation id and message of a response to a request of this version."""
    position = _CORRELATION_ID.size
    if len(frame) < position:
        raise _invalid("ResponseHeader", SchemaError(f"needs {position} bytes, {len(frame)} are left", 0))
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
    if api.response_header_version(version):
        try:
            position = skip_tagged_fields(frame, position, MAX_MESSAGE_VALUES)
        except SchemaError as error:
            raise _invalid("ResponseHeader", error) from None
    return correlation_id, _read(api, "Response", version, frame, position)


def write_request(header: RequestHeader, request: Any) -> list[Buffer]:
    """Return the frame of a request."""
    api, version = header.api, header.api_version
    start = _REQUEST.pack(api.key, version, header.correlation_id)
    try:
        client_id = write_client_id(header.client_id)
    except SchemaError as error:
        raise _invalid("RequestHeader", error) from None
    return _write(api, "Request", version, start + client_id + b"\0" * api.is_flexible(version), request)


def write_response(api: Api, version: int, correlation_id: int, response: Any) -> list[Buffer]:
    """Return the frame of a response in the version of its request."""
    tags = _response_tags.get((api.key, version))
    if tags is None:
        tags = _response_tags[api.key, version] = b"\0" * api.response_header_version(version)
    return _write(api, "Response", version, _CORRELATION_ID.pack(correlation_id) + tags, response)


def _read(api: Api, kind: str, version: int, frame: Buffer, position: int) -> Any:
    table = _tables.get((api.key, kind, version)) or _table(api, kind, version)
    view = frame if isinstance(frame, memoryview) else memoryview(frame)
    try:
        return read(table, view, position, [MAX_MESSAGE_VALUES, MAX_MESSAGE_VALUES])[0]
    except SchemaError as error:
        raise _invalid(api.name + kind, error, version) from None


def _write(api: Api, kind: str, version: int, header: bytes, message: Any) -> list[Buffer]:
    table = _tables.get((api.key, kind, version)) or _table(api, kind, version)
    try:
        return write_frame(table, header, message)
    except SchemaError as error:
        raise _invalid(api.name + kind, error, version) from None


def _table(api: Api, kind: str, version: int) -> Table:
    if not api.has(version):
        reason = f"versions {api.min_version} to {api.max_version} are known"
        raise InvalidRequestError(reason, message=api.name + kind, version=version)
    cls: type = api.request if kind == "Request" else api.response
    table = _tables[api.key, kind, version] = table_of(cls, version, api.is_flexible(version))
    return table


# by API key and version: they are needed for each request
_tables: Final[dict[tuple[int, str, int], Table]] = {}
_request_tags: Final[dict[tuple[int, int], bool]] = {}
_response_tags: Final[dict[tuple[int, int], bytes]] = {}


def _invalid(name: str, error: SchemaError, version: int | None = None) -> InvalidRequestError:
    return InvalidRequestError(
        error.reason, message=name, version=version, path=error.path, position=error.position
    )
