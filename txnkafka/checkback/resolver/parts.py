"""The parts that all owners of one resolver share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from txnkafka.checkback.checkback_config import CheckBackConfig
    from txnkafka.checkback.payloads import Payloads
    from txnkafka.checkback.resolver.asker import Asker
    from txnkafka.client.transport import Transport
    from txnkafka.coordinator.half.check_schedule import CheckRules


class Parts(NamedTuple):
    """All run in the reactor of ``transport``."""

    transport: Transport
    config: CheckBackConfig
    rules: CheckRules
    asker: Asker
    payloads: Payloads
