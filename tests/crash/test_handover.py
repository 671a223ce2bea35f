"""A hand-over that a power cut has interrupted is finished by the next one: no record is lost or shown
wrongly, whatever was left of the derived files."""

from __future__ import annotations

from functools import cache

import pytest

from tests.conftest import BRIEF, LONG
from tests.unit.broker.node import NOW
from tests.unit.handover.stories import COMMITTED_VALUES, contents, damaged, story
from txnkafka import LogDir
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import Owner
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.disk import Disk
from txnkafka.testing.memory_files import MemoryFiles

STATES, LEAST = (3_000, 400) if LONG else (40, 20) if BRIEF else (120, 60)
CLEAN = "/data/.kafka_cleanshutdown"


@cache
def disk_before(is_clean: bool) -> Disk:
    """A directory whose derived files all lie."""
    files = MemoryFiles()
    story(files)
    damaged(files)
    if not is_clean:
        files.remove(CLEAN)
    return files.disk()


def before(is_clean: bool) -> MemoryFiles:
    return MemoryFiles(base=disk_before(is_clean))


def believed(files: MemoryFiles) -> dict[str, bytes]:
    """The files of logs: a missing ``partition.metadata`` is written while the marker is there."""
    return {path: content for path, content in contents(files).items() if "partition.metadata" not in path}


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "killed"])
def test_a_power_cut(is_clean: bool) -> None:
    files = before(is_clean)
    assert hand_over(files, "/data", Owner.KAFKA, now_ms=NOW).is_ready
    count, lying = 0, believed(before(is_clean))
    for state in crash_states(files, limit=STATES):
        count += 1
        disk = MemoryFiles(base=state.disk)
        if is_clean and disk.exists(CLEAN) and believed(disk) != lying:  # Apache Kafka believes what it finds
            assert check(disk, "/data", Owner.KAFKA, now_ms=NOW).is_ready, state.name
        assert hand_over(disk, "/data", Owner.KAFKA, now_ms=NOW).is_ready, state.name
        assert check(disk, "/data", Owner.KAFKA, now_ms=NOW).is_ready, state.name
        view = LogDir("/data", file_system=disk).partition("t", 0)
        assert [record.value for record in view.records()] == COMMITTED_VALUES, state.name
    assert count >= LEAST
