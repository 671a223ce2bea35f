"""Warns about listeners that other machines can reach: nothing is encrypted or authenticated."""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING

from txnkafka.server.listeners import address_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txnkafka.server.listeners import Endpoint

LOG = logging.getLogger("txnkafka.server")


def warn_of_exposure(listening: Iterable[Sequence[tuple[str, int]]], endpoints: Iterable[Endpoint]) -> None:
    """Warn about each listener that other machines can reach: one of its addresses is not a loopback address,
    or its advertised address is not, which means that something forwards to it."""
    for addresses, endpoint in zip(listening, endpoints, strict=True):
        beyond = [address_text(*address) for address in addresses if not is_loopback(address[0])]
        if not beyond and (not endpoint.host or is_loopback(endpoint.host)):
            continue
        shown = ", ".join(beyond) or f"{address_text(*addresses[0])}, advertised as {endpoint}"
        LOG.warning(
            "the listener %s can be reached from other machines (%s), without encryption, and clients are "
            "not authenticated: each of them may read, write and delete; 'txnkafka docs serve' has ways to "
            "restrict this (Security)", endpoint.name, shown,
            extra={"fields": {"event": "exposed", "listener": endpoint.name, "addresses": shown}},
        )  # fmt: skip


def is_loopback(host: str) -> bool:
    """Return True for an address or host name that only programs on this machine can connect to."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
