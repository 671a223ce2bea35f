"""The remedy of a finding does not contradict its message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.models.log_directory import LogDirectory
from txnkafka.config import LogConfig
from txnkafka.env import LocalFileSystem
from txnkafka.env.overlay import OverlayFiles
from txnkafka.logdir import Finding, LogDir
from txnkafka.logdir.verify import verify
from txnkafka.logdir.verify.findings import CODES, REMEDIES, Findings
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.recovery.log_loader import Repair

SEVERITIES = ("error", "warning", "note")


@pytest.mark.parametrize("code", CODES)
def test_no_error_needs_nothing_to_be_done(code: str) -> None:
    usual, remedy = CODES[code]
    for severity in SEVERITIES:
        said = REMEDIES.get((code, severity), remedy if severity == usual else "")
        assert not (severity == "error" and said.startswith("nothing to do")), (code, severity)


def test_a_remedy_is_that_of_the_severity_found() -> None:
    findings = Findings()
    for severity in (None, "error"):
        findings.add("missing-snapshot", "8.snapshot", "it is not there", severity=severity)
    usual, error = findings.found
    assert (usual.severity, error.severity) == ("note", "error")
    assert usual.remedy.startswith("nothing to do")
    assert error.remedy.startswith("run 'txnkafka repair' before the broker starts")


def test_no_remedy_describes_by_hand_what_repair_does() -> None:
    remedies = {code: text for code, (_, text) in CODES.items()} | REMEDIES
    by_hand = re.compile(r"\.kafka_cleanshutdown|recovery-point-")
    assert not [key for key, text in remedies.items() if by_hand.search(text)]
    repaired = {key for key, text in remedies.items() if "txnkafka repair" in text}
    assert {"missing-txnindex", "bad-index", ("missing-snapshot", "error")} <= repaired


def tail(root: Path, content: bytes, *, clean: bool, recovery_point: int = 0) -> list[Finding]:
    """Return what verify says of a tail, and what readers say."""
    directory = LogDirectory(root).write()
    marker = root / ".kafka_cleanshutdown"
    if clean:
        marker.write_bytes(b'{"version":0,"brokerEpoch":1}')
    else:
        marker.unlink(missing_ok=True)
        name = directory.partition.name.replace("-", " ")
        (root / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{name} {recovery_point}\n")
    log = directory.file(8)
    log.write_bytes(log.read_bytes() + content)
    log_dir = LogDir(root)
    (view,) = log_dir.partitions()
    each_found = verify(log_dir).findings, view.findings
    return [next(each for each in found if each.code.endswith("-tail")) for found in each_found]


@pytest.mark.parametrize("content", [bytes(300), b"\0" * 7, b"\xff" * 100])
def test_what_to_do_about_a_tail_depends_on_how_the_broker_stopped(tmp_path: Path, content: bytes) -> None:
    for clean in tail(tmp_path / "clean", content, clean=True):
        assert clean.severity == "error"
        assert clean.remedy.startswith("run 'txnkafka repair' before the broker starts")
    for killed in tail(tmp_path / "killed", content, clean=False, recovery_point=9):
        assert killed.severity == "warning"
        assert killed.remedy.startswith("nothing to do if the broker was killed")


def test_a_tail_below_the_recovery_point_is_not_cut_off_by_repair(tmp_path: Path) -> None:
    for below in tail(tmp_path / "data", b"\xff" * 100, clean=False, recovery_point=20):
        assert below.remedy.startswith("restore the end of the log")
        assert "'txnkafka repair' and 'txnkafka serve' refuse the partition" in below.remedy
    files, path = OverlayFiles(LocalFileSystem()), str(tmp_path / "data")
    data = DataDirectory(files, path, lambda _: LogConfig(), now_ms=0, repair=Repair())
    assert len(data.refused) == 1
    data.close()
