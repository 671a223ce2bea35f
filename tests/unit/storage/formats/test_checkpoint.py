"""Checkpoints, partition.metadata, the clean shutdown file, and topic ids."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.errors import CorruptFileError
from txnkafka.model import TopicPartition
from txnkafka.storage.formats import (
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_topic_id,
    topic_id_from_bytes,
    topic_id_to_bytes,
)


def test_offsets() -> None:
    found = parse_offset_checkpoint(b"0\n2\norders 0 17\n__consumer_offsets 49 9223372036854775807\n")
    assert found == {
        TopicPartition("orders", 0): 17,
        TopicPartition("__consumer_offsets", 49): 2**63 - 1,
    }


@pytest.mark.parametrize("data", [b"", b"0\n", b"0", b"0\n0\n", b"+0\r\n0\r\n"])
def test_no_offsets(data: bytes) -> None:
    assert parse_offset_checkpoint(data) == {}


@pytest.mark.parametrize("data", [b"0\r\n1\r\na  0\t5 \r\n", b"0\r1\ra 0 5", b"0\n2\na 0 4\na 0 5\n"])
def test_java_reads_these_too(data: bytes) -> None:
    assert parse_offset_checkpoint(data) == {TopicPartition("a", 0): 5}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"1\n1\na 0 5\n", 1), (b"x\n", 1), (b"\n", 1), (b" 0\n0\n", 1), (b"0\nx\n", 2), (b"0\n-1\n", 2),
        (b"0\n1\n", 2), (b"0\n1\na 0 5\nb 0 5\n", 2), (b"0\n2147483648\n", 2), (b"0\n1\na 0\n", 3),
        (b"0\n1\n a 0 5\n", 3), (b"0\n1\na b 0 5\n", 3), (b"0\n2\na 0 5\n\n", 4), (b"0\n1\na x 5\n", 3),
        (b"0\n1\na 0 1_0\n", 3), (b"0\n1\na 0 -1\n", 3), (b"0\n1\na -1 5\n", 3), (b"0\n1\n\xff 0 5\n", 3),
        (b"0\n1\na 0 9223372036854775808\n", 3), (b"0\n1\na 0 " + b"9" * 5000, 3),
    ],
)  # fmt: skip
def test_malformed_checkpoint_names_the_line(data: bytes, line: int) -> None:
    with pytest.raises(CorruptFileError) as raised:
        parse_offset_checkpoint(data)
    assert raised.value.reason.startswith(f"line {line}: ")


def test_leader_epochs() -> None:
    assert parse_leader_epoch_checkpoint(b"0\n3\n0 0\n2 10\n7 11\n") == [(0, 0), (2, 10), (7, 11)]
    assert parse_leader_epoch_checkpoint(b"") == []


@pytest.mark.parametrize(
    "entries", [b"0 0\n0 5", b"1 0\n0 5", b"0 5\n1 5", b"0 5\n1 4", b"0 0\nx y", b"0 0\n1", b"0 0\n1 2 3"]
)
def test_leader_epochs_out_of_order_or_malformed(entries: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"^line 4: "):
        parse_leader_epoch_checkpoint(b"0\n2\n" + entries + b"\n")


def test_partition_metadata() -> None:
    data = b"version: 0\ntopic_id: N4tB6Z2CT0OOSL8ncYwsKQ"
    assert parse_partition_metadata(data) == (0, "N4tB6Z2CT0OOSL8ncYwsKQ")
    assert parse_partition_metadata(data.replace(b" 0", b" 1") + b"\n").version == 1


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", 1),
        (b"version: 0", 2),
        (b"version: 0\n", 2),
        (b"version: -1\ntopic_id: N4tB6Z2CT0OOSL8ncYwsKQ", 1),
        (b"version:0\ntopic_id: N4tB6Z2CT0OOSL8ncYwsKQ", 1),
        (b"topic_id: N4tB6Z2CT0OOSL8ncYwsKQ\nversion: 0", 1),
        (b"version: 0\ntopic_id: N4tB6Z2CT0OOSL8ncYwsK", 2),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 2),
        (b"version: 0\ntopic_id: N4tB6Z2CT0OOSL8ncYws+Q", 2),
        (b"version: 0\ntopic_id: \xc3\xa9", 2),
    ],
)
def test_malformed_partition_metadata_names_the_line(data: bytes, line: int) -> None:
    with pytest.raises(CorruptFileError) as raised:
        parse_partition_metadata(data)
    assert raised.value.reason.startswith(f"line {line}: ")


def test_clean_shutdown() -> None:
    assert parse_clean_shutdown(b'{"version":0,"brokerEpoch":15}') == (0, 15)
    assert parse_clean_shutdown(b"") == (0, None)


@pytest.mark.parametrize(
    "data",
    [b"{", b"\xff", b"[]", b"{}", b'{"version":0}', b'{"version":0,"brokerEpoch":"15"}', b"[" * 200_000,
     b'{"version":true,"brokerEpoch":15}', b'{"version":0,"brokerEpoch":' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_malformed_clean_shutdown(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"^line 1: "):
        parse_clean_shutdown(data)


def test_topic_id_of_the_halves_1_and_2() -> None:
    halves = (1).to_bytes(8, "big") + (2).to_bytes(8, "big")
    assert topic_id_from_bytes(halves) == "AAAAAAAAAAEAAAAAAAAAAg"
    assert topic_id_to_bytes("AAAAAAAAAAEAAAAAAAAAAg") == halves


@given(st.binary(min_size=16, max_size=16).filter(any))
def test_topic_id_round_trip(data: bytes) -> None:
    text = topic_id_from_bytes(data)
    assert len(text) == 22
    assert parse_topic_id(text) == text
    assert topic_id_to_bytes(text) == data


def test_topic_id_of_another_length() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        topic_id_from_bytes(b"short")
    with pytest.raises(ValueError, match="not an id"):
        topic_id_to_bytes("short")


PARSERS = [
    parse_offset_checkpoint,
    parse_leader_epoch_checkpoint,
    parse_partition_metadata,
    parse_clean_shutdown,
    parse_meta_properties,
]
SEEDS = [
    b"0\n1\norders 0 17\n",
    b"0\n2\n0 0\n2 10\n",
    b"version: 0\ntopic_id: N4tB6Z2CT0OOSL8ncYwsKQ",
    b'{"version":0,"brokerEpoch":15}',
    b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=A586XXD2QWyHjtn-hGjYOw\n",
]


@given(st.sampled_from(PARSERS), st.sampled_from(SEEDS), st.integers(0, 60), st.binary(max_size=8))
def test_damage_raises_nothing_else(
    parse: Callable[[bytes], object], seed: bytes, position: int, inserted: bytes
) -> None:
    data = seed[:position] + inserted + seed[position + 1 :]
    with contextlib.suppress(CorruptFileError):
        assert parse(data) is not None


@given(st.text("a0 1\n\r", max_size=40))
def test_lines_are_counted_as_java_counts_them(text: str) -> None:
    """A line ends with
    , \r, or both; the last line needs no end.
    """
    there = len(text.encode().splitlines())
    with pytest.raises(CorruptFileError, match=f"claims 99 entries but has {there}"):
        parse_offset_checkpoint(b"0\n99\n" + text.encode())


def test_only_what_is_wanted_is_kept() -> None:
    data = b"0\n3\na 0 1\na 1 2\nb 0 3\n"
    assert parse_offset_checkpoint(data, {TopicPartition("a", 1)}) == {TopicPartition("a", 1): 2}
    with pytest.raises(CorruptFileError, match="line 5"):
        parse_offset_checkpoint(data.replace(b"b 0 3", b"b 0 x"), {TopicPartition("a", 1)})


def test_a_line_of_many_words_is_not_taken_apart() -> None:
    with pytest.raises(CorruptFileError, match="line 3: cannot read"):
        parse_offset_checkpoint(b"0\n1\n" + b"a " * 1_000_000)
