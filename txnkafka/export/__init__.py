"""Exports log directories to files or tables, exactly once across crashes."""

from __future__ import annotations

from txnkafka.export.options import ExportOptions
from txnkafka.export.run import ExportReport, LocalEngine, export
from txnkafka.export.unit import StagedUnit, UnitTask, stage_unit

__all__ = ["ExportOptions", "ExportReport", "LocalEngine", "StagedUnit", "UnitTask", "export", "stage_unit"]
