"""``ProducerConfig``: the settings of a producer, with Kafka's names and defaults.

Source: ``ProducerConfig`` of Apache Kafka 4.4. Not supported: ``partitioner.class`` (give ``partition=``),
interceptors, and ``partitioner.availability.timeout.ms``, which is off by default.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from txnkafka.client.client_config import ClientConfig
from txnkafka.config import INT32_MAX, long, row

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_MOST_IN_FLIGHT: Final = 5  # a broker keeps the last five batches of an idempotent producer


@dataclass(frozen=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """Times in milliseconds, sizes in bytes. None stands for a default that depends on other settings.

    Raises ValueError for settings that contradict each other."""

    transactional_id: str | None = row("identity of the producer in all its lives", None, kind="string")
    transaction_timeout_ms: int | None = row(
        "time after which the broker aborts a transaction; the default is 60000", None, 1, kind="int"
    )
    transaction_two_phase_commit_enable: bool = row(
        "transactions never time out, and may be prepared (KIP-939); excludes transaction.timeout.ms", False
    )
    enable_idempotence: bool | None = row(
        "write each record once; the default is true, unless acks or retries prevent it", None, kind="boolean"
    )
    acks: str = row(
        "replicas that must have a record: all, 1, or 0 for no answer", "all", allowed=("all", "-1", "0", "1")
    )
    retries: int = row("how often a batch is repeated within delivery.timeout.ms", INT32_MAX, 0)
    linger_ms: int = long("how long a batch waits for more records", 5, 0)
    batch_size: int = row("bytes at which a batch is sent", 16_384, 0)
    buffer_memory: int = long("bytes of records that wait for the broker, at most", 32 << 20, 0)
    max_block_ms: int = long(
        "longest wait of a call for room, metadata, or the end of a transaction", 60_000, 0
    )
    delivery_timeout_ms: int | None = row(
        "time in which a record is acknowledged or fails; the default is 120000, and never less than "
        "linger.ms + request.timeout.ms", None, 0, kind="int",
    )  # fmt: skip
    max_in_flight_requests_per_connection: int = row("unanswered requests to one broker", 5, 1)
    max_request_size: int = row("largest request, and so the largest record and batch", 1 << 20, 0)
    compression_type: str = row("codec of batches", "none", allowed=CODECS)
    compression_gzip_level: int = row("1 to 9, or -1 for gzip's default", -1, -1, 9)
    compression_lz4_level: int = row("1 to 17", 9, 1, 17)
    compression_zstd_level: int = row("-131072 to 22", 3, -131_072, 22)
    partitioner_ignore_keys: bool = row("choose the partition of records with keys as without", False)
    partitioner_adaptive_partitioning_enable: bool = row(
        "send more records without keys to partitions with shorter queues (KIP-794)", True
    )

    def __post_init__(self) -> None:
        if self.transactional_id == "":
            raise ValueError("transactional.id must not be empty")
        if self.compression_gzip_level == 0:
            raise ValueError("compression.gzip.level must be 1 to 9, or -1 for gzip's default, not 0")
        self._check_idempotence()
        if self.transaction_two_phase_commit_enable and self.transaction_timeout_ms is not None:
            raise ValueError(
                "transaction.timeout.ms has no effect with transaction.two.phase.commit.enable, because the "
                "transactions never time out: leave one of the two"
            )
        given, least = self.delivery_timeout_ms, self.linger_ms + self.request_timeout_ms
        if given is not None and given < least:
            raise ValueError(
                f"delivery.timeout.ms must be at least linger.ms + request.timeout.ms, which is {least}, "
                f"not {given}"
            )

    def _check_idempotence(self) -> None:
        if self.enable_idempotence:
            if self.required_acks != -1:
                raise ValueError(f"enable.idempotence needs acks=all, not acks={self.acks}")
            if self.retries == 0:
                raise ValueError("enable.idempotence needs retries above 0")
        if self.transactional_id is not None and not self.is_idempotent:
            raise ValueError(
                "transactional.id needs an idempotent producer: leave enable.idempotence, acks and retries "
                "at their defaults"
            )
        if self.is_idempotent and self.max_in_flight_requests_per_connection > _MOST_IN_FLIGHT:
            raise ValueError(
                f"max.in.flight.requests.per.connection must be at most {_MOST_IN_FLIGHT} for an idempotent "
                f"producer, not {self.max_in_flight_requests_per_connection}"
            )

    @property
    def is_idempotent(self) -> bool:
        """Return whether batches have sequences, so that the broker takes each once."""
        if self.enable_idempotence is None:
            return self.required_acks == -1 and self.retries > 0
        return self.enable_idempotence

    @property
    def transaction_ms(self) -> int:
        """Return the timeout of transactions; the broker ignores it with two-phase commit."""
        return 60_000 if self.transaction_timeout_ms is None else self.transaction_timeout_ms

    @property
    def required_acks(self) -> int:
        """Return ``acks`` as Produce has it: -1 for all."""
        return -1 if self.acks == "all" else int(self.acks)

    @property
    def delivery_ms(self) -> int:
        """Return the time in which a record is acknowledged or fails."""
        if self.delivery_timeout_ms is not None:
            return self.delivery_timeout_ms
        return max(120_000, min(self.linger_ms + self.request_timeout_ms, INT32_MAX))

    @property
    def compression_level(self) -> int | None:
        """Return the level of ``compression.type``, None for a codec without levels."""
        levels = {each.name for each in fields(self)}
        name = f"compression_{self.compression_type}_level"
        return getattr(self, name) if name in levels else None
