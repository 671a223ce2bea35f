"""Checks that the addresses of ``serve`` are free, before anything is changed."""

from __future__ import annotations

from txnkafka.env.bound_sockets import bound_sockets
from txnkafka.server.listeners import address_text


def check_address(option: str, host: str, port: int) -> None:
    """Raise OSError if listening on this address fails."""
    try:
        for each in bound_sockets(host, port):
            each.close()
    except OSError as error:
        raise OSError(
            f"cannot listen on {address_text(host, port)}: {error.strerror}; "
            f"{option} HOST:PORT chooses another address, and port 0 a free port"
        ) from None
