"""Options: valid values, their meanings, and the errors for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from txnkafka import IsolationLevel, TopicPartition
from txnkafka.spark.options import ReadOptions, read_options
from txnkafka.spark.schema import KAFKA_COLUMNS
from txnkafka.spark.source_options import OPTION_NAMES, parse_source_options
from txnkafka.spark.stream.limits import TriggerLimits

ORDERS = [TopicPartition("orders", number) for number in (0, 1)]


def options(**given: str) -> ReadOptions:
    return parse_source_options({"path": "/logs", **given}).reading


def test_the_default_is_read_committed_from_the_beginning_to_the_end() -> None:
    found = parse_source_options({"path": "/logs"})
    assert found == (("/logs",), "records", None, ReadOptions(), TriggerLimits(), None)
    assert found.reading.request.isolation_level is IsolationLevel.READ_COMMITTED
    assert (found.reading.starting_offsets, found.reading.ending_offsets) == ("earliest", "latest")
    assert found.reading.fail_on_data_loss
    assert read_options() == ReadOptions()


def test_each_option_means_the_same_as_its_keyword() -> None:
    given: dict[str, tuple[str, Any]] = {
        "subscribe": ("a, b,a", ["a", "b"]),
        "startingOffsets": ('{"a": {"0": 23, "1": -2}}', {"a": {0: 23, 1: -2}}),
        "endingOffsets": ('{"a": {"0": -1}}', {"a": {"0": -1}}),
        "isolation.level": ("READ_UNCOMMITTED", IsolationLevel.READ_UNCOMMITTED),
        "failOnDataLoss": ("False", False),
        "minPartitions": ("7", 7),
        "maxBytesPerPartition": ("3m", 3 << 20),
        "io": ("mmap", "mmap"),
    }
    keywords = {OPTION_NAMES[name][0]: value for name, (_, value) in given.items()}
    found = options(**{name.lower(): text for name, (text, _) in given.items()})
    assert found == read_options(**keywords)
    assert found.topics == ("a", "b")
    assert found.starting_offsets == {TopicPartition("a", 0): 23, TopicPartition("a", 1): -2}
    times = options(startingTimestamp="12", endingTimestamp="99", subscribePattern="a.*")
    assert times == read_options(starting_timestamp=12, ending_timestamp=99, topic_pattern="a.*")
    assert options(assign='{"orders": [1, 0]}').assigned == tuple(ORDERS)
    assert read_options(assign={"orders": range(2)}).assigned == tuple(ORDERS)


def test_storage_options_are_not_in_messages() -> None:
    text = '{"key": "open sesame", "client_kwargs": {"region_name": "x"}}'
    keyword: dict[str, Any] = {"key": "open sesame", "client_kwargs": {"region_name": "x"}}
    assert options(storageOptions=text) == read_options(storage_options=keyword)
    assert "sesame" not in repr(parse_source_options({"path": "s3://b", "storageOptions": text}))
    for wrong in ("open sesame", '["open sesame"]'):
        with pytest.raises(ValueError, match="option storageOptions: must be a JSON object") as caught:
            options(storageOptions=wrong)
        assert "sesame" not in str(caught.value)


def test_paths_may_be_one_or_a_json_list() -> None:
    assert parse_source_options({"path": "/a,b"}).paths == ("/a,b",)
    assert parse_source_options({"path": '["/a", "/b"]'}).paths == ("/a", "/b")
    assert parse_source_options({"paths": '["/a", "/b"]', "includeHeaders": "true"})[:3] == (
        ("/a", "/b"),
        "records",
        (*KAFKA_COLUMNS, "headers"),
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOffest": "x"}, "unknown option startingOffest: did you mean startingOffsets?"),
        ({"zzz": "x"}, "unknown option zzz: there are path, paths, table, subscribe, "),
        ({"kafka.group.id": "x"}, "option kafka.group.id is for a broker: give kafka.bootstrap.servers too"),
        ({"isolation.level": "none"}, "option isolation.level: isolation level must be"),
        (
            {"isolation.level": "read_committed", "kafka.isolation.level": "read_uncommitted"},
            "given under two names with different values",
        ),
        ({"includeHeaders": "yes"}, "option includeHeaders: must be true or false, not 'yes'"),
        ({"minPartitions": "many"}, "option minPartitions: must be a whole number"),
        ({"minPartitions": "0"}, "minPartitions must be at least 1"),
        ({"maxBytesPerPartition": "1t"}, "option maxBytesPerPartition: must be a number of bytes"),
        ({"maxBytesPerPartition": "0"}, "maxBytesPerPartition must be at least 1"),
        ({"io": "magic"}, "io must be auto, mmap or pread"),
        ({"subscribe": " , "}, "the list of topics is empty"),
        ({"assign": "{}"}, "the list of topics is empty"),
        ({"assign": '{"a": "01"}'}, 'assign must be like {"orders": [0, 1]}'),
        ({"assign": '{"a": [-1]}'}, "-1 of a is not a partition number"),
        ({"assign": '{"a": [true]}'}, "True of a is not a partition number"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "exclude each other"),
        ({"subscribePattern": "("}, "'(' is not a regular expression"),
        ({"startingOffsets": "latest"}, "starting offsets must be earliest or like"),
        ({"startingOffsets": "{"}, "'{' is not JSON"),
        ({"startingOffsets": "{}"}, "starting offsets name no partition"),
        ({"startingOffsets": '{"a": 5}'}, "a needs an offset for each partition"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, "start at the latest offset (-1) reads nothing"),
        ({"endingOffsets": '{"a": {"0": -2}}'}, "end at the earliest offset (-2) reads nothing"),
        ({"endingOffsets": '{"a": {"0": -3}}'}, "-3 is not an offset"),
        ({"endingOffsets": '{"a": {"0": 1.5}}'}, "1.5 is not an offset"),
        ({"startingTimestamp": "1795425041"}, "startingTimestamp is in milliseconds since the epoch"),
        (
            {"endingOffsetsByTimestamp": '{"a": {"0": 1795425041}}'},
            "the timestamp of a-0 is in milliseconds since the epoch",
        ),
        ({"startingOffsetsByTimestamp": "yesterday"}, "starting offsets by timestamp must be like"),
        ({"endingOffsetsByTimestamp": "{}"}, "ending offsets by timestamp name no partition"),
        ({"startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "-1 for a-0 is not a time in milliseconds"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "must be error or latest, not 'guess'"),
        ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be at least 1, not 0"),
        ({"where": "ofset > 1"}, "one of topic, partition, offset"),
        ({"columns": "key", "includeHeaders": "true"}, "columns and includeHeaders exclude each other"),
        ({"path": "[1]"}, "is not a JSON list of paths"),
        ({"path": "[/a]"}, "is not a JSON list of paths"),
    ],
)
def test_invalid_options_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        options(**given)
    assert message in str(caught.value)


def test_no_path_is_refused() -> None:
    with pytest.raises(ValueError, match="no path: give the log directory"):
        parse_source_options({"subscribe": "a"})


def test_a_keyword_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match=r"unknown keyword isolation: did you mean isolation_level\?"):
        read_options(isolation="read_committed")  # type: ignore[call-arg]
