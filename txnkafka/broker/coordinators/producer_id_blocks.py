"""Blocks of producer ids, taken from the metadata log, so that no id is assigned twice over all owners of the
directory.

Source: ``ProducerIdControlManager``, ``RPCProducerIdManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.registry import metadata_records
from txnkafka.coordinator.txn.producer_ids import BLOCK_SIZE, ProducerIds
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from txnkafka.broker.services import Services


class ProducerIdBlocks:
    """The producer ids of a broker; each block is a durable record of the metadata log."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.producer_ids = ProducerIds(self._request)

    def _request(self) -> None:
        services = self._services
        metadata = services.metadata
        first = max(metadata.image.next_producer_id, self._largest_known() + 1)
        record = metadata_records.producer_ids(services.node_id, -1, first + BLOCK_SIZE)
        try:
            metadata.append([record], services.now_ms)
        except KafkaError:
            services.durability.soon(self.producer_ids.block_failed)
            return

        def durable(error: ErrorCode) -> None:
            if error != ErrorCode.NONE:
                self.producer_ids.block_failed()
            else:
                metadata.apply([record])
                self.producer_ids.block_durable(first)

        services.durability.when_durable(metadata.log, durable)

    def _largest_known(self) -> int:
        """Return the largest producer id in any log, above which ids can be assigned."""
        if self._services.metadata.image.next_producer_id:
            return -1  # the registry has a larger one
        largest = -1
        for log in self._services.logs.values():
            largest = max([largest, *(entry.producer_id for entry in log.producers.entries())])
        return largest
