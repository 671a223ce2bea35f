"""``Setting``: the inputs of a transition beside the state and the event.

``TransactionConfig``: the settings of a transaction coordinator, with Kafka's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple


class Limits(NamedTuple):
    """Broker configs that limit a transactional id; the defaults are Kafka's.

    ``transaction.two.phase.commit.enable`` is missing: it is false until KIP-939 is supported."""

    transaction_max_timeout_ms: int = 15 * 60 * 1000
    transactional_id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000


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


COMPLETE_RETRY_MS: Final = 100

"""After so long a COMPLETE_* is appended again that was refused."""


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """``abort_timed_out_interval_ms`` is ``transaction.abort.timed.out.transaction.cleanup.interval.ms``,
    ``remove_expired_interval_ms`` is ``transaction.remove.expired.transaction.cleanup.interval.ms``.
    A request is parked for at most ``max_parked_ms``, and at most ``max_parked`` for a transactional id; with
    0 each one that would have to wait is refused with CONCURRENT_TRANSACTIONS at once, as by Kafka."""

    limits: Limits = KAFKAS_LIMITS
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    max_parked_ms: int = 5_000
    max_parked: int = 32
