"""FindCoordinator (key 10): the broker that coordinates a group or a transactional id.

By version:

1  kind of the key: 0 group, 1 transaction; error message, throttle time
3  flexible
4  several keys (KIP-699)
5  TRANSACTION_ABORTABLE (KIP-890)
6  kind 2, share group (KIP-932)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, message, string
from txnkafka.wire.schema import STRING


@message
class FindCoordinatorRequest:
    """``FindCoordinatorRequest.json``."""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: tuple[str, ...] = array(STRING, "4+")


@message
class Coordinator:
    """An element of ``coordinators``."""

    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="0+", ignorable=True)


@message
class FindCoordinatorResponse:
    """``FindCoordinatorResponse.json``."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    coordinators: tuple[Coordinator, ...] = array(Coordinator, "4+")
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="0+", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
