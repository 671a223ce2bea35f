"""``AdminCore``: the calls of ``Admin`` as coroutines, without threads and sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.client.admin.cluster_calls import ClusterCalls
from txnkafka.client.admin.configs import ConfigCalls
from txnkafka.client.admin.group_offsets import GroupOffsetCalls
from txnkafka.client.admin.groups import GroupCalls
from txnkafka.client.admin.hanging import HangingCalls
from txnkafka.client.admin.record_calls import RecordCalls
from txnkafka.client.admin.two_phase import TwoPhaseCalls
from txnkafka.client.cluster import Cluster

if TYPE_CHECKING:
    from txnkafka.client.admin.admin_config import AdminConfig
    from txnkafka.client.transport import Transport


class AdminCore(
    HangingCalls, TwoPhaseCalls, RecordCalls, ConfigCalls, GroupCalls, GroupOffsetCalls, ClusterCalls
):
    """All calls. Each is a coroutine that the reactor of ``transport`` runs."""

    def __init__(self, transport: Transport, config: AdminConfig) -> None:
        super().__init__(Cluster(transport, config, allow_auto_creation=False), config)
