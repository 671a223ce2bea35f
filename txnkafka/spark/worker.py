"""Setup that a Python worker of Spark runs once.

PySpark's workers collect garbage after every task. With pyspark, numpy and pyarrow loaded that takes 40 ms or
more, which is longer than reading 200 MiB of log.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Asking the collector for its number of frozen objects takes 10 ms. A forked worker inherits this flag.
_is_settled = False


@contextmanager
def settled() -> Iterator[None]:
    """Wrap the work of a task: after the first task, the garbage collector ignores all objects loaded so
    far. Does nothing in a process that is not Spark's, and nothing after the first task."""
    global _is_settled
    try:
        yield
    finally:
        if "pyspark.daemon" in sys.orig_argv and not _is_settled:
            gc.collect()
            gc.freeze()
            _is_settled = True
