"""``findings``: what a few seeds find in a broker with a planted bug."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.testing.simulation.simulation import simulate

if TYPE_CHECKING:
    from txnkafka.testing.simulation.swarm import Swarm

__all__ = ["findings"]


def findings(swarm: Swarm, *, events: int) -> str:
    """Return the findings of the first seed that has any, a line each; nothing if 24 seeds have none."""
    for seed in range(24):
        found = simulate(seed, events, swarm).findings
        if found:
            return "\n".join(found)
    return ""
