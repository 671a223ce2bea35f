"""What ``serve`` checks of its addresses before it changes anything: that they are free."""

from __future__ import annotations

import socket
from errno import EADDRINUSE
from typing import Any

__all__ = ["address_text", "check_address"]


def check_address(option: str, host: str, port: int) -> None:
    """Raise OSError when this address cannot be listened on. A name may have addresses that this machine has
    not, such as ::1 of localhost: one that it has is enough."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        errors = [error for each in found if (error := _refusal(*each)) is not None]
        if errors and (len(errors) == len(found) or any(each.errno == EADDRINUSE for each in errors)):
            raise errors[0]
    except OSError as error:
        raise OSError(
            f"cannot listen on {address_text(host, port)}: {error.strerror}; "
            f"{option} HOST:PORT chooses another address, and port 0 a free port"
        ) from None


def _refusal(family: int, kind: int, protocol: int, name: str, address: Any) -> OSError | None:
    """Return why an address cannot be bound, or None."""
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def address_text(host: str, port: int) -> str:
    """Return HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
