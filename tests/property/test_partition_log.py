"""Random lives of a partition log against its model; and that the comparison finds what is planted."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.conftest import LONG
from tests.property.partition_log_machine import PartitionLogMachine

PartitionLogMachine.TestCase.settings = settings(
    max_examples=5000 if LONG else 120,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestPartitionLog = PartitionLogMachine.TestCase
