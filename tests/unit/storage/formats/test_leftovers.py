"""Files that a crash left half done, classified by name alone."""

from __future__ import annotations

from txnkafka.storage.formats.layout import SegmentFile
from txnkafka.storage.formats.leftovers import is_replaced, leftovers, replaced_offsets


def test_useless_files_and_swaps() -> None:
    current = SegmentFile(0, "log", "")
    deleted, cleaned = SegmentFile(0, "log", ".deleted"), SegmentFile(8, "log", ".cleaned")
    below, at = SegmentFile(4, "log", ".swap"), SegmentFile(8, "index", ".swap")
    assert leftovers([current, deleted, below, at]) == ([deleted], [below, at])
    assert leftovers([current, deleted, below, at, cleaned]) == ([deleted, at, cleaned], [below])
    assert leftovers([current]) == ([], [])


def test_what_a_swap_replaces() -> None:
    assert list(replaced_offsets({})) == []
    assert replaced_offsets({4: 9}) == range(4, 9)
    assert replaced_offsets({4: 6, 6: 12}) == range(4, 12)
    assert replaced_offsets({4: 4}) == range(4, 5)  # one without batches replaces its own segment


def test_the_snapshot_at_the_start_is_not_replaced() -> None:
    """It has the state in front of the swapped segments."""
    replaced = replaced_offsets({4: 9})
    assert [offset for offset in range(3, 11) if is_replaced(offset, "log", replaced)] == [4, 5, 6, 7, 8]
    assert [offset for offset in range(3, 11) if is_replaced(offset, "snapshot", replaced)] == [5, 6, 7, 8]
    assert not is_replaced(0, "log", replaced_offsets({}))
