"""File operations of a stream over a directory: their number does not depend on the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.logdir.logs import batch, write_log
from tests.unit.spark.stream_logs import Stream
from txnkafka.env import LocalFileSystem

PARTITIONS, SEGMENTS = 20, 5


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., Any]:
        call = getattr(LocalFileSystem, name)

        def count(self: LocalFileSystem, *arguments: Any, **more: Any) -> Any:
            found[name] += 1
            return call(self, *arguments, **more)

        return count

    for name in ("list", "open", "read"):
        monkeypatch.setattr(LocalFileSystem, name, counted(name))
    return found


def test_a_trigger_reads_what_is_new(tmp_path: Path, counts: Counter[str]) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    for number in range(PARTITIONS):
        write_log(tmp_path, f"t-{number}", {base: [batch(base)] for base in range(0, 2 * SEGMENTS, 2)})
    stream = Stream(tmp_path)
    counts.clear()
    assert len(stream.trigger()) == PARTITIONS * SEGMENTS * 2
    # headers of each segment once for the end or the last stable offset, once for the plan, once to read it
    assert counts["open"] <= 4 * PARTITIONS * SEGMENTS

    def again() -> tuple[int, Counter[str]]:
        counts.clear()
        return len(stream.trigger()), Counter(counts)

    rows, empty = again()
    assert rows == 0
    assert empty["list"] <= PARTITIONS + 2
    assert empty["open"] == 0
    with (tmp_path / "t-3" / f"{2 * SEGMENTS - 2:020d}.log").open("ab") as file:
        file.write(batch(2 * SEGMENTS))
    rows, one = again()
    assert rows == 2
    assert one["list"] == empty["list"] + 2  # until two listings agree
    assert 1 <= one["open"] <= 8
