"""Somebody's log directory as files or tables that others read: exact, whatever crashes on the way."""

from __future__ import annotations

from txnkafka.export.options import ExportOptions
from txnkafka.export.run import ExportReport, LocalEngine, export
from txnkafka.export.unit import StagedUnit, UnitTask, stage_unit

__all__ = ["ExportOptions", "ExportReport", "LocalEngine", "StagedUnit", "UnitTask", "export", "stage_unit"]
