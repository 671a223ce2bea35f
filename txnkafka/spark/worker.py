"""What a Python worker of Spark's does once.

PySpark's workers collect garbage after every task. With pyspark, numpy and pyarrow loaded that takes 40 ms or
more, which is longer than reading 200 MiB of log.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["settled"]

# Asking the collector how much is frozen walks through all of it, 10 ms a task. What a fork inherits holds.
_is_settled = False


@contextmanager
def settled() -> Iterator[None]:
    """Around the work of a task: what is loaded when the first one ends is from then on passed over by the
    garbage collector. Does nothing in a process that is not Spark's, nor a second time in one that is."""
    global _is_settled
    try:
        yield
    finally:
        if "pyspark.daemon" in sys.orig_argv and not _is_settled:
            gc.collect()
            gc.freeze()
            _is_settled = True
