"""AlterClientQuotas (key 49): changes quotas of users, clients and addresses (KIP-546).

By version:

1  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, float64, int16, int32, message, string


@message
class EntityData:
    """An element of ``entity``."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@message
class OpData:
    """An element of ``ops``."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@message
class EntryData:
    """An element of ``entries``."""

    entity: tuple[EntityData, ...] = array(EntityData)
    ops: tuple[OpData, ...] = array(OpData)


@message
class AlterClientQuotasRequest:
    """``AlterClientQuotasRequest.json``."""

    entries: tuple[EntryData, ...] = array(EntryData)
    validate_only: bool = boolean()


@message
class EntryResult:
    """An element of ``entries``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: tuple[EntityData, ...] = array(EntityData)


@message
class AlterClientQuotasResponse:
    """``AlterClientQuotasResponse.json``."""

    throttle_time_ms: int = int32()
    entries: tuple[EntryResult, ...] = array(EntryResult)
