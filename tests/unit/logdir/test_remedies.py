"""The remedy of a finding does not contradict its message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.models.log_directory import LogDirectory
from txnkafka.logdir import Finding, LogDir
from txnkafka.logdir.verify import verify
from txnkafka.logdir.verify.findings import CODES, REMEDIES, Findings

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


def tail(root: Path, content: bytes, *, clean: bool) -> Finding:
    directory = LogDirectory(root).write()
    marker = root / ".kafka_cleanshutdown"
    if clean:
        marker.write_bytes(b'{"version":0,"brokerEpoch":1}')
    else:
        marker.unlink(missing_ok=True)
        (root / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    log = directory.file(8)
    log.write_bytes(log.read_bytes() + content)
    found = verify(LogDir(root)).findings
    return next(each for each in found if each.code.endswith("-tail"))


@pytest.mark.parametrize("content", [bytes(300), b"\0" * 7, b"\xff" * 100])
def test_what_to_do_about_a_tail_depends_on_how_the_broker_stopped(tmp_path: Path, content: bytes) -> None:
    clean = tail(tmp_path / "clean", content, clean=True)
    assert clean.severity == "error"
    assert clean.remedy.startswith("run 'txnkafka repair' before the broker starts")
    killed = tail(tmp_path / "killed", content, clean=False)
    assert killed.severity == "warning"
    assert killed.remedy.startswith("nothing to do if the broker was killed")
