"""``log start <= high watermark <= log end`` in every log, however it was loaded and truncated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.storage.logs import DIRECTORY, NOW, append, opened
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import cut_at_beginning, cut_at_end, whole_log
from txnkafka.storage.recovery.found_log import FoundLog
from txnkafka.storage.recovery.log_loader import Start, load_log


def test_a_log_is_made_of_what_was_loaded_unless_its_offsets_are_out_of_order() -> None:
    log = opened()
    append(log)
    log.close()
    found = FoundLog(log.files, DIRECTORY, log.topic_partition, log.config, NOW)
    loaded = load_log(found, Start(clean_shutdown=True))
    made = PartitionLog(log.files, DIRECTORY, log.topic_partition, log.config, loaded)
    assert (made.log_start_offset, made.high_watermark, made.log_end_offset) == (0, 1, 1)
    assert (made.recovery_point, list(made.repairs), list(made.segments)) == (1, [], list(loaded.segments))
    with pytest.raises(ValueError, match="log start 2, high watermark 1 and log end 1 are not in order"):
        PartitionLog(
            log.files, DIRECTORY, log.topic_partition, log.config, replace(loaded, log_start_offset=2)
        )


def test_a_cut_with_a_log_start_above_the_high_watermark_is_refused() -> None:
    log = opened()
    append(log)
    log.flush()
    append(log)
    with pytest.raises(ValueError, match="log start 2, high watermark 1 and log end 2 are not in order"):
        log.apply(whole_log(log, start_offset=2), NOW)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 1, 2)


def test_a_cut_says_what_is_left_and_changes_nothing() -> None:
    log = opened(segment_bytes=120)
    for epoch in range(4):
        append(log, leader_epoch=epoch)
    log.flush()
    before = log.files.list(DIRECTORY)
    cut = cut_at_end(log, 2)
    assert (cut.first, cut.last, cut.position, cut.log_start_offset, cut.log_end_offset) == (0, 3, 0, 0, 2)
    assert cut.epochs.entries == [(0, 0), (1, 1)]
    cut = cut_at_beginning(log, 3)
    assert (cut.first, cut.last, cut.log_start_offset, cut.log_end_offset) == (3, 4, 3, 4)
    assert cut.epochs.entries == [(3, 3)]
    assert (log.log_end_offset, log.epochs.latest, len(log.segments)) == (4, 3, 4)
    assert log.files.list(DIRECTORY) == before
