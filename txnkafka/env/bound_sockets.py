"""Creates sockets bound to all addresses of a host name."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from errno import EADDRINUSE
from typing import Any

_ATTEMPTS = 10  # to find a port that is free on all addresses


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Return a stream socket for each address of ``host``, in the system's order, all on the same port; port
    0 picks a free one. Addresses that this machine lacks, such as ::1 of localhost, are left out if at least
    one other exists. The IPv6 wildcard includes IPv4, as in Java; an empty host is both wildcards. Raises
    OSError, also if one of the addresses is in use."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    attempts = 1 if port else _ATTEMPTS
    while True:
        try:
            return _all_bound(dict.fromkeys(found), is_for_both=host == "::" and socket.has_dualstack_ipv6())
        except OSError as error:
            attempts -= 1
            if error.errno != EADDRINUSE or not attempts:
                raise


def _all_bound(found: Iterable[tuple[Any, ...]], *, is_for_both: bool) -> list[socket.socket]:
    bound: list[socket.socket] = []
    refused: list[OSError] = []
    try:
        for family, kind, protocol, _, (host, port, *rest) in found:
            address = (host, bound[0].getsockname()[1] if bound else port, *rest)
            try:
                bound.append(_bound(family, kind, protocol, address, is_for_both=is_for_both))
            except OSError as error:
                if error.errno == EADDRINUSE:
                    raise
                refused.append(error)
        if not bound:
            raise refused[0]
    except OSError:
        for each in bound:
            each.close()
        raise
    return bound


def _bound(family: int, kind: int, protocol: int, address: Any, *, is_for_both: bool) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_for_both)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made
