"""Offsets that a stream has lost: to retention, truncation, compaction, and to topics that are deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, write_log
from tests.unit.spark.stream_logs import Stream, append, log, offsets
from txnkafka.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError


def lost(stream: Stream, caplog: pytest.LogCaptureFixture, message: str, rows: list[int], root: Path) -> None:
    """The query fails; a query that accepts losses reports this one once, and continues with ``rows``."""
    with pytest.raises(OffsetOutOfRangeError) as caught:
        stream.end()
    assert message in str(caught.value)
    assert "With failOnDataLoss=false the query continues with what exists" in str(caught.value)
    again = Stream(root, failOnDataLoss="false")
    again.start = stream.start
    assert offsets(again.trigger()) == rows
    assert again.trigger() == []
    assert [each for each in caplog.messages if "continues" in each] == [
        f"{message}; the query continues with what exists"
    ]


def test_retention(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)], 4: [batch(4)]})
    stream = Stream(tmp_path, maxOffsetsPerTrigger="1")
    stream.trigger()
    for base in (0, 2):
        (tmp_path / "t-0" / f"{base:020d}.log").unlink()
    lost(stream, caplog, "t-0: offsets 1 to 3 deleted before the stream read them", [4, 5], tmp_path)


def test_a_truncated_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log(tmp_path)
    stream = Stream(tmp_path)
    stream.trigger()
    write_log(tmp_path, "t-0", {0: [batch(0)]})
    lost(stream, caplog, "t-0 now ends at offset 2; it was read up to 4", [], tmp_path)


def test_after_a_truncation_the_new_records_are_read(tmp_path: Path) -> None:
    log(tmp_path)
    stream = Stream(tmp_path, failOnDataLoss="false")
    stream.trigger()
    write_log(tmp_path, "t-0", {0: [batch(0)]})
    stream.trigger()
    append(tmp_path, batch(2))
    append(tmp_path, batch(4))
    assert offsets(stream.trigger()) == [2, 3, 4, 5]


def test_a_topic_that_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log(tmp_path)
    log(tmp_path, "u-0")
    stream = Stream(tmp_path)
    stream.trigger()
    (tmp_path / "u-0").rename(tmp_path / "u-0.0123456789abcdef0123456789abcdef-delete")
    lost(stream, caplog, "u-0 is gone; it was read up to offset 4", [], tmp_path)


@pytest.mark.parametrize("choice", [{"subscribe": "t,u"}, {"assign": '{"t": [0], "u": [0]}'}], ids=str)
def test_a_named_topic_that_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, choice: dict[str, str]
) -> None:
    log(tmp_path)
    log(tmp_path, "u-0")
    strict, lenient = (Stream(tmp_path, failOnDataLoss=each, **choice) for each in ("true", "false"))
    lenient.trigger()
    strict.trigger()
    (tmp_path / "u-0").rename(tmp_path / "u-0.0123456789abcdef0123456789abcdef-delete")
    append(tmp_path, batch(4))
    with pytest.raises(UnknownTopicOrPartitionError):
        strict.end()
    assert lenient.trigger() == [("t-0", 4), ("t-0", 5)]
    assert "u-0 is gone; it was read up to offset 4" in caplog.text
    with pytest.raises(UnknownTopicOrPartitionError):  # a new query, which may have a misspelt name
        Stream(tmp_path, failOnDataLoss="false", **choice)


def test_a_topic_that_was_created_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def created(topic_id: str, batches: int) -> None:
        log(tmp_path, batches=batches)
        (tmp_path / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")

    created("AAAAAAAAAAAAAAAAAAAAAQ", 2)
    strict, lenient = (Stream(tmp_path, failOnDataLoss=each) for each in ("true", "false"))
    assert offsets(strict.trigger()) == offsets(lenient.trigger()) == [0, 1, 2, 3]
    created("AAAAAAAAAAAAAAAAAAAAAg", 4)
    with pytest.raises(OffsetOutOfRangeError, match="t-0: the topic was deleted and created again"):
        strict.end()
    assert offsets(lenient.trigger()) == [4, 5, 6, 7]
    assert "its new offsets below 4 are not read" in caplog.text


def test_compaction_of_offsets_that_were_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)], 4: [batch(4)]})
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 2\n")
    stream = Stream(tmp_path, maxOffsetsPerTrigger="1")
    stream.trigger()
    assert stream.start == {"t": {"0": 1}, "#cleaned": {"t": {"0": 2}}, "#first": {"t": {"0": 0}}}
    stream.trigger()
    checkpoint.write_text("0\n1\nt 0 4\n")
    write_log(tmp_path, "t-0", {2: [batch(3, 1)]})
    message = (
        "t-0 was compacted up to offset 4 after its offsets from 2 on were to be read, so records may be "
        "missing"
    )
    lost(stream, caplog, message, [3, 4, 5], tmp_path)


def test_compaction_of_offsets_that_were_read_is_no_loss(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)], 4: [batch(4)]})
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n0\n")
    stream = Stream(tmp_path, maxOffsetsPerTrigger="4")
    assert offsets(stream.trigger()) == [0, 1, 2, 3]
    write_log(tmp_path, "t-0", {0: [batch(1, 1), batch(3, 1)]})
    (tmp_path / "t-0" / f"{2:020d}.log").unlink()
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    assert offsets(stream.trigger()) == [4, 5]
