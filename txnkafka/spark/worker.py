"""What a Python worker of Spark's does once.

PySpark's workers collect garbage after every task. With pyspark, numpy and pyarrow loaded that takes 40 ms or
more, which is longer than reading 200 MiB of log.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import TaskContext

__all__ = ["settled"]


@contextmanager
def settled() -> Iterator[None]:
    """Around the work of a task: what is loaded when the first one ends is from then on passed over by the
    garbage collector. Does nothing outside of a task, nor a second time in a process."""
    try:
        yield
    finally:
        if TaskContext.get() is not None and gc.get_freeze_count() == 0:
            gc.collect()
            gc.freeze()
