"""The transaction index file of a segment: appended to, truncated and searched."""

from __future__ import annotations

import pytest

from txnkafka.model import CompletedTxn
from txnkafka.storage.formats.txn_index import AbortedTxn, parse_txn_index
from txnkafka.storage.log.txn_index_file import TxnIndexFile
from txnkafka.testing.memory_files import MemoryFiles

ENTRIES = [(1, 0, 10, 11), (2, 5, 12, 11), (3, 11, 20, 21)]  # producer id, first and last offset, LSO


def index() -> TxnIndexFile:
    found = TxnIndexFile(0)
    for entry in ENTRIES:
        found.append(*entry)
    return found


def test_ti_76_an_entry_below_the_segment() -> None:
    with pytest.raises(ValueError, match="does not follow"):
        TxnIndexFile(20).append(1, 5, 19, 20)
    content = TxnIndexFile(0, [AbortedTxn(0, 1, 5, 19, 20)])
    files = MemoryFiles()
    content.replaces_file()
    content.save(files.create("/index"))
    (problem,) = parse_txn_index(files.read("/index", 100), 20)[1]
    assert "below the segment" in problem.text


@pytest.mark.parametrize("last", [20, 19, 0])
def test_ti_77_an_entry_that_does_not_follow(last: int) -> None:
    with pytest.raises(ValueError, match="does not follow"):
        index().append(4, 0, last, last + 1)


@pytest.mark.parametrize(
    ("begin", "end", "producers", "complete"),
    [
        (0, 1, [1], True),
        (0, 5, [1], True),
        (0, 6, [1, 2], True),
        (0, 11, [1, 2], True),
        (0, 12, [1, 2, 3], True),
        (11, 12, [2, 3], True),
        (13, 21, [3], True),
        (13, 22, [3], False),
        (21, 30, [], False),
    ],
)
def test_ti_78_entries_of_a_range(begin: int, end: int, producers: list[int], complete: bool) -> None:
    """Entries that overlap the range; an entry whose last stable offset is not below the end of the range
    completes the answer: no later segment matters."""
    found, is_complete = index().collect(begin, end)
    assert [entry.producer_id for entry in found] == [
        producer for producer, first, last, _ in ENTRIES if last >= begin and first < end
    ][: len(found)]
    assert {entry.producer_id for entry in found} <= set(producers)
    assert is_complete == complete


def test_ti_79_a_cut() -> None:
    for offset, count in ((21, 3), (20, 2), (13, 2), (12, 1), (10, 0), (0, 0)):
        found = index()
        found.keep_below(offset)
        assert len(found.entries) == count


def test_ti_80_a_file_that_is_empty_has_no_entries() -> None:
    assert parse_txn_index(b"", 0)[0] == []
    assert TxnIndexFile(0).is_saved


def test_ti_81_entries_have_34_bytes_and_version_0() -> None:
    files = MemoryFiles()
    file = files.create("/index")
    found = TxnIndexFile(0)
    found.append(300, 12, 16, 17)
    found.save(file)
    spec = "0000000000000000012c000000000000000c00000000000000100000000000000011"
    assert files.read("/index", 100).hex() == spec
    found.append(301, 17, 18, 19)
    found.keep_below(18)
    found.append(302, 17, 19, 20)
    found.save(file)
    assert files.read("/index", 100)[:34].hex() == spec
    assert file.size() == 68
    found.replaces_file()
    found.save(file)
    assert [tuple(e) for e in parse_txn_index(files.read("/index", 100), 0)[0]] == [
        (0, 300, 12, 16, 17), (0, 302, 17, 19, 20),
    ]  # fmt: skip


def test_committed_transactions_are_not_noted() -> None:
    found = TxnIndexFile(0)
    found.add([CompletedTxn(1, 0, 5, False, 6), CompletedTxn(2, 1, 7, True, 8)])
    assert [entry.producer_id for entry in found.entries] == [2]
