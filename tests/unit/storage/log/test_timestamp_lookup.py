"""Offsets by time in a log that this process owns."""

from __future__ import annotations

from tests.unit.storage.client import NOW, Log
from txnkafka.storage.log.timestamp_lookup import find_by_timestamp, find_newest


def test_a_segment_that_kafkas_cleaner_has_emptied() -> None:
    """Kafka searches it because its file is young, and finds nothing; here the search goes on."""
    log = Log()
    log.plain(timestamp=NOW)
    log.log.roll(NOW)
    log.plain(timestamp=NOW + 5)
    log.log.close()
    files, directory = log.log.files, log.log.directory
    for ending in ("log", "index", "timeindex"):
        file = files.open_to_write(f"{directory}/{0:020}.{ending}")
        file.truncate(0)
        file.close()
    log.restart()
    assert (log.bases, log.log.segments[0].size) == ([0, 2], 0)
    for timestamp in (NOW - 1, NOW, NOW + 5):
        found = find_by_timestamp(log.log, timestamp)
        assert found is not None
        assert (found.offset, found.timestamp) == (2, NOW + 5)
    assert find_by_timestamp(log.log, NOW + 6) is None
    assert find_newest(log.log) == find_by_timestamp(log.log, NOW)
