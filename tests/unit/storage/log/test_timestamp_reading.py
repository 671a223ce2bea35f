"""How old segments are is read from their index files by work, before retention asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.storage.client import NOW, PATH, Log, data
from txnkafka.model import NO_TIMESTAMP
from txnkafka.storage.log.timestamp_reading import TimestampReading
from txnkafka.storage.log.truncation import retention, timestamp_reading, truncate_to


def made() -> Log:
    """A log that was just opened, with five segments of one batch, a second apart."""
    log = Log(segment_bytes=len(data()), retention_ms=10_000)
    for number in range(5):
        log.plain(timestamp=NOW + 1_000 * number)
    log.log.flush()
    log.restart()
    return log


def reading(log: Log, now_ms: int) -> TimestampReading:
    found = timestamp_reading(log.log, now_ms)
    assert found is not None
    return found


def known(log: Log) -> list[int]:
    """The timestamps that are known, of the first segments."""
    found = [segment.max_timestamp for segment in log.log.segments[:-1]]
    return [each - NOW for each in found if each != NO_TIMESTAMP]


def work(log: Log, now_ms: int) -> None:
    found = reading(log, now_ms)
    found.run()
    found.finish(None)


@pytest.mark.parametrize(("age_ms", "read"), [(10_000, 1), (10_001, 2), (12_000, 3), (60_000, 4)])
def test_as_many_are_read_as_retention_has_to_know(age_ms: int, read: int) -> None:
    log = made()
    work(log, NOW + age_ms)
    assert known(log) == [0, 1_000, 2_000, 3_000][:read]
    assert timestamp_reading(log.log, NOW + age_ms) is None
    retention(log.log, NOW + age_ms)
    assert log.bases[0] == 2 * (read if read == 4 else read - 1)


@pytest.mark.parametrize("configs", [{"cleanup_policy": "compact"}, {"retention_ms": -1}])
def test_where_no_age_counts_nothing_is_read(configs: dict[str, Any]) -> None:
    log = made()
    log.log.update_config(replace(log.log.config, **configs))
    assert timestamp_reading(log.log, NOW + 60_000) is None


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_what_cannot_be_used_is_left_to_retention(content: bytes | None) -> None:
    """It takes the index for damaged as well, and rebuilds it from the log."""
    log = made()
    path = f"{PATH}/{2:020}.timeindex"
    log.log.files.remove(path)
    if content is not None:
        file = log.log.files.create(path)
        file.write(0, [content])
        file.close()
    work(log, NOW + 60_000)
    assert known(log) == [0]
    retention(log.log, NOW + 12_000)
    assert log.bases[0] == 4
    assert "rebuilt" in " ".join(map(str, log.log.repairs))


def test_a_segment_that_was_truncated_meanwhile() -> None:
    """What the files said is not true any more."""
    log = Log(segment_bytes=2 * len(data()), retention_ms=10_000)
    for number in range(6):
        log.plain(timestamp=NOW + 1_000 * number)
    log.log.flush()
    log.restart()
    found = reading(log, NOW + 60_000)
    found.run()
    truncate_to(log.log, 6, now_ms=NOW)
    found.finish(None)
    assert log.log.segments[1].max_timestamp == NOW + 2_000
