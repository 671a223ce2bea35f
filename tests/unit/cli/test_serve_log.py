"""What ``txnkafka serve`` logs when stderr cannot be written."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from txnkafka.cli.output import Messages
from txnkafka.cli.serve_log import logging_to

LOG = logging.getLogger("txnkafka.server")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_server_goes_on_without_its_log_and_logs_again_when_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log_format: str
) -> None:
    """An exception in the middle of a flush or of a request would be one of the broker."""
    path = tmp_path / "log"
    stderr = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")
    monkeypatch.setattr(sys, "stderr", stderr)
    with logging_to(Messages(), log_format):
        LOG.warning("the disk is full")
        with path.open("w") as file:
            os.dup2(file.fileno(), stderr.fileno())
        LOG.warning("there is room")
        stderr.flush()
        assert [each for each in ("full", "room") if each in path.read_text()] == ["room"]
        stderr.close()
        LOG.warning("stderr is closed")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_line_of_the_log_has_an_end(log_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to(Messages(), log_format):
        LOG.warning("no topic %s", "x" * 10_000_000)
    shown = capsys.readouterr().err
    assert "(10,000,009 characters)" in shown
    assert len(shown) < 30_000
