"""``Positions``: looks up where new partitions begin: at committed offsets, or by ``auto.offset.reset``.

Source: ``OffsetsRequestManager.updateFetchPositions``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.client.consumer.consumer_config import reset_duration_ms
from txnkafka.client.consumer.consumer_errors import NoOffsetForPartitionError
from txnkafka.client.consumer.list_offsets import EARLIEST, LATEST
from txnkafka.client.consumer.subscription import Place
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from txnkafka.client.cluster import Cluster
    from txnkafka.client.consumer.commits import Commits
    from txnkafka.client.consumer.list_offsets import OffsetLookup
    from txnkafka.client.consumer.signal import Signal
    from txnkafka.client.consumer.subscription import AssignedPartition, Subscription

LOG = logging.getLogger("txnkafka.client")


class Positions:
    """``changed`` is notified after each lookup."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        commits: Commits,
        lookup: OffsetLookup,
        changed: Signal,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._commits = commits
        self._lookup = lookup
        self._changed = changed
        self._is_looking = False

    def update(self) -> None:
        """Begin to look up the missing positions, unless that is under way."""
        if not self._is_looking and self._missing():
            self._is_looking = True
            self._cluster.reactor.spawn(self._update())

    def _missing(self) -> list[AssignedPartition]:
        now_ms = self._cluster.reactor.now_ms()
        return self._subscription.some(
            lambda state: state.place is not None and state.failure is None and state.retry_ms <= now_ms
        )

    async def _update(self) -> None:
        states = self._missing()
        try:
            await self._update_all(states)
        except KafkaError as error:
            self._refuse(states, error)
        except Exception as error:  # an answer that no broker should send: the next poll fails
            states[0].failure = error
        finally:
            self._is_looking = False
            self._changed.notify()

    async def _update_all(self, states: list[AssignedPartition]) -> None:
        committed = [state for state in states if state.place is Place.COMMITTED]
        if committed and self._commits.has_group:
            await self._to_committed(committed)
        else:
            for state in committed:
                state.place = Place.BY_POLICY
        await self._reset([state for state in states if state.place not in (None, Place.COMMITTED)])

    async def _to_committed(self, states: list[AssignedPartition]) -> None:
        """Continue at the committed offsets; partitions without one by policy."""
        found = await self._commits.fetch_once([state.partition for state in states])
        for state in states:
            if state.place is Place.COMMITTED:
                committed = found.get(state.partition)
                if committed is None:
                    state.place = Place.BY_POLICY
                else:
                    epoch = -1 if committed.leader_epoch is None else committed.leader_epoch
                    state.seek(committed.offset, epoch)

    async def _reset(self, states: list[AssignedPartition]) -> None:
        config = self._commits.config
        if config.auto_offset_reset == "none":
            undecided = [state for state in states if state.place is Place.BY_POLICY]
            names = tuple(each.partition for each in undecided)
            for state in undecided:
                state.failure = NoOffsetForPartitionError(names, config.group_id)
            states = [state for state in states if state.place is not Place.BY_POLICY]
        if not states:
            return
        asked = {state.partition: (state, state.place) for state in states}
        times = {state.partition: self._timestamp(state.place) for state in states}
        found, errors = await self._lookup.some(times)
        missing = [partition for partition, each in found.items() if each.offset < 0]
        if missing:  # no record since that time
            found |= (await self._lookup.some(dict.fromkeys(missing, LATEST)))[0]
        for partition, each in found.items():
            state, place = asked[partition]
            if state.place is place and each.offset >= 0:
                state.seek(each.offset, -1 if each.leader_epoch is None else each.leader_epoch)
                LOG.info("%s: reset to offset %d", partition, each.offset)
        for partition, error in errors.items():
            self._refuse([asked[partition][0]], error)

    def _timestamp(self, place: Place | None) -> int:
        policy = self._commits.config.auto_offset_reset
        if place is Place.BEGINNING or (place is Place.BY_POLICY and policy == "earliest"):
            return EARLIEST
        duration = reset_duration_ms(policy) if place is Place.BY_POLICY else None
        return LATEST if duration is None else max(0, self._cluster.reactor.clock.now_ms() - duration)

    def _refuse(self, states: list[AssignedPartition], error: KafkaError) -> None:
        """Try again after a pause, or fail."""
        config, reactor = self._commits.config, self._cluster.reactor
        if not error.retriable:
            for state in states:
                state.failure = error
            return
        retry_ms = reactor.now_ms() + config.retry_backoff_ms
        for state in states:
            state.retry_ms = retry_ms
        self._cluster.updated_ms = -1
        reactor.call_at(retry_ms, self._changed.notify)
        LOG.debug("positions: %s", error)
