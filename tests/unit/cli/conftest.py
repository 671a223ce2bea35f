"""A small log directory, and the command line run on it.

``orders-0`` has two records without a transaction (offsets 0, 1), a committed transaction (2, marker 3), an
aborted one (4, marker 5) and an open one (6). ``orders-1`` has one record without a transaction that is no
text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.coordinator_log import (
    offset_commit_key,
    offset_commit_value,
    transaction_key,
    transaction_value,
)
from tests.unit.logdir.logs import batch, write_log
from txnkafka.cli.main import main

TIME = 1_700_000_000_000
FIRST_SEGMENT = "00000000000000000000.log"


class Answer(NamedTuple):
    """The result of a run of the command line."""

    status: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


Run = Callable[..., Answer]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_command(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as left:
            main([str(each) for each in arguments])
        captured = capsys.readouterr()
        return Answer(int(left.value.code or 0), captured.out, captured.err)

    return run_command


def record(key: bytes | None, value: bytes | None, seconds: int) -> PlainRecord:
    return PlainRecord(key, value, TIME + 1000 * seconds)


def transactional(base_offset: int, producer_id: int, value: bytes, seconds: int) -> bytes:
    return Batch(
        records=[record(None, value, seconds)],
        base_offset=base_offset,
        partition_leader_epoch=0,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    ).encode()


def marked(base_offset: int, producer_id: int, seconds: int) -> dict[str, int]:
    where = {"base_offset": base_offset, "partition_leader_epoch": 0, "timestamp": TIME + 1000 * seconds}
    return {**where, "producer_id": producer_id, "producer_epoch": 1}


def orders() -> list[bytes]:
    headers = [(b"trace", b"1"), (b"trace", None), (b"raw", b"\xff")]
    first = [
        PlainRecord(b"k", "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), TIME, headers),
        record(b"", None, 1),
    ]
    return [
        Batch(records=first, partition_leader_epoch=0, codec=1).encode(),
        transactional(2, 7, b"committed", 2),
        end_marker(1, **marked(3, 7, 3)),
        transactional(4, 8, b"aborted", 4),
        end_marker(0, **marked(5, 8, 5)),
        transactional(6, 9, b"open", 6),
    ]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    binary = Batch(records=[record(None, b"\x00\xff", 0)], partition_leader_epoch=0).encode()
    for name, content in (("orders-0", b"".join(orders())), ("orders-1", binary)):
        (folder / name).mkdir(parents=True)
        (folder / name / FIRST_SEGMENT).write_bytes(content)
    (folder / "orders-0" / "partition.metadata").write_bytes(b"version: 0\ntopic_id: LO2dyRT9TU2kZpbmI5Tv5Q")
    (folder / "meta.properties").write_bytes(b"version=1\ncluster.id=c\nnode.id=1\n")
    (folder / "replication-offset-checkpoint").write_bytes(b"0\n1\norders 0 7\n")
    return folder


START = 1_700_000_000_000
ONGOING, PREPARE_COMMIT, COMPLETE_ABORT = 1, 2, 5


def offset(group: str, topic: str, partition: int, value: int) -> PlainRecord:
    return PlainRecord(offset_commit_key(group, topic, partition), offset_commit_value(value))


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Write a-0 with 4 records and an open transaction of ``shop`` behind them (4, 5), which also commits an
    offset of ``copier``; ``billing`` has read up to it, ``late`` has not."""
    of = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    write_log(tmp_path, "a-0", {0: [batch(0, 4), batch(4, 2, **of), batch(6, 3)]})
    states = {
        "shop": transaction_value(
            7,
            state=ONGOING,
            topics={"a": [0], "__consumer_offsets": [0]},
            start_ms=START,
            update_ms=START + 7_000,
        ),
        "shop-2": transaction_value(8, state=COMPLETE_ABORT, topics={}, start_ms=START, update_ms=START),
        "idle": transaction_value(9, update_ms=START),
    }
    records = [PlainRecord(transaction_key(name), value) for name, value in states.items()]
    write_log(tmp_path, "__transaction_state-0", {0: [Batch(records=records).encode()]})
    offsets = [offset("billing", "a", 0, 4), offset("late", "a", 0, 1), offset("late", "gone", 3, 5)]
    pending = Batch(
        records=[offset("copier", "a", 0, 2)],
        base_offset=3,
        base_sequence=0,
        transactional=True,
        producer_id=7,
        producer_epoch=0,
    ).encode()
    write_log(tmp_path, "__consumer_offsets-0", {0: [Batch(records=offsets).encode(), pending]})
    return tmp_path
