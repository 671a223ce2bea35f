"""The version of this package."""

from __future__ import annotations

from importlib.metadata import distributions, version
from pathlib import PurePath

__all__ = ["package_version"]

_NAME = "txnkafka"


def package_version() -> str:
    """Return the version. Metadata inside of the package comes first: an archive for Spark's executors
    contains it, and other versions may be installed beside it."""
    folder = str(PurePath(__file__).parent)
    inside = next(iter(distributions(name=_NAME, path=[folder])), None)
    return inside.version if inside else version(_NAME)
