"""The target for the producer table: any bytes as batches, checked, appended, replayed, in a snapshot.

What is replayed must come out as in the slow model.
"""

from __future__ import annotations

from tests.fuzz.engine import Target
from tests.fuzz.guard import guarded
from tests.fuzz.log_mutations import mutate_log
from tests.models.producer_state import ProducerStateManager
from txnkafka._core.producer_table import CLIENT, COORDINATOR, ProducerTable
from txnkafka._core.scan import scan
from txnkafka._core.validate import read_batch
from txnkafka.model import CompletedTxn

__all__ = ["PRODUCERS"]

BEFORE_ALL_TIME = -(2**63)  # a clock by which nobody is expired
CODES = {-1, 0, 2, 45, 46, 47, 48, 52, 87}


def check_producers(content: bytes) -> str:
    """Nothing raises, nothing is read behind the end, and a replay is that of the reader."""
    log = guarded(content)
    codes: set[int] = set()
    for origin in (CLIENT, COORDINATOR):
        table, found = one_by_one(log, origin)
        codes |= set(found)
        assert_sound(table)
    assert codes <= CODES
    replayed = ProducerTable()
    told, index, completed = ProducerTable(), scan(log), list[CompletedTxn]()
    replayed.replay(index, 0, completed)
    again = list[CompletedTxn]()
    told.replay_checked(index, 0, len(index), again, [])
    assert (told.entries(), again) == (replayed.entries(), completed)
    model = ProducerStateManager()
    for number in range(len(index)):
        model.update(index[number])
    assert replayed.entries() == model.rows()
    assert [each[:4] for each in completed] == [each[:4] for each in model.completed]
    assert_sound(replayed)
    for entry in replayed.entries():
        replayed.remember_older(index, entry.producer_id)
    outcome = "refused" if codes - {0, 46} else "accepted"
    return f"{outcome}: {sorted(codes)}, {len(replayed).bit_length()} bits of producers"


def one_by_one(log: memoryview, origin: int) -> tuple[ProducerTable, list[int]]:
    """All batches checked and appended: the table, and the code of each batch."""
    table, found = ProducerTable(), list[int]()
    for position in scan(log).position:
        before = table.entries()
        batch = read_batch(log[position:])
        checked = table.check(batch, origin, transaction_version=2)
        assert table.entries() == before
        found.append(46 if checked.is_duplicate else checked.code)
        if found[-1] == 0:
            table.append(batch)
    return table, found


def assert_sound(table: ProducerTable) -> None:
    """Counts and lists agree, and a snapshot brings everything back."""
    entries, opened = table.entries(), table.open_transactions()
    first_offsets = [each.current_txn_first_offset for each in opened]
    assert first_offsets == sorted(first_offsets)
    assert sorted(opened) == [each for each in entries if each.has_open_transaction]
    assert len(entries) == len(table)
    if all(each.producer_epoch >= -1 for each in entries):  # else no snapshot says so
        table.load(table.snapshot(), now_ms=BEFORE_ALL_TIME, expiration_ms=1)
        assert table.entries() == entries
    table.evict(1)
    assert len(table) <= 1 + len(opened)


PRODUCERS = Target("producers", check_producers, mutate_log, iterations=1500)
