"""The server is killed again and again under transactional clients; TXNKAFKA_KILLS says how often, and
TXNKAFKA_SEED when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.server.client_commands import ConfluentClient
from tests.server.client_process import kafka_python
from tests.server.kills import IMPATIENT, kill_under_load
from tests.server.transaction_load import Writing

KILLS = int(os.environ.get("TXNKAFKA_KILLS", "200" if LONG else "8"))
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))


def test_nothing_acknowledged_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clients = {"librdkafka": Writing(ConfluentClient(3.0))}
    if LONG:
        clients["kafka-python"] = Writing(kafka_python(tmp_path / "python.log"), IMPATIENT)
    report = kill_under_load(clients, tmp_path / "data", kills=KILLS, seed=SEED)
    with capsys.disabled():
        print(f"\n{report}")
