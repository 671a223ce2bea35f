"""Shows the progress of planning: a line on a terminal that is overwritten, else log lines.

Nothing is shown in the first two seconds. Spark itself shows the progress of its jobs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

from txnkafka.env import Clock, SystemClock

INTERVAL_MS = 2_000
LOG = logging.getLogger("txnkafka.spark")
T = TypeVar("T")


def shown(
    items: Iterable[T], total: int, what: str, *, clock: Clock | None = None, out: TextIO | None = None
) -> Iterator[T]:
    """Yield the items, and show at intervals how many of ``total`` were yielded; ``what`` describes them."""
    clock = SystemClock() if clock is None else clock
    out = sys.stderr if out is None else out
    terminal = out.isatty()
    shown_ms = clock.now_ms()
    line = ""
    for done, item in enumerate(items, 1):
        yield item
        if clock.now_ms() - shown_ms < INTERVAL_MS:
            continue
        shown_ms = clock.now_ms()
        line = f"{what}: {done:,} of {total:,}"
        if terminal:
            out.write(f"\r{line}")
            out.flush()
        else:
            LOG.info("%s", line)
    if terminal and line:
        out.write("\r" + " " * len(line) + "\r")
        out.flush()
