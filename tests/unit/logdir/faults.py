"""Planted faults for verify, each with its expected finding. test_verify.py runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.models.log_directory import LogDirectory
from txnkafka.logdir import Finding, LogDir
from txnkafka.logdir.verify import verify

__all__ = ["FIRST", "NEWEST", "PLANTED", "SECOND", "Expected", "Plant", "found", "planted", "rows"]

Plant = Callable[[LogDirectory], None]
Expected = tuple[str, str, str, int | None]
FIRST, SECOND = f"{0:020}", f"{8:020}"
NEWEST = f"{15:020}.snapshot"

PLANTED: list[tuple[Expected, Plant]] = []


def planted(severity: str, code: str, file: str, position: int | None = None) -> Callable[[Plant], Plant]:
    """Register a fault with its expected finding: severity, code, end of the file's name, position."""

    def register(plant: Plant) -> Plant:
        PLANTED.append(((severity, code, file, position), plant))
        return plant

    return register


def found(directory: LogDirectory, level: str = "records") -> list[Finding]:
    return verify(LogDir(str(directory.root)), level=level).findings


def rows(findings: list[Finding]) -> list[Expected]:
    return [(each.severity, each.code, Path(each.file).name, each.position) for each in findings]
