"""The message classes against Apache Kafka's own definitions, field by field and version by version."""

from __future__ import annotations

import pkgutil
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.unit.wire.messages.kafka_apis import KAFKA_APIS, MESSAGES, Message, kafka_facts, our_facts, snake
from txnkafka.wire import messages
from txnkafka.wire.fields import ArrayOf, Buffer, Type, fields_of
from txnkafka.wire.messages import APIS, Api
from txnkafka.wire.schema import Scalar

BY_API = pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
PYTHON_TYPES = {"float64": float, "bool": bool, "string": str, "uuid": str, "bytes": bytes, "records": Buffer}


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_each_field_is_kafkas(message: Message) -> None:
    ours = our_facts(message)
    assert ours == kafka_facts(message)
    assert [fact for fact in ours if fact.nullable and fact.tag is not None and fact.type == "struct"] == []


def test_no_api_is_missing_or_invented() -> None:
    assert sorted(APIS) == sorted(KAFKA_APIS)


@BY_API
def test_versions_are_kafkas(api: Api) -> None:
    kafka = KAFKA_APIS[api.key]
    assert (api.key, api.name, api.min_version) == (kafka["key"], kafka["name"], kafka["min"])
    assert (api.unstable, api.max_version) == (kafka.get("unstable"), kafka.get("unstable", kafka["max"]))
    assert api.flexible == kafka["flex"]
    assert [api.has(version) for version in (-1, api.min_version - 1, api.max_version + 1)] == [False] * 3


def test_announced_are_the_versions_that_are_read_but_for_two() -> None:
    announced = {api.name: api.announced for api in APIS.values()}
    read = {api.name: (api.min_version, api.max_version) for api in APIS.values()}
    assert announced == read | {"Produce": (0, 13), "InitProducerId": (0, 5)}


@BY_API
def test_header_versions_are_kafkas(api: Api) -> None:
    kafka = KAFKA_APIS[api.key]
    for version in range(api.min_version, api.max_version + 1):
        assert api.has(version)
        assert api.request_header_version(version) == by_version(kafka["reqHdr"], version)
        assert api.response_header_version(version) == by_version(kafka["respHdr"], version)


def by_version(header_versions: dict[str, int], version: int) -> int:
    (found,) = (
        header
        for versions, header in header_versions.items()
        if int(versions.split("-")[0]) <= version <= int(versions.split("-")[-1])
    )
    return found


def classes_of(cls: type) -> Iterator[type]:
    """A class and those in it."""
    yield cls
    for field in fields_of(cls):
        kind = field.schema.type
        element = kind.element if isinstance(kind, ArrayOf) else kind
        if not isinstance(element, Scalar):
            yield from classes_of(element)


@BY_API
def test_a_module_has_the_classes_of_its_api_and_no_others(api: Api) -> None:
    found = {*classes_of(api.request), *classes_of(api.response)}
    module = sys.modules[api.request.__module__]
    assert module.__name__.rpartition(".")[2] == api.module == snake(api.name)
    defined = (value for value in vars(module).values() if isinstance(value, type))
    assert found == {cls for cls in defined if cls.__module__ == module.__name__}


@BY_API
def test_annotations_say_what_the_tables_say(api: Api) -> None:
    for cls in (*classes_of(api.request), *classes_of(api.response)):
        hints = typing.get_type_hints(cls)
        assert set(hints) == {field.name for field in fields_of(cls)}
        for field in fields_of(cls):
            expected = python_type(field.schema.type)
            wanted = expected | None if field.schema.nullable or field.default is None else expected
            assert hints[field.name] == wanted, (cls, field.name)


def python_type(kind: Type) -> Any:
    if isinstance(kind, ArrayOf):
        return tuple[python_type(kind.element), ...]
    return PYTHON_TYPES.get(kind.name, int) if isinstance(kind, Scalar) else kind


def test_modules_of_the_room_are_apis_or_what_they_share() -> None:
    modules = {module.name for module in pkgutil.iter_modules(messages.__path__)}
    assert modules == {api.module for api in APIS.values()} | {"apis", "frames"}


def test_messages_are_frozen_and_hashable_and_equal_by_their_fields() -> None:
    end_txn = import_module("txnkafka.wire.messages.end_txn")
    request = end_txn.EndTxnRequest(transactional_id="t", producer_id=1)
    assert request == end_txn.EndTxnRequest(producer_id=1, transactional_id="t")
    assert hash(request) == hash(end_txn.EndTxnRequest(producer_id=1, transactional_id="t"))
    assert request != end_txn.EndTxnRequest(producer_id=2, transactional_id="t")
    with pytest.raises(AttributeError):
        request.committed = True
    with pytest.raises(TypeError):
        end_txn.EndTxnRequest("t")
    assert not hasattr(request, "__dict__")


def test_a_password_is_not_shown() -> None:
    sasl = import_module("txnkafka.wire.messages.sasl_authenticate")
    assert "secret" not in repr(sasl.SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"))
    assert "secret" not in repr(sasl.SaslAuthenticateResponse(auth_bytes=b"secret"))
