"""Values with schemas from a registry, which is a real server on the loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.server.decoding.registry_server import Registry, serving
from tests.unit.decoding.schemas import avro, framed, order_file, order_message, serialized
from txnkafka.decoding import RegistryDecoder
from txnkafka.errors import DecodeError, KafkaError

CITY = '{"type": "record", "name": "City", "fields": [{"name": "name", "type": "string"}]}'
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "city", "type": "City"}]}'


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as found:
        yield found


def test_avro_and_its_references(registry: Registry) -> None:
    references = [{"name": "City", "subject": "a/city", "version": 3}]
    registry.documents["/schemas/ids/1"] = {"schema": ORDER, "references": references}
    registry.documents["/subjects/a%2Fcity/versions/3"] = {"schema": CITY, "subject": "a/city"}
    decode = RegistryDecoder(registry.url)
    datum = {"city": {"name": "Rio"}}
    for _ in range(3):
        assert decode(framed(1, avro(ORDER, datum, (CITY,)))) == datum
    assert registry.asked == ["/schemas/ids/1", "/subjects/a%2Fcity/versions/3"]


def test_references_in_a_circle_end(registry: Registry) -> None:
    references = [{"name": "City", "subject": "city", "version": 1}]
    document = {"schema": CITY, "references": references}
    registry.documents |= {"/schemas/ids/1": document, "/subjects/city/versions/1": document}
    assert RegistryDecoder(registry.url)(framed(1, avro(CITY, {"name": "x"}))) == {"name": "x"}


@pytest.mark.parametrize(
    ("indexes", "name", "fields"),
    [
        (b"\x02\x02", "shop.Order", {"id": 3}),
        (b"\x04\x02\x00", "shop.Order.Line", {}),
        (b"\x00", "shop.Empty", {}),
    ],
)
def test_protobuf(registry: Registry, indexes: bytes, name: str, fields: dict[str, int]) -> None:
    registry.documents["/schemas/ids/9"] = {"schema": "syntax = …", "schemaType": "PROTOBUF"}
    registry.documents["/schemas/ids/9?format=serialized"] = {"schema": serialized(order_file())}
    content = framed(9, indexes + order_message(name, **fields))
    assert RegistryDecoder(registry.url)(content) == {key: str(value) for key, value in fields.items()}


def test_json(registry: Registry) -> None:
    registry.documents["/schemas/ids/2"] = {"schema": "{}", "schemaType": "JSON"}
    assert RegistryDecoder(registry.url)(framed(2, b"[1]")) == [1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it does not begin with a zero byte and the id of a schema"),
        (b"\1\0\0\0\1x", "it does not begin with a zero byte"),
        (framed(404, b""), "has no schema 404"),
        (framed(1, b"\xff"), "it does not match the Avro schema"),
        (framed(3, b""), "schema 3: the Avro schema is invalid"),
        (framed(4, b""), "schema 4: its type THRIFT is unknown"),
        (framed(9, b""), "the indexes of its message cannot be read"),
        (framed(9, b"\xff" * 9), "the indexes of its message cannot be read"),
        (framed(9, b"\x01"), "-1 message indexes are impossible"),
        (framed(9, b"\x02\x63"), "-50 is not the index of a message"),
        (framed(9, b"\x02\x7e"), "schema 9: the Protobuf schema is invalid"),
    ],
)
def test_what_cannot_be_decoded(registry: Registry, content: bytes, reason: str) -> None:
    registry.documents["/schemas/ids/1"] = {"schema": '"string"'}
    registry.documents["/schemas/ids/3"] = {"schema": '"nothing"'}
    registry.documents["/schemas/ids/4"] = {"schema": "", "schemaType": "THRIFT"}
    registry.documents["/schemas/ids/9"] = {"schema": "", "schemaType": "PROTOBUF"}
    registry.documents["/schemas/ids/9?format=serialized"] = {"schema": serialized(order_file())}
    decode = RegistryDecoder(registry.url)
    for _ in range(2):
        with pytest.raises(DecodeError, match=reason):
            decode(content)
    assert len(registry.asked) == len(set(registry.asked))


def test_no_other_address_is_asked(registry: Registry) -> None:
    with serving() as other:
        registry.redirect = f"{other.url}/schemas/ids/1"
        with pytest.raises(KafkaError, match="HTTP status 302"):
            RegistryDecoder(registry.url)(framed(1, b""))
        assert other.asked == []
    for address in ("file:///etc/passwd", "ftp://x/y", "registry:8081", "http://"):
        with pytest.raises(ValueError, match="is not an address such as http://host:8081"):
            RegistryDecoder(address)


def test_a_registry_that_does_not_answer_is_an_error_and_no_value(registry: Registry) -> None:
    registry.documents["/schemas/ids/1"] = {"schema": 5}
    with pytest.raises(KafkaError, match="did not return a schema") as caught:
        RegistryDecoder(registry.url)(framed(1, b""))
    assert not isinstance(caught.value, DecodeError)
    with pytest.raises(KafkaError, match=r"http://127.0.0.1:1/schemas/ids/1 does not answer"):
        RegistryDecoder("http://127.0.0.1:1")(framed(1, b""))


def test_a_password_is_sent_and_not_shown(registry: Registry) -> None:
    url = registry.url.replace("http://", "http://user:s%40cret@") + "/base/"
    with pytest.raises(DecodeError) as caught:
        RegistryDecoder(url)(framed(1, b""))
    assert "cret" not in str(caught.value)
    assert registry.asked == ["/base/schemas/ids/1"]
    assert registry.headers["Authorization"] == "Basic dXNlcjpzQGNyZXQ="  # user:s@cret


def test_the_schemas_that_are_kept_are_limited(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txnkafka.decoding.registry.MAX_SCHEMAS", 2)
    registry.documents |= {f"/schemas/ids/{i}": {"schema": json.dumps("null")} for i in range(4)}
    decode = RegistryDecoder(registry.url)
    for i in (0, 1, 2, 3, 3, 0):
        assert decode(framed(i, b"")) is None
    assert len(registry.asked) == 5
