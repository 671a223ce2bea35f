"""DescribeClientQuotas (key 48): quotas of users, clients and addresses (KIP-546).

By version:

1  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, float64, int8, int16, int32, message, string


@message
class ComponentData:
    """An element of ``components``."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message
class DescribeClientQuotasRequest:
    """``DescribeClientQuotasRequest.json``."""

    components: tuple[ComponentData, ...] = array(ComponentData)
    strict: bool = boolean()


@message
class EntityData:
    """An element of ``entity``."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@message
class ValueData:
    """An element of ``values``."""

    key: str = string()
    value: float = float64()


@message
class EntryData:
    """An element of ``entries``."""

    entity: tuple[EntityData, ...] = array(EntityData)
    values: tuple[ValueData, ...] = array(ValueData)


@message
class DescribeClientQuotasResponse:
    """``DescribeClientQuotasResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: tuple[EntryData, ...] | None = array(EntryData, nullable="0+")
