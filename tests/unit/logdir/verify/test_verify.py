"""verify: a planted fault provokes each code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.log_directory import LogDirectory
from tests.unit.logdir import faults_of_files, faults_of_logs
from tests.unit.logdir.faults import PLANTED, Expected, Plant, found, rows
from txnkafka.logdir.verify.findings import CODES

PLANTED_IN = (faults_of_logs, faults_of_files)  # imported to register their faults


def test_every_code_is_provoked() -> None:
    provoked = {code for (_, code, _, _), _ in PLANTED}
    # needs several directories: see test_verify_rules.py
    assert set(CODES) | {"bad-checkpoint"} == provoked | {"meta-properties-mismatch"}
    assert {plant.__module__ for _, plant in PLANTED} == {module.__name__ for module in PLANTED_IN}


@pytest.mark.parametrize(
    ("expected", "plant"), PLANTED, ids=[f"{expected[1]}-{plant.__name__}" for expected, plant in PLANTED]
)
def test_a_planted_fault(tmp_path: Path, expected: Expected, plant: Plant) -> None:
    directory = LogDirectory(tmp_path / "data")
    plant(directory)
    findings = found(directory)
    assert [row for row in rows(findings) if row[1] == expected[1]] == [expected]
    (finding,) = [each for each in findings if each.code == expected[1]]
    assert finding.message
    assert finding.remedy
    assert Path(finding.file).is_relative_to(directory.root)
