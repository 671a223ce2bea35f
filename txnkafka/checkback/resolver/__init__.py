"""The resolver: it checks undecided halves back, and carries decisions out."""

from __future__ import annotations

from txnkafka.checkback.resolver.half_owner import OwnerStatus
from txnkafka.checkback.resolver.resolver import Resolver, resolver_of

__all__ = ["OwnerStatus", "Resolver", "resolver_of"]
