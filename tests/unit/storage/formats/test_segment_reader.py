"""Access to a segment: mapped and unmapped reads give the same windows, whatever the sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, segment
from txnkafka._core.scan import scan
from txnkafka.env import LocalFileSystem
from txnkafka.errors import CorruptRecordError, FileChangedError, LogDirError
from txnkafka.storage.formats import segment_reader

BATCHES = b"".join(batch(2 * i, codec=0) for i in range(50)) + batch(100, 400) + batch(500)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("window", [17, 80, 200, 5000, 1 << 20])
@pytest.mark.parametrize("tail", [b"", b"\0" * 700, b"\1\2\3", BATCHES[:70], b"\xff" * 90])
def test_windows_hold_whole_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool, window: int, tail: bytes
) -> None:
    monkeypatch.setattr(LocalFileSystem, "window_bytes", window)
    monkeypatch.setattr(segment_reader, "MAPPED_WINDOW_BYTES", window)
    whole = scan(BATCHES + tail)
    found = segment(tmp_path / "s.log", BATCHES + tail, mapped=mapped)
    seen = []
    for position, data, index in found.windows():
        assert bytes(data) == (BATCHES + tail)[position : position + len(data)]
        seen += [tuple(each) for each in index]
    assert seen == [tuple(each) for each in whole]
    again = found.scan()
    assert [tuple(each) for each in again] == seen
    assert (again.end_position, again.stop) == (whole.end_position, whole.stop)
    found.close()


@pytest.mark.parametrize("mapped", [True, False])
def test_a_window_may_begin_and_end_inside(tmp_path: Path, mapped: bool) -> None:
    found = segment(tmp_path / "s.log", BATCHES, mapped=mapped)
    index = found.scan()
    start, end = index.position[10], index.position[20]
    ((position, data, part),) = found.windows(start, end)
    assert (position, len(data)) == (start, end - start)
    assert list(part.base_offset) == list(index.base_offset[10:20])


@pytest.mark.parametrize("mapped", [True, False])
def test_what_is_appended_later_is_not_seen(tmp_path: Path, mapped: bool) -> None:
    found = segment(tmp_path / "s.log", BATCHES, mapped=mapped)
    with (tmp_path / "s.log").open("ab") as file:
        file.write(BATCHES)
    assert found.scan().end_position == len(BATCHES)


def test_a_file_that_became_shorter_ends_early(tmp_path: Path) -> None:
    found = segment(tmp_path / "s.log", BATCHES, mapped=False)
    (tmp_path / "s.log").write_bytes(BATCHES[:100])
    assert [index.stop for _, _, index in found.windows()] == ["torn"]
    with pytest.raises(FileChangedError, match="it became shorter"):
        found.scan()


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    found = segment(tmp_path / "s.log", BATCHES, mapped=False)
    (tmp_path / "s.log").unlink()
    with pytest.raises(LogDirError, match=r"cannot read .*s\.log: No such file"):
        found.scan()


def test_a_batch_of_gigabytes_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reader, "MAX_BATCH_BYTES", 1000)
    monkeypatch.setattr(LocalFileSystem, "window_bytes", 64)
    found = segment(tmp_path / "s.log", BATCHES, mapped=False)
    with pytest.raises(CorruptRecordError, match="more than 1000 are taken for damage") as caught:
        found.scan()
    assert caught.value.position is not None


def test_an_index_of_very_many_batches_is_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalFileSystem, "window_bytes", 300)
    found = segment(tmp_path / "s.log", BATCHES + b"\1\2\3", mapped=False)
    whole = [tuple(each) for each in found.scan()]
    assert found.remembered == len(whole)
    found.close()
    monkeypatch.setattr(segment_reader, "MAX_INDEXED_BATCHES", 10)
    parts = list(found.indexes())
    assert [tuple(each) for part in parts for each in part] == whole
    assert max(map(len, parts)) < 20
    assert [part.stop for part in parts] == ["end"] * (len(parts) - 1) + ["torn"]
    assert [part.end_position for part in parts[:-1]] == [part.position[0] for part in parts[1:]]
    assert found.remembered == 0
    assert found.end_offset() == 502


def test_an_index_is_divided_where_offsets_are_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalFileSystem, "window_bytes", 80)
    monkeypatch.setattr(segment_reader, "MAX_INDEXED_BATCHES", 5)
    content = b"".join(batch(offset) for offset in (0, 2, 4, 6, 900, 10, 12, 14))
    parts = list(segment(tmp_path / "s.log", content, mapped=False).indexes())
    assert [list(part.base_offset) for part in parts] == [[0, 2, 4, 6, 900, 10], [12, 14]]
