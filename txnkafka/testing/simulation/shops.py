"""``Shops``: services with transactional messages, the listeners of their checks, and resolvers. In the end
the database has an order if, and only if, readers get its message, exactly once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from txnkafka.checkback.half_topics import CHECK_TOPIC, HALF_TOPIC, PARKED_TOPIC
from txnkafka.coordinator.half.half_image import HalfImage, HalfState
from txnkafka.testing.simulation.log_checker import committed_rows
from txnkafka.testing.simulation.shop_database import ShopDatabase
from txnkafka.testing.simulation.shop_program import (
    SHOP_PARTITIONS,
    SHOP_TOPIC,
    CheckProgram,
    ResolverProgram,
    ShopProgram,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World

_STATE: Final = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "delete.retention.ms": "100",
    "internal.segment.bytes": "8000",  # a settlement is one batch
}  # fmt: skip
SHOP_TOPICS: Final[dict[str, tuple[int, dict[str, str]]]] = {
    SHOP_TOPIC: (SHOP_PARTITIONS, {"retention.ms": "-1"}),
    HALF_TOPIC: (2, _STATE),
    CHECK_TOPIC: (2, {"retention.ms": "-1"}),
    PARKED_TOPIC: (2, _STATE),
}
"""Numbers of partitions, and settings."""
COMPACTED: Final = frozenset({HALF_TOPIC, PARKED_TOPIC})
SETTLE_MS: Final = 25_000
"""The time that a resolver takes which waits for another one in a rebalance, and finds that it has died."""


class Shops:
    """All programs of transactional messages."""

    def __init__(self, world: World, derived: Callable[[], Random]) -> None:
        self._world = world
        self._derived = derived
        self._database = ShopDatabase()
        # a record from the future of a clock that was set back is refused, and its half is parked
        self._may_park = "clock back" in world.swarm.faults

    def begin(self) -> None:
        """Start the processes."""
        world = self._world
        for number in range(world.swarm.shops):
            ShopProgram(world, f"shop-{number}", self._derived(), self._database).begin()
        for number in range(2):
            CheckProgram(world, f"listener-{number}", self._derived(), self._database).begin()
            ResolverProgram(world, f"resolver-{number}", self._derived()).begin()

    def problems(self, directory: Mapping[str, Mapping[str, bytes]]) -> list[str]:
        """Return the halves without a decision, and the orders whose message is not visible exactly as often
        as the database has them. ``directory`` has the files."""
        image = {name: HalfImage() for name in directory if name.rpartition("-")[0] == HALF_TOPIC}
        for name, half_image in image.items():
            for offset, key, value in committed_rows(directory[name]):
                half_image.replay(offset, key, value)
        halves = [half for each in image.values() for half in each]
        parked = {half.transaction_id for half in halves if half.state is HalfState.PARKED}
        found = [
            f"undecided: half {half.transaction_id} is {half.state.value} in the end: {half.remark}"
            for half in halves if half.transaction_id not in parked or not self._may_park
        ]  # fmt: skip
        visible: Counter[int] = Counter()
        for number in range(SHOP_PARTITIONS):
            rows = committed_rows(directory[f"{SHOP_TOPIC}-{number}"])
            visible.update(int.from_bytes(value or b"") for _, _, value in rows)
        database = self._database
        for number, order in enumerate(database.orders):
            wanted = int(database.rows.get(order, False)) * (order not in parked)
            if visible[number] != wanted:
                found.append(
                    f"order {number} ({order}) is visible {visible[number]} times, and the database has it "
                    f"{wanted} times"
                )
        self._world.counts["orders visible"] += visible.total()
        self._world.counts["orders fenced by a check"] += sum(not each for each in database.rows.values())
        return found
