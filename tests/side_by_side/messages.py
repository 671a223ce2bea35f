"""Messages as data: dictionaries of fields by their names, with those that are the default left out."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from tests.side_by_side.batches import records_read, records_written
from tests.side_by_side.naming import Naming
from txnkafka.wire.fields import ArrayOf, fields_of
from txnkafka.wire.messages import APIS, Api, RequestHeader, read_response, write_request
from txnkafka.wire.schema import Scalar

__all__ = ["BY_NAME", "Request", "answer_of", "frame_of"]

BY_NAME: Final = {api.name: api for api in APIS.values()}
CLIENT_ID: Final = "side by side"
_PRODUCER_IDS: Final = {"producer_id", "v3_and_below_producer_id", "producer_id_filters"}
_TIMES: Final = {
    "log_append_time_ms", "last_timestamp", "transaction_start_time_ms", "timestamp", "last_fetch_timestamp",
    "last_caught_up_timestamp",
}  # fmt: skip
_WORDS: Final = {"error_message", "batch_index_error_message", "documentation"}
_OWN: Final = {"host": "host", "cluster_id": "cluster", "log_dir": "directory"}
_MEMBERS: Final = {"member_id", "leader"}
_LISTENER: Final = re.compile(r"PLAINTEXT://[\w.]+:\d+")
_LEFT_OUT: Final = {"throttle_time_ms"}


class Request(NamedTuple):
    """What is sent; ``fields`` are data."""

    api: str
    version: int
    fields: dict[str, Any]

    @property
    def has_answer(self) -> bool:
        return self.api != "Produce" or self.fields.get("acks") != 0

    def __str__(self) -> str:
        return f"{self.api} v{self.version} {self.fields}"


def frame_of(request: Request, correlation_id: int, naming: Naming) -> bytes:
    """The bytes of a request, its size first."""
    api = BY_NAME[request.api]
    message = _to_message(api.request, request.fields, naming)
    header = RequestHeader(api, request.version, correlation_id, CLIENT_ID)
    return b"".join(map(bytes, write_request(header, message)))


def answer_of(api: Api, version: int, frame: bytes, naming: Naming) -> dict[str, Any]:
    """The data of a response without its size."""
    _, message = read_response(api, version, frame)
    return _from_message(message, naming)


def _to_message(cls: type, given: dict[str, Any], naming: Naming) -> Any:
    fields = {field.name: field.schema.type for field in fields_of(cls)}
    return cls(**{name: _to_value(name, fields[name], value, naming) for name, value in given.items()})


def _to_value(name: str, kind: Any, value: Any, naming: Naming) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayOf):
        return tuple(_to_value(name, kind.element, element, naming) for element in value)
    if not isinstance(kind, Scalar):
        return _to_message(kind, value, naming)
    if kind.name == "records":
        return records_written(value, naming)
    if kind.name == "uuid":
        return naming.actual_topic(value)
    if kind.name == "string":
        return naming.actual_member(value) if name == "member_id" else naming.actual_text(value)
    if name in _PRODUCER_IDS:
        return naming.actual_producer(value)
    if name == "timestamp":
        return naming.actual_time(value)
    return naming.actual_session(value) if name == "session_id" else value


def _from_message(message: Any, naming: Naming) -> dict[str, Any]:
    found = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.name not in _LEFT_OUT and value != field.default:
            found[field.name] = _from_value(field.name, field.schema.type, value, naming)
    return found


def _from_value(name: str, kind: Any, value: Any, naming: Naming) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayOf):
        return [_from_value(name, kind.element, element, naming) for element in value]
    if not isinstance(kind, Scalar):
        return _from_message(value, naming)
    if kind.name == "records":
        return records_read(bytes(value), naming)
    if kind.name == "uuid":
        return naming.topic(value)
    if kind.name == "string":
        return _text(name, value, naming)
    return _number(name, value, naming)


def _text(name: str, value: str, naming: Naming) -> str:
    if name in _WORDS:
        return "words" if value not in ("", "NONE") else value
    if name in _MEMBERS:
        return naming.member(value)
    if name == "value" and _LISTENER.fullmatch(value):
        return "PLAINTEXT://host:port"
    return _OWN.get(name, naming.text(value)) if value else value


def _number(name: str, value: Any, naming: Naming) -> Any:
    if name in _PRODUCER_IDS:
        return naming.producer(value)
    if name in _TIMES:
        return naming.time(value)
    if name == "session_id":
        return naming.session(value)
    return "port" if name == "port" and value > 0 else value
