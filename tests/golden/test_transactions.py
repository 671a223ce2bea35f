"""Aborted transactions: those of the .txnindex files, and those that the broker sent with each fetch.

A broker sends too many rather than too few: it takes every entry of the .txnindex files that overlaps the
offsets up to the next entry of the offset index after the returned records. So ours must be among the
broker's, and the broker's others must have no records in the answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.golden.directories import Directory, each_answered, each_intact

Json = Any


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


def ours(directory: Directory, *bounds: int) -> set[Aborted]:
    found = directory.view().aborted_transactions(*bounds)
    return {Aborted(each.producer_id, each.first_offset, each.last_offset) for each in found}


def rows(directory: Directory, ending: str) -> list[dict[str, Json]]:
    dump = directory.case.dump(directory.partition)
    found = [table for name, table in dump.items() if name.endswith(ending) and table]
    return [dict(zip(table["columns"], row, strict=True)) for table in found for row in table["rows"]]


def indexed(directory: Directory) -> set[Aborted]:
    return {
        Aborted(row["producerId"], row["firstOffset"], row["lastOffset"])
        for row in rows(directory, ".txnindex")
    }


def batches_of(directory: Directory, transaction: Aborted, start: int, end: int) -> list[dict[str, Json]]:
    """Return the batches with records of a transaction in [start, end)."""
    return [
        batch
        for batch in rows(directory, ".log")
        if batch["producerId"] == transaction.producer_id
        and batch["isTransactional"]
        and not batch["isControl"]
        and batch["count"] > 0
        and transaction.first_offset <= batch["baseOffset"] < transaction.last_offset
        and batch["baseOffset"] < end
        and batch["lastOffset"] >= start
    ]


@each_intact
def test_the_whole_list_is_that_of_the_transaction_indexes(directory: Directory) -> None:
    """Skips entries whose records are all below the log start offset, or all compacted away."""
    facts = directory.case.facts(directory.partition)
    found, expected = ours(directory), indexed(directory)
    assert found <= expected
    for transaction in expected - found:
        assert not batches_of(directory, transaction, facts["log_start_offset"], facts["high_watermark"])


@each_answered
def test_the_list_of_each_fetch(directory: Directory) -> None:
    ends = {(each.producer_id, each.first_offset): each for each in indexed(directory)}
    whole = ours(directory)
    for fetch in directory.case.facts(directory.partition).get("fetch", []):
        if fetch.get("aborted_transactions") is None or "last_batch_last_offset" not in fetch:
            continue
        start, end = fetch["offset"], fetch["last_batch_last_offset"] + 1
        found = ours(directory, start, end)
        assert found <= {each for each in whole if each.first_offset < end and each.last_offset >= start}
        sent = {ends[each["producer_id"], each["first_offset"]] for each in fetch["aborted_transactions"]}
        assert found <= sent, (start, end)
        for transaction in sent - found:
            assert not batches_of(directory, transaction, start, end), (start, end)
