"""``Setting``: the inputs of a transition beside the state and the event."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Limits(NamedTuple):
    """Broker configs that limit a transactional id; the defaults are Kafka's. ``two_phase_commit`` is
    ``transaction.two.phase.commit.enable`` (KIP-939)."""

    transaction_max_timeout_ms: int = 15 * 60 * 1000
    transactional_id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    two_phase_commit: bool = False


KAFKAS_LIMITS: Final = Limits()


class SeenEpochs(NamedTuple):
    """The largest epochs of a producer id in the logs of partitions: of all batches, and of data alone. A
    marker of transaction version 2 has the epoch of the transaction that comes next."""

    largest: int
    of_data: int


NOTHING_SEEN: Final[Mapping[int, SeenEpochs]] = MappingProxyType({})


class Setting(NamedTuple):
    """The clock, the level of the feature ``transaction.version``, a producer id to use, and the limits.
    ``seen`` has the producer ids that may have greater epochs in partitions than in the coordinator, because
    its log has lost its end."""

    now_ms: int
    version: int
    producer_id: int | None
    limits: Limits
    seen: Mapping[int, SeenEpochs] = NOTHING_SEEN
