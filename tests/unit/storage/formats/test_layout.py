"""Names of directories and files, parsed by the rules of Kafka's loader."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.model import TopicPartition
from txnkafka.storage.formats import file_name, parse_partition_directory, parse_segment_file
from txnkafka.storage.formats.layout import DirectoryState, marked_directory

UNIQUE_ID = "999de95e2db044d9a0269eb94915f903"
ZEROS = "00000000000000000000"


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("orders-0", "orders", 0),
        ("a-b-12", "a-b", 12),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
        ("dots.in_it-1", "dots.in_it", 1),
        ("topic--1", "topic-", 1),
        ("t-2147483647", "t", 2147483647),
        ("t-007", "t", 7),
        ("t-+1", "t", 1),
        ("delete-0", "delete", 0),
    ],
)
def test_current_directory(name: str, topic: str, partition: int) -> None:
    assert parse_partition_directory(name) == (TopicPartition(topic, partition), "current", None)


@pytest.mark.parametrize("state", ["future", "delete", "stray"])
def test_marked_directory(state: str) -> None:
    expected = (TopicPartition("my.topic", 3), state, UNIQUE_ID)
    assert parse_partition_directory(f"my.topic-3.{UNIQUE_ID}-{state}") == expected


@pytest.mark.parametrize("state", ["delete", "stray"])
@pytest.mark.parametrize("topic", ["t", "t" * 213, "t" * 214, "t" * 249, "\u00e9" * 124, "t\udcff"])
def test_a_marked_directory_keeps_its_number(topic: str, state: DirectoryState) -> None:
    """The topic is what is cut, as in Kafka: without the number, Kafka ends with a fatal error."""
    name = marked_directory(TopicPartition(topic, 3), state, UNIQUE_ID)
    found = parse_partition_directory(name)
    assert found is not None
    assert found[1:] == (state, UNIQUE_ID)
    assert found.topic_partition.partition == 3
    size = len(os.fsencode(name))
    assert topic.startswith(found.topic_partition.topic)
    assert size <= 255
    assert found.topic_partition.topic == topic or size > 255 - 2  # no more is cut than has to be


@pytest.mark.parametrize(
    "name",
    [
        "", "-", "-0", "foo", "foo-", "foo-bar", "foo-0x1", "foo-1 ", "foo-1.5", "foo-\u0663",
        "foo-2147483648", "foo-" + "9" * 5000, "remote-log-index-cache", "foo-0-delete", "foo-0.-stray",
        f"foo.{UNIQUE_ID}-delete",
        f"foo-x.{UNIQUE_ID}-stray", f"fo o-0.{UNIQUE_ID}-future", "foo-0.-delete", "foo-1\n",
    ],
)  # fmt: skip
def test_foreign_directory(name: str) -> None:
    assert parse_partition_directory(name) is None


@pytest.mark.parametrize("kind", ["log", "index", "timeindex", "txnindex", "snapshot"])
@pytest.mark.parametrize("suffix", ["", ".deleted", ".cleaned", ".swap"])
def test_segment_file(kind: str, suffix: str) -> None:
    assert parse_segment_file(f"00000000000000000042.{kind}{suffix}") == (42, kind, suffix)


@pytest.mark.parametrize(
    "name",
    [
        "0.log", "foo.log", "000000000000000000042.log", ZEROS, f"{ZEROS}.log.swap.deleted", f"{ZEROS}.LOG",
        f"{ZEROS}.log.tmp", f"{ZEROS}-0000000001.checkpoint", "09223372036854775808.log", "9" * 20 + ".log",
        "-0000000000000000001.log", "\u0660" * 20 + ".log", f"{ZEROS}.log\n", "leader-epoch-checkpoint", "",
    ],
)  # fmt: skip
def test_foreign_file(name: str) -> None:
    assert parse_segment_file(name) is None


def test_file_name() -> None:
    assert file_name(42, "timeindex") == "00000000000000000042.timeindex"
    assert parse_segment_file(file_name(2**63 - 1, "log")) == (2**63 - 1, "log", "")


@pytest.mark.parametrize("base_offset", [-1, 2**63])
def test_no_file_name_for_what_is_no_offset(base_offset: int) -> None:
    with pytest.raises(ValueError, match="no file name"):
        file_name(base_offset, "log")


@given(st.text(max_size=40))
def test_any_name_is_parsed_or_refused(name: str) -> None:
    directory, file = parse_partition_directory(name), parse_segment_file(name)
    assert directory is None or name.startswith(directory.topic_partition.topic)
    assert file is None or name == file_name(file.base_offset, file.kind) + file.suffix
