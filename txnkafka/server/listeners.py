"""Listeners: the addresses that a server listens on, and the advertised addresses for their clients.

Source: ``SocketServerConfigs.listenerListToEndPoints``, ``KafkaConfig.effectiveAdvertisedBrokerListeners``,
``AbstractKafkaConfig.effectiveListenerSecurityProtocolMap``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
PROTOCOLS: Final = "listener.security.protocol.map"
INTER_BROKER_NAME: Final = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
CONTROLLER_NAMES: Final = "controller.listener.names"
LISTENER_SETTINGS: Final = (
    LISTENERS, ADVERTISED, PROTOCOLS, INTER_BROKER_NAME, INTER_BROKER_PROTOCOL, CONTROLLER_NAMES,
)  # fmt: skip
"""The settings that ``listeners_of`` parses."""

DEFAULT_NAME: Final = "PLAINTEXT"
WILDCARDS: Final = ("", "0.0.0.0", "::")
_DEFAULT_LISTENERS: Final = "PLAINTEXT://:9092"
_DEFAULT_PROTOCOLS: Final = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT: Final = re.compile(r"([^:/,\s]+)://\[?([0-9A-Za-z\-%._:]*)\]?:([0-9]{1,5})")


def address_text(host: str, port: int) -> str:
    """Return HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """Parse HOST:PORT, with brackets around an IPv6 address. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host, int(port)


class Endpoint(NamedTuple):
    """The address of a listener. A ``host`` in ``WILDCARDS`` means every address of this machine."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{address_text(self.host, self.port)}"

    def seen_at(self, host: str) -> Endpoint:
        """Return the endpoint for a client that has connected to ``host``; a wildcard becomes this
        address."""
        return self._replace(host=host) if self.host in WILDCARDS else self


class Listener(NamedTuple):
    """A listening address with its advertised address.

    ``listen`` may have port 0 for any free one. ``advertised`` None means the listening address; an empty
    host in it means the address that the client has connected to, port 0 the bound port."""

    listen: Endpoint
    advertised: Endpoint | None = None

    def bound(self, host: str, port: int) -> Endpoint:
        """Return the address for clients, once the server listens on ``host`` and ``port``."""
        if self.advertised is None:
            return Endpoint(self.listen.name, host, port)
        return self.advertised._replace(port=self.advertised.port or port)


def listeners_at(addresses: Iterable[tuple[str, int]], settings: Mapping[str, str]) -> list[Listener]:
    """Return listeners at these hosts and ports, named PLAINTEXT, PLAINTEXT_2 and so on, in place of
    ``listeners``. The other settings apply. Raises ValueError like ``listeners_of``."""
    endpoints = [
        Endpoint(f"{DEFAULT_NAME}_{number}" if number > 1 else DEFAULT_NAME, *address)
        for number, address in enumerate(dict.fromkeys(addresses), start=1)
    ]
    return _advertised(endpoints, settings)


def listeners_of(settings: Mapping[str, str]) -> list[Listener]:
    """Return the listeners in a broker's settings.

    Controller listeners are left out, because no other controller connects to a single node. Raises
    ValueError for settings that Kafka would refuse, and for unsupported ones."""
    endpoints = _parsed(LISTENERS, settings.get(LISTENERS, _DEFAULT_LISTENERS))
    controller = _controller_names(settings)
    of_broker = [endpoint for endpoint in endpoints if endpoint.name not in controller]
    if not of_broker:
        raise ValueError(f"{LISTENERS} has no listener for clients: all of them are in {CONTROLLER_NAMES}")
    protocols = _protocols(settings, controller)
    for endpoint in endpoints:
        _check_protocol(endpoint.name, protocols)
    listeners = _advertised(of_broker, settings)
    _check_inter_broker(listeners, settings)
    return listeners


def _advertised(endpoints: Sequence[Endpoint], settings: Mapping[str, str]) -> list[Listener]:
    """Return the listeners at ``endpoints``, each with its advertised address."""
    _check_ports(endpoints)
    text = settings.get(ADVERTISED, "").strip()
    if not text:
        return [Listener(endpoint) for endpoint in endpoints]
    controller = _controller_names(settings)
    given = {each.name: each for each in _parsed(ADVERTISED, text) if each.name not in controller}
    names = [endpoint.name for endpoint in endpoints]
    for each in given.values():
        if each.name not in names:
            raise ValueError(f"{ADVERTISED} has {each}, but the listeners are {', '.join(names)}")
        if each.host in WILDCARDS[1:]:
            raise ValueError(f"{ADVERTISED} has {each}: no client can connect to {each.host}, so name a host")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(
            f"{ADVERTISED} has no address for the listener {missing[0]}: its clients would find no broker"
        )
    return [Listener(endpoint, given[endpoint.name]) for endpoint in endpoints]


def _parsed(setting: str, text: str) -> list[Endpoint]:
    """Parse ``NAME://HOST:PORT,…``; names become upper case, as in ``ListenerName.normalised``."""
    endpoints: list[Endpoint] = []
    for part in _parts(text):
        match = _ENDPOINT.fullmatch(part)
        if match is None or int(match[3]) > 65535:
            raise ValueError(f"{setting}: {part!r} is not NAME://HOST:PORT")
        endpoint = Endpoint(match[1].upper(), match[2], int(match[3]))
        if any(each.name == endpoint.name for each in endpoints):
            raise ValueError(f"{setting} has the listener {endpoint.name} twice")
        endpoints.append(endpoint)
    if not endpoints:
        raise ValueError(f"{setting} has no listener")
    return endpoints


def _parts(text: str) -> list[str]:
    """Return the nonempty parts of a list with commas."""
    return [part for part in map(str.strip, text.split(",")) if part]


def _check_ports(endpoints: Iterable[Endpoint]) -> None:
    """Raise ValueError for two listeners at one address. Apache Kafka refuses every port that is used
    twice."""
    for one, other in combinations(endpoints, 2):
        if one.port == other.port != 0:
            hosts = {one.host, other.host}
            if len(hosts) == 1 or hosts & set(WILDCARDS):
                raise ValueError(f"{LISTENERS}: {one} and {other} have the same port")


def _controller_names(settings: Mapping[str, str]) -> set[str]:
    return {name.upper() for name in _parts(settings.get(CONTROLLER_NAMES, ""))}


def _protocols(settings: Mapping[str, str], controller: Iterable[str]) -> dict[str, str]:
    """Return the security protocol of each listener name. Controllers have PLAINTEXT unless the map is
    set."""
    text = settings.get(PROTOCOLS, "").strip()
    found = {} if text else dict.fromkeys(controller, DEFAULT_NAME)
    for part in _parts(text or _DEFAULT_PROTOCOLS):
        name, colon, protocol = (each.strip().upper() for each in part.partition(":"))
        if not colon or not name or protocol not in _SECURITY_PROTOCOLS:
            raise ValueError(f"{PROTOCOLS}: {part!r} is not NAME:PROTOCOL ({', '.join(_SECURITY_PROTOCOLS)})")
        if found.setdefault(name, protocol) != protocol:
            raise ValueError(f"{PROTOCOLS} has the listener {name} twice")
    return found


def _check_protocol(name: str, protocols: Mapping[str, str]) -> None:
    protocol = protocols.get(name)
    if protocol is None:
        raise ValueError(f"{PROTOCOLS} has no protocol for the listener {name}: add {name}:PLAINTEXT")
    if protocol != DEFAULT_NAME:
        raise ValueError(
            f"{LISTENERS}: {name} cannot have the protocol {protocol}: connections are neither encrypted nor "
            "authenticated, so only PLAINTEXT is supported"
        )


def _check_inter_broker(listeners: Iterable[Listener], settings: Mapping[str, str]) -> None:
    """Raise ValueError for an inter-broker listener that Kafka would refuse.

    No other broker exists here, but Kafka would not start on these settings either."""
    name = settings.get(INTER_BROKER_NAME, "").strip().upper()
    names = [listener.listen.name for listener in listeners]
    if name and name not in names:
        raise ValueError(f"{INTER_BROKER_NAME} is {name}, but the listeners are {', '.join(names)}")
    protocol = settings.get(INTER_BROKER_PROTOCOL, DEFAULT_NAME).strip().upper()
    if protocol != DEFAULT_NAME:
        raise ValueError(f"{INTER_BROKER_PROTOCOL} cannot be {protocol}: only PLAINTEXT is supported")
