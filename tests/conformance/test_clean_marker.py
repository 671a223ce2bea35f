"""Kafka reads the marker of a clean stop, also the one in which ``repair`` has noted something."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conformance.kafka_log import OPTIONS, compiled
from txnkafka.storage.formats import CLEAN_SHUTDOWN_FILE
from txnkafka.storage.formats.checkpoint import format_clean_shutdown


def test_kafka_reads_every_marker(tmp_path: Path) -> None:
    written = {
        "of-a-broker": format_clean_shutdown(7),
        "repaired": format_clean_shutdown(8, True),
        "not-settled": format_clean_shutdown(9, False),
        "damaged": b"{",
    }
    for name, content in written.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / CLEAN_SHUTDOWN_FILE).write_bytes(content)
    directories = [str(tmp_path / name) for name in written]
    command = ["java", *OPTIONS, "-cp", compiled(), "CleanShutdown", *directories]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout.splitlines() == ["true 7", "true 8", "true 9", "true -1"]
