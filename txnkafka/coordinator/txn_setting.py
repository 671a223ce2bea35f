"""``Setting``: what a transition depends on beside the state and the event."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["KAFKAS_LIMITS", "Limits", "Setting"]


class Limits(NamedTuple):
    """Broker configs that bound what a transactional id may do; the defaults are Kafka's.

    ``transaction.two.phase.commit.enable`` is missing: it is false until KIP-939 is supported.
    """

    transaction_max_timeout_ms: int = 15 * 60 * 1000
    transactional_id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000


KAFKAS_LIMITS: Final = Limits()


class Setting(NamedTuple):
    """The clock, the level of the feature ``transaction.version``, a producer id to use, and the limits."""

    now_ms: int
    version: int
    producer_id: int | None
    limits: Limits
