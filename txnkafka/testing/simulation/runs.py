"""``run_seeds``: the simulations of many seeds, in several processes."""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from logging import CRITICAL, disable
from typing import TYPE_CHECKING

from txnkafka.testing.simulation.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnkafka.testing.simulation.simulation import Report

GARBAGE = 100_000  # allocations between two collections, which cost a tenth of a run: it leaves few cycles


def run_seeds(seeds: Sequence[int], events: int, processes: int = 1) -> Iterator[Report]:
    """Yield the report of each seed, in the order of the seeds."""
    run = partial(_quietly, events=events)
    if processes == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(processes) as executor:
        yield from executor.map(run, seeds)


def _quietly(seed: int, events: int) -> Report:
    """Run a seed without the engine's logs about planned faults."""
    usual = gc.get_threshold()
    disable(CRITICAL)
    gc.set_threshold(GARBAGE)
    try:
        return simulate(seed, events)
    finally:
        gc.set_threshold(*usual)
        disable(0)
