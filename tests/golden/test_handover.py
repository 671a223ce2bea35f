"""The directories of real brokers: intact ones are ready as they are, broken ones become sound, or are
refused.

They have no metadata log, which ``txnkafka serve`` does not need; what Apache Kafka says about a directory
that was handed over is in ``tests/conformance/test_kafka_starts.py``.
"""

from __future__ import annotations

import pytest

from tests.golden.cases import Case, cases
from txnkafka import LogDir, LogDirError
from txnkafka.env import LocalDataFiles
from txnkafka.env.overlay import OverlayFiles
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import Owner
from txnkafka.logdir.verify import verify

NOW = 1_900_000_000_000
NOT_OF_A_BROKER = {"clean_no_meta_properties", "clean_other_cluster", "kafka_2_8", "legacy"}
REFUSED = {
    "clean_flip_last_payload", "clean_missing_segment", "clean_torn_tail", "crash_flip_old_payload",
}  # fmt: skip
SKIPPED_MARKERS = "kafka_4_4_no_markers"
SKIPPED = ["__consumer_offsets-0", "__consumer_offsets-0", "orders-0", "orders-0", "orders-1", "orders-2"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_directory(case: Case) -> None:
    files, path = OverlayFiles(LocalDataFiles()), str(case.logs)
    try:
        planned = check(files, path, Owner.TXNKAFKA, now_ms=NOW)
    except LogDirError:
        assert case.name in NOT_OF_A_BROKER
        return
    assert planned.is_possible == (case.name not in REFUSED)
    done = hand_over(files, path, Owner.TXNKAFKA, now_ms=NOW)
    assert done.is_ready == planned.is_possible
    if case.damage is None and planned.was_clean:
        markers = [] if case.name != SKIPPED_MARKERS else SKIPPED
        assert [step.partition for step in planned.steps] == markers
        assert [step.partition for step in done.steps] == markers
    if done.is_ready:
        assert check(files, path, Owner.TXNKAFKA, now_ms=NOW).is_ready
        found = verify(LogDir(path, file_system=files)).findings
        assert [finding for finding in found if finding.severity == "error"] == []
