"""The resolver: it checks undecided halves back, and carries decisions out."""

from __future__ import annotations

from txnkafka.checkback.resolver.half_owner import OwnerStatus
from txnkafka.checkback.resolver.resolver import BESIDE_BROKER, Resolver, resolver_of

__all__ = ["BESIDE_BROKER", "OwnerStatus", "Resolver", "resolver_of"]
