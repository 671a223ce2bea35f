"""The log file of a closed log truncated at every byte: recovery keeps all whole batches, and verify finds
nothing."""

from __future__ import annotations

import pytest

from tests.unit.storage.logs import DIRECTORY, NOW, append, content, end, opened
from txnkafka import LogDir, TopicPartition
from txnkafka._core.scan import scan
from txnkafka.logdir.verify import verify
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.memory_files import MemoryFiles

LOG = "00000000000000000000.log"


def written(interval: int) -> PartitionLog:
    """Return a log of one segment: two transactions, one of them aborted, increasing timestamps, a later
    leader."""
    log = opened(segment_bytes=10_000, index_interval_bytes=interval)
    append(log, NOW, producer_id=1, transactional=True)
    append(log, NOW + 1, producer_id=2, transactional=True)
    end(log, 1, commit=False)
    append(log, NOW + 3, producer_id=3)
    append(log, NOW + 4, leader_epoch=2)
    end(log, 2, commit=True, leader_epoch=2)
    append(log, NOW + 9, producer_id=3, sequence=1, leader_epoch=2)
    log.close()
    return log


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("interval", [0, 150, 4096])
def test_a_log_cut_at_every_byte(interval: int, clean: bool) -> None:
    log = written(interval)
    assert isinstance(log.files, MemoryFiles)
    disk, whole = log.files.disk(), content(log.files)[LOG]
    for size in range(len(whole)):
        files = MemoryFiles(base=disk)
        file = files.open_to_write(f"{DIRECTORY}/{LOG}")
        file.truncate(size)
        file.close()
        again = open_log(files, DIRECTORY, TopicPartition("t", 0), log.config, Start(clean), now_ms=NOW).log
        again.close()
        left = scan(whole[:size])
        assert again.log_end_offset == (left.last_offset[-1] + 1 if len(left) else 0)
        assert content(files)[LOG] == whole[: left.end_position]
        report = verify(LogDir("/data", file_system=files))
        assert [str(each) for each in report.findings] == [], size
