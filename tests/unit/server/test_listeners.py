"""Kafka's settings of listeners, as ``listeners_of`` reads them, and the addresses that clients get."""

from __future__ import annotations

import pytest

from txnkafka.server.listeners import Endpoint, Listener, listeners_at, listeners_of

DISTRIBUTED = {  # config/server.properties of Apache Kafka 4.3
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
    "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
}


def test_the_settings_of_kafkas_distribution() -> None:
    """The controller's listener is left out."""
    assert listeners_of(DISTRIBUTED) == [
        Listener(Endpoint("PLAINTEXT", "", 9092), Endpoint("PLAINTEXT", "localhost", 9092))
    ]


def test_several_listeners() -> None:
    found = listeners_of(
        {
            "listeners": "internal://127.0.0.1:9092, external://[::]:0",
            "advertised.listeners": "EXTERNAL://kafka.example.com:19092,INTERNAL://127.0.0.1:9092",
            "listener.security.protocol.map": "internal:PLAINTEXT,external:plaintext",
        }
    )
    assert [str(each.listen) for each in found] == ["INTERNAL://127.0.0.1:9092", "EXTERNAL://[::]:0"]
    assert str(found[1].advertised) == "EXTERNAL://kafka.example.com:19092"


def test_without_settings_as_in_kafka() -> None:
    assert listeners_of({}) == [Listener(Endpoint("PLAINTEXT", "", 9092))]


def test_addresses_of_the_command_line_replace_listeners() -> None:
    settings = {"listeners": "A://:1", "advertised.listeners": "PLAINTEXT_2://h:7,PLAINTEXT://g:8"}
    found = listeners_at([("127.0.0.1", 0), ("::1", 9093), ("127.0.0.1", 0)], settings)
    assert [(str(each.listen), str(each.advertised)) for each in found] == [
        ("PLAINTEXT://127.0.0.1:0", "PLAINTEXT://g:8"),
        ("PLAINTEXT_2://[::1]:9093", "PLAINTEXT_2://h:7"),
    ]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"listeners": "localhost:9092"}, "listeners: 'localhost:9092' is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://h:65536"}, "is not NAME://HOST:PORT"),
        ({"listeners": " , "}, "listeners has no listener"),
        ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "listeners has the listener PLAINTEXT twice"),
        ({"listeners": "SSL://:9093"}, "listeners: SSL cannot have the protocol SSL: .*PLAINTEXT"),
        ({"listeners": "X://:1"}, "no protocol for the listener X: add X:PLAINTEXT"),
        (
            {"listeners": "X://:1", "listener.security.protocol.map": "X:SASL_SSL"},
            "listeners: X cannot have the protocol SASL_SSL",
        ),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "'PLAINTEXT:TLS' is not NAME:PROTOCOL"),
        (
            {"listeners": "A://:1,PLAINTEXT://127.0.0.1:1", "listener.security.protocol.map": "A:PLAINTEXT"},
            "no protocol for the listener PLAINTEXT",
        ),
        (
            {
                "listeners": "A://:1,PLAINTEXT://127.0.0.1:1",
                "listener.security.protocol.map": "A:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            },
            "A://:1 and PLAINTEXT://127.0.0.1:1 have the same port",
        ),
        (
            {"listeners": "C://:9093", "controller.listener.names": "c"},
            "listeners has no listener for clients: all of them are in controller.listener.names",
        ),
        (
            {"advertised.listeners": "OTHER://h:1,PLAINTEXT://h:2"},
            "advertised.listeners has OTHER://h:1, but the listeners are PLAINTEXT",
        ),
        (
            {
                "listeners": "A://:1,B://:2", "advertised.listeners": "A://h:1",
                "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
            },
            "advertised.listeners has no address for the listener B",
        ),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "no client can connect to 0.0.0.0"),
        ({"inter.broker.listener.name": "REPLICATION"}, "inter.broker.listener.name is REPLICATION, but"),
        ({"security.inter.broker.protocol": "SSL"}, "security.inter.broker.protocol cannot be SSL"),
    ],
)  # fmt: skip
def test_what_is_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        listeners_of(settings)


def test_the_same_port_on_two_addresses() -> None:
    """Apache Kafka refuses it, and it is of use: a loopback and a private network."""
    settings = {"listeners": "A://127.0.0.1:1,B://10.0.0.1:1,PLAINTEXT://:0,C://:0"}
    protocols = ",".join(f"{name}:PLAINTEXT" for name in ("A", "B", "C", "PLAINTEXT"))
    assert len(listeners_of({**settings, "listener.security.protocol.map": protocols})) == 4


@pytest.mark.parametrize(
    ("listener", "seen"),
    [
        (Listener(Endpoint("A", "localhost", 0)), "A://127.0.0.1:9092"),
        (Listener(Endpoint("A", "localhost", 0), Endpoint("A", "localhost", 0)), "A://localhost:9092"),
        (Listener(Endpoint("A", "", 0), Endpoint("A", "", 19092)), "A://10.0.0.7:19092"),
        (Listener(Endpoint("A", "", 0), Endpoint("A", "k.example", 1)), "A://k.example:1"),
    ],
)
def test_the_address_for_a_client(listener: Listener, seen: str) -> None:
    """It has connected to 10.0.0.7; the listener was bound to 127.0.0.1:9092."""
    assert str(listener.bound("127.0.0.1", 9092).seen_at("10.0.0.7")) == seen


@pytest.mark.parametrize("wildcard", ["0.0.0.0", "::"])
def test_a_listener_on_all_addresses_sends_clients_to_the_one_they_used(wildcard: str) -> None:
    assert str(Listener(Endpoint("A", "", 0)).bound(wildcard, 1).seen_at("10.0.0.7")) == "A://10.0.0.7:1"
