"""Offsets that readers see while transactions are open, and the aborted transactions in their answers."""

from __future__ import annotations

from tests.unit.storage.client import Log, data
from tests.unit.storage.reads import read

BATCH = len(data())  # size of a batch of two records


def test_ul_39_first_txn_append_is_unstable_until_commit_and_high_watermark() -> None:
    log = Log()
    log.transactional(7, 0)
    assert log.log.producers.first_unstable_offset == 0
    log.log.offsets.advance_high_watermark(2)
    assert log.log.last_stable_offset == 0
    log.end(7)
    assert log.log.last_stable_offset == 0
    log.log.offsets.advance_high_watermark(2)
    assert log.log.last_stable_offset == 0
    log.log.offsets.advance_high_watermark(3)
    assert log.log.last_stable_offset == 3
    assert log.log.producers.first_unstable_offset is None


def test_ul_40_only_transactions_hold_the_last_stable_offset() -> None:
    log = Log()
    log.plain()
    log.idempotent(8, 0)
    log.transactional(7, 0)
    log.idempotent(8, 2)
    log.log.flush()
    assert (log.log.last_stable_offset, log.log.high_watermark) == (4, 8)


def test_ul_42_the_high_watermark_stays_within_the_log() -> None:
    log = Log()
    log.plain()
    log.log.offsets.advance_high_watermark(100)
    assert log.log.high_watermark == 2
    log.log.offsets.advance_high_watermark(1)
    assert log.log.high_watermark == 2


def test_ul_45_aborted_transactions_in_the_order_of_their_markers() -> None:
    log = Log()
    log.transactional(7, 0)  # 0, 1
    log.transactional(8, 0)  # 2, 3
    log.transactional(9, 0)  # 4, 5
    log.end(8, commit=False)  # 6
    log.end(9, commit=True)  # 7
    log.end(7, commit=False)  # 8
    expected = [(0, 8, 2, 6, 0), (0, 7, 0, 8, 9)]
    assert log.log.active.txn_index is not None
    assert log.log.active.txn_index.entries == expected
    log.restart(clean=False)  # as a replica sees them
    assert log.log.active.txn_index.entries == expected


def test_ul_46_a_transaction_in_several_segments_has_one_entry() -> None:
    log = Log(segment_bytes=len(data(7, 0)))
    for number in range(3):
        log.transactional(7, 2 * number)
    log.end(7, commit=False)
    log.log.flush()
    assert log.bases == [0, 2, 4, 6]
    assert [name for name in log.names() if name.endswith("txnindex")] == []
    for restarted in (False, True):
        if restarted:
            log.restart()
            assert [name for name in log.names() if name.endswith("txnindex")] == [
                "00000000000000000006.txnindex"
            ]
        for offset in (0, 2, 5):
            found = read(log.log, offset, max_bytes=1)
            assert found.aborted_transactions == [(0, 7, 0, 6, 7)]
