"""What all tests share: how much Hypothesis tries, and which Python Spark's workers run."""

from __future__ import annotations

import os
import sys

from hypothesis import settings

LONG = os.environ.get("TXNKAFKA_LONG", "0") not in ("", "0")

settings.register_profile("check", max_examples=100, deadline=None)
settings.register_profile("long", max_examples=5000, deadline=None)
settings.load_profile("long" if LONG else "check")

# Without this, Spark's workers are whatever "python3" is on the PATH.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
