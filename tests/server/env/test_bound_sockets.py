"""Which addresses of a name a server listens on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from txnkafka.env.bound_sockets import bound_sockets

NOT_HERE = "2001:db8::1"


def found_for(*hosts: str) -> Any:
    """A ``getaddrinfo`` that finds these."""

    def found(_: str, port: int, **options: Any) -> list[Any]:
        four, six = (socket.AF_INET, socket.SOCK_STREAM, 6, ""), (socket.AF_INET6, socket.SOCK_STREAM, 6, "")
        return [(*six, (each, port, 0, 0)) if ":" in each else (*four, (each, port)) for each in hosts]

    return found


@contextmanager
def addresses_of(host: str, port: int = 0) -> Iterator[list[tuple[str, int]]]:
    with ExitStack() as opened:
        yield [opened.enter_context(each).getsockname()[:2] for each in bound_sockets(host, port)]


def test_those_that_the_machine_has_in_their_order_and_with_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", found_for(NOT_HERE, "::1", "127.0.0.1", "::1"))
    with addresses_of("name") as found:
        assert found == [("::1", found[0][1]), ("127.0.0.1", found[0][1])]


def test_a_name_of_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", found_for(NOT_HERE, "192.0.2.1"))
    with pytest.raises(OSError, match="Cannot assign requested address"), addresses_of("name"):
        pass


@pytest.mark.parametrize("hosts", [("::1", "127.0.0.1"), ("::",)])
def test_one_that_is_in_use(monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, ...]) -> None:
    """Clients that take it would reach another server. The wildcard of IPv6 is that of IPv4, too."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(socket, "getaddrinfo", found_for(*hosts))
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use"), addresses_of(hosts[0], port):
            pass
