"""``txnkafka dump``: every kind of file, every format, damage, and unknown values."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from tests.models.builder import Batch, PlainRecord, control_batch, legacy_entry, legacy_wrapper
from tests.unit.cli.conftest import FIRST_SEGMENT, TIME, Run

Row = dict[str, Any]
Dump = Callable[..., list[Row]]
NAME = "00000000000000000100"


@pytest.fixture
def dumped(run: Run, tmp_path: Path) -> Dump:
    """Return the rows of a file with this content, without its path; checks that findings and exit status
    agree."""

    def dump(name: str, content: bytes, *options: str) -> list[Row]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        answer = run("dump", path, "--format", "jsonl", *options)
        rows = [json.loads(line) for line in answer.lines]
        assert all(row.pop("file") == str(path) for row in rows)
        assert answer.stderr == ""
        assert answer.status == any(row["type"] == "finding" for row in rows)
        return rows

    return dump


def test_a_batch_has_all_the_fields_of_its_header(dumped: Dump) -> None:
    content = Batch(
        records=[PlainRecord(b"k", b"v", TIME), PlainRecord(b"k", b"v", TIME + 1)],
        base_offset=100,
        partition_leader_epoch=3,
        codec=4,
        transactional=True,
        delete_horizon=TIME - 5,
        producer_id=7,
        producer_epoch=2,
        base_sequence=2**31 - 1,
    ).encode()
    (row,) = dumped(f"{NAME}.log", content)
    assert row == {
        "type": "batch",
        "position": 0,
        "size": len(content),
        "base_offset": 100,
        "last_offset": 101,
        "count": 2,
        "base_sequence": 2**31 - 1,
        "last_sequence": 0,
        "producer_id": 7,
        "producer_epoch": 2,
        "partition_leader_epoch": 3,
        "is_transactional": True,
        "is_control": False,
        "delete_horizon_ms": TIME - 5,
        "timestamp_type": "CreateTime",
        "max_timestamp": TIME + 1,
        "magic": 2,
        "compression": "zstd",
        "crc": crc32c(content[21:]),
        "is_valid": True,
        "control_type": None,
        "coordinator_epoch": None,
    }


def test_records_stand_behind_their_batch(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-0" / FIRST_SEGMENT
    rows = [json.loads(line) for line in run("dump", path, "--records", "--format", "jsonl").lines]
    assert [row["type"] for row in rows[:6]] == ["batch", "record", "record", "batch", "record", "batch"]
    assert {**rows[1], "file": None} == {
        "type": "record",
        "file": None,
        "offset": 0,
        "timestamp": TIME,
        "timestamp_type": "CreateTime",
        "key_size": 1,
        "value_size": 5,
        "sequence": -1,
        "headers": [["trace", "1"], ["trace", None], ["raw", {"base64": "/w=="}]],
        "key": "k",
        "value": "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    }
    assert (rows[2]["key"], rows[2]["key_size"], rows[2]["value"], rows[2]["value_size"]) == ("", 0, None, -1)
    marker = rows[6]
    assert (marker["type"], marker["control_type"], marker["value"]) == (
        "control_record", "COMMIT", {"coordinator_epoch": 0}
    )  # fmt: skip
    assert (rows[5]["control_type"], rows[5]["coordinator_epoch"]) == ("COMMIT", 0)


def test_base64_of_everything(dumped: Dump) -> None:
    content = Batch(records=[PlainRecord(b"k", b"v", headers=[(b"h", b"v")])]).encode()
    _, row = dumped(f"{NAME}.log", content, "--records", "--encoding", "base64")
    assert (row["key"], row["value"], row["headers"]) == ("aw==", "dg==", [["h", "dg=="]])


def test_legacy_wrappers_are_known_by_their_last_offset(dumped: Dump) -> None:
    plain = legacy_entry(100, b"k", b"v", magic=0)
    inner = [legacy_entry(i, None, b"v", timestamp=TIME) for i in range(2)]
    wrapper = legacy_wrapper(inner, 102, codec=1, timestamp=TIME)
    first, second = dumped(f"{NAME}.log", plain + wrapper)
    assert (first["base_offset"], first["last_offset"], first["count"]) == (100, 100, 1)
    assert (first["timestamp_type"], first["max_timestamp"], first["producer_id"]) == (
        "NoTimestampType",
        -1,
        None,
    )
    assert (second["base_offset"], second["last_offset"], second["count"]) == (None, 102, None)
    assert (second["compression"], second["magic"], second["is_valid"]) == ("gzip", 1, True)
    rows = dumped(f"{NAME}.log", plain + wrapper, "--records")
    assert [row["offset"] for row in rows if row["type"] == "record"] == [100, 101, 102]
    assert {row["sequence"] for row in rows if row["type"] == "record"} == {None}


def test_a_wrong_crc_stops_nothing(dumped: Dump) -> None:
    good = Batch(records=[PlainRecord(None, b"v")], base_offset=101).encode()
    bad = Batch(records=[PlainRecord(None, b"v")], base_offset=100, crc=1).encode()
    legacy = legacy_entry(102, None, b"v", crc=1)
    rows = dumped(f"{NAME}.log", bad + good + legacy, "--records")
    assert [row["type"] for row in rows] == ["batch", "finding", "batch", "record", "batch", "finding"]
    assert [row["is_valid"] for row in rows if row["type"] == "batch"] == [False, True, False]
    assert rows[1] == {
        "type": "finding",
        "position": 0,
        "severity": "error",
        "code": "corrupt-batch",
        "message": "the CRC of the batch does not match its bytes",
        "remedy": "restore the file from a replica or a backup if these records are needed",
        "cause": "",
    }


def test_records_that_cannot_be_read_are_a_finding(dumped: Dump) -> None:
    rows = dumped(f"{NAME}.log", Batch(payload=b"\xff", count=1, base_offset=100).encode(), "--records")
    assert [row["type"] for row in rows] == ["batch", "finding"]
    assert (rows[0]["is_valid"], rows[1]["code"]) == (True, "corrupt-batch")


def test_an_unknown_magic_is_printed_as_a_number(dumped: Dump) -> None:
    rows = dumped(f"{NAME}.log", Batch(records=[PlainRecord(None, b"v")], magic=9).encode(), "--records")
    assert [(row["type"], row.get("magic"), row.get("is_valid"), row.get("code")) for row in rows] == [
        ("batch", 9, True, None),
        ("finding", None, None, "unknown-magic"),
    ]


def test_an_unknown_codec_is_printed_as_a_number(dumped: Dump) -> None:
    rows = dumped(f"{NAME}.log", Batch(payload=b"", count=0, more_attributes=6).encode())
    assert rows[0]["compression"] == "UNKNOWN(6)"


@pytest.mark.parametrize(
    ("tail", "code"),
    [(b"\0" * 30, "zero-tail"), (b"\0" * 7 + b"\1", "torn-tail"), (b"\0\0\0\1" * 9, "garbage-tail")],
)
def test_a_tail_that_is_no_batch_is_a_warning(dumped: Dump, tail: bytes, code: str) -> None:
    batch = Batch(records=[PlainRecord(None, b"v")]).encode()
    first, found = dumped(f"{NAME}.log", batch + tail)
    assert first["type"] == "batch"
    assert (found["position"], found["severity"], found["code"]) == (len(batch), "warning", code)
    assert found["message"].startswith("no more batches can be read: ")


def test_unknown_control_records_are_shown_in_hex(dumped: Dump) -> None:
    unknown = control_batch(struct.pack(">hh", 0, 42), b"\0\5abc")
    batch, row = dumped(f"{NAME}.log", unknown, "--records")
    assert batch["control_type"] == row["control_type"] == "UNKNOWN(42)"
    assert (row["value_version"], row["raw_value"]) == (5, "0005616263")
    _, row = dumped(f"{NAME}.log", control_batch(b"\0", b"\1"), "--records")
    assert (row["control_type"], row["raw_key"], row["raw_value"]) == (None, "00", "01")
    assert row["error"] == "the key is too short for a type"


def transaction_state() -> bytes:
    key = struct.pack(">hh", 0, 2) + b"id"
    value = struct.pack(">hqhibiqq", 0, 7, 3, 60_000, 0, -1, TIME, -1)
    return Batch(records=[PlainRecord(key, value), PlainRecord(b"\0\x63", b"\0\7x")]).encode()


def test_logs_of_coordinators_are_decoded_by_the_name_of_their_directory(dumped: Dump) -> None:
    _, known, unknown = dumped(f"__transaction_state-0/{NAME}.log", transaction_state(), "--records")
    assert known["decoded"]["key"] == {"transactional_id": "id"}
    assert known["decoded"]["value"]["producer_id"] == 7
    assert "key" not in known
    assert unknown["decoded"] == {
        "type": "unknown",
        "key_version": 99,
        "key": None,
        "value_version": 7,
        "value": None,
        "error": "key type 99 is not known",
        "raw_key": "0063",
        "raw_value": "000778",
    }


def test_a_decoder_can_be_named(dumped: Dump) -> None:
    options = ("--records", "--decoder", "transaction-log")
    assert dumped(f"{NAME}.log", transaction_state(), *options)[1]["decoded"]["key_version"] == 0
    rows = dumped(f"__transaction_state-0/{NAME}.log", transaction_state(), "--records", "--decoder", "none")
    assert "decoded" not in rows[1]


INDEX_FILES = [
    (f"{NAME}.index", struct.pack(">iiii", 7, 50, 9, 80) + bytes(16), [
        {"type": "offset_index_entry", "offset": 107, "position": 50},
        {"type": "offset_index_entry", "offset": 109, "position": 80},
    ]),
    (f"{NAME}.timeindex", struct.pack(">qi", TIME, 3), [
        {"type": "time_index_entry", "timestamp": TIME, "offset": 103},
    ]),
    (f"{NAME}.txnindex", struct.pack(">hqqqq", 0, 7, 100, 110, 105), [
        {"type": "aborted_txn", "version": 0, "producer_id": 7, "first_offset": 100, "last_offset": 110,
         "last_stable_offset": 105},
    ]),
]  # fmt: skip

TEXT_FILES = [
    ("replication-offset-checkpoint", b"0\n1\norders 3 17\n", [
        {"type": "checkpoint_entry", "topic": "orders", "partition": 3, "offset": 17}]),
    ("recovery-point-offset-checkpoint", b"0\n0\n", []),
    ("log-start-offset-checkpoint", b"", []),
    ("cleaner-offset-checkpoint", b"0\n0\n", []),
    ("leader-epoch-checkpoint", b"0\n2\n0 0\n5 17\n", [
        {"type": "leader_epoch_entry", "epoch": 0, "start_offset": 0},
        {"type": "leader_epoch_entry", "epoch": 5, "start_offset": 17}]),
    ("partition.metadata", b"version: 0\ntopic_id: LO2dyRT9TU2kZpbmI5Tv5Q", [
        {"type": "partition_metadata", "version": 0, "topic_id": "LO2dyRT9TU2kZpbmI5Tv5Q"}]),
    ("meta.properties", b"version=1\ncluster.id=c\nnode.id=4\n", [
        {"type": "meta_properties", "version": 1, "cluster_id": "c", "node_id": 4, "directory_id": None}]),
    (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":15}', [
        {"type": "clean_shutdown", "version": 0, "broker_epoch": 15}]),
    ("quorum-state", b'{"leaderId":1,"votedDirectoryId":"A","data_version":1,"voters":[{"voterId":1}]}', [
        {"type": "quorum_state", "leader_id": 1, "voted_directory_id": "A", "data_version": 1,
         "voters": [{"voterId": 1}]}]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "rows"), INDEX_FILES + TEXT_FILES)
@pytest.mark.parametrize("suffix", ["", ".deleted", ".cleaned", ".swap", ".tmp"])
def test_files_by_name(dumped: Dump, name: str, content: bytes, rows: list[Row], suffix: str) -> None:
    assert dumped(name + suffix, content) == rows


def snapshot(*producers: bytes) -> bytes:
    body = struct.pack(">i", len(producers)) + b"".join(producers)
    return struct.pack(">hI", 1, crc32c(body)) + body


def test_producers_of_a_snapshot(dumped: Dump) -> None:
    batch = struct.pack(">qhiqiqiq", 7, 2, 9, 50, 3, TIME, -1, 47)
    marker = struct.pack(">qhiqiqiq", 8, 1, -1, -1, 0, TIME, 4, -1)
    assert dumped(f"{NAME}.snapshot", snapshot(batch, marker)) == [
        {"type": "producer", "producer_id": 7, "producer_epoch": 2, "coordinator_epoch": -1,
         "current_txn_first_offset": 47, "last_timestamp": TIME, "first_sequence": 6, "last_sequence": 9,
         "last_offset": 50, "offset_delta": 3},
        {"type": "producer", "producer_id": 8, "producer_epoch": 1, "coordinator_epoch": 4,
         "current_txn_first_offset": None, "last_timestamp": TIME, "first_sequence": None,
         "last_sequence": None, "last_offset": None, "offset_delta": None},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        (f"{NAME}.index", struct.pack(">iiii", 9, 80, 7, 50), "bad-index"),
        (f"{NAME}.index", b"\0\0\1", "bad-index"),
        (f"{NAME}.timeindex", struct.pack(">qiqi", TIME, 3, TIME - 1, 4), "bad-timeindex"),
        (f"{NAME}.txnindex", b"\4" + bytes(33), "bad-txnindex"),
        (f"{NAME}.snapshot", snapshot()[:-1], "bad-snapshot"),
        ("leader-epoch-checkpoint", b"1\n0\n", "bad-leader-epoch-checkpoint"),
        ("partition.metadata", b"", "bad-checkpoint"),
        ("replication-offset-checkpoint", b"0\n1\n", "bad-checkpoint"),
        ("meta.properties", b"version=9\n", "bad-meta-properties"),
        (".kafka_cleanshutdown", b"[", "bad-clean-shutdown-file"),
        ("quorum-state", b"[]", "bad-quorum-state"),
        ("quorum-state", b"[" * 100_000, "bad-quorum-state"),
    ],
)
def test_what_is_wrong_with_a_file_is_a_finding(dumped: Dump, name: str, content: bytes, code: str) -> None:
    found = [row for row in dumped(name, content) if row["type"] == "finding"]
    assert found
    assert {row["code"] for row in found} == {code}
    assert all(row["message"] and row["remedy"] for row in found)


def test_unreadable_files_are_reported_and_the_others_dumped(run: Run, log_dir: Path) -> None:
    fifo = log_dir / f"{NAME}.log"
    os.mkfifo(fifo)
    for name in ("notes.md", "x.index"):
        (log_dir / name).write_bytes(b"")
    names = ["gone.log", "gone.md", "orders-0", "notes.md", "x.index", fifo.name, "meta.properties"]
    answer = run("dump", *(log_dir / name for name in names))
    assert answer.status == 2
    assert answer.lines == [
        f"{log_dir}/meta.properties:",
        'meta_properties  version=1  cluster_id="c"  node_id=1',
    ]
    *gone, directory, unknown, unnamed, not_regular = answer.stderr.splitlines()
    assert gone == [
        f"txnkafka: error: cannot read {log_dir}/{name}: No such file or directory" for name in names[:2]
    ]
    assert directory == (
        f"txnkafka: error: {log_dir}/orders-0 is a directory; "
        f"dump takes files, as in {log_dir}/orders-0/*.log"
    )
    assert unknown.startswith(
        f"txnkafka: error: {log_dir}/notes.md is not a file of Kafka's that dump recognizes"
    )
    assert unknown.endswith("quorum-state")
    assert unnamed == (
        f"txnkafka: error: {log_dir}/x.index: "
        "the name of an index must be a base offset with 20 digits and .index"
    )
    assert not_regular == f"txnkafka: error: cannot read {fifo}: not a regular file"


def test_a_log_directory_is_no_file_and_its_segments_are_suggested(run: Run, log_dir: Path) -> None:
    assert run("dump", log_dir).stderr.endswith(f"dump takes files, as in {log_dir}/*/*.log\n")


def test_lines_for_people(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-1" / FIRST_SEGMENT
    heading, batch, row = run("dump", path, "--records").lines
    assert heading == f"{path}:"
    assert batch.startswith(
        "batch  position=0  size=70  base_offset=0  last_offset=0  count=1  partition_leader_epoch=0"
    )
    assert "max_timestamp=1700000000000 (2023-11-14T22:13:20.000Z)" in batch
    assert "producer_id" not in batch
    assert row.startswith("| record  offset=0  timestamp=1700000000000 (2023-11-14T22:13:20.000Z)")
    assert row.endswith('key=null  value="AP8="  value_encoding="base64"')
    _, wide = run("dump", path, "--format", "wide").lines
    assert "producer_id=-1" in wide
    assert "delete_horizon_ms=null" in wide


def test_one_document(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-0" / FIRST_SEGMENT
    document = json.loads(run("dump", path, path, "--format", "json").stdout)
    assert [row["type"] for row in document] == ["batch"] * 12
    empty = log_dir / "log-start-offset-checkpoint"
    empty.write_bytes(b"")
    assert json.loads(run("dump", empty, "--format", "json").stdout) == []
