"""The Python side of other libraries: aiokafka's compiled reader, kafka-python, and bare calls of the codec
bindings.

The two readers get the segment as bytes in memory, check CRCs and take offset, timestamp, key and value of
each record. They are used as by their own consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.digest import Digest, DigestBuilder
from bench.harness import Timing, timed

__all__ = ["AiokafkaSide", "KafkaPythonSide"]


class ReaderSide:
    """A reader with aiokafka's and kafka-python's common interface: MemoryRecords, batches, records."""

    name = ""

    def __init__(self, segment: Path, *, repeat: int = 1, output: str = "records") -> None:
        self.output = output
        self._segment = segment
        self._repeat = repeat
        self._data = b""

    def reader(self) -> Callable[[bytes], Any]:
        raise NotImplementedError

    def warm(self) -> None:
        self._data = self._segment.read_bytes()

    def run(self) -> Timing:
        timing: list[tuple[float, float]] = []
        count = 0
        with timed(timing):
            for _ in range(self._repeat):
                count += self._pass()
        return Timing(*timing[0], count)

    def _pass(self) -> int:
        count = 0
        for batch in self.batches():
            for record in batch:
                # reading the fields is the work
                record.offset, record.timestamp, record.key, record.value  # noqa: B018
                count += 1
        return count

    def batches(self) -> Iterator[Any]:
        records = self.reader()(self._data)
        batch = records.next_batch()
        while batch is not None:
            if not batch.validate_crc():
                raise ValueError(f"{self.name} finds a wrong CRC")
            if not batch.is_control_batch:
                yield batch
            batch = records.next_batch()

    def digest(self) -> Digest:
        builder = DigestBuilder()
        for batch in self.batches():
            for record in batch:
                builder.add_record(record.offset, record.timestamp, record.key, record.value)
        return builder.digest()

    def close(self) -> None:
        self._data = b""


class AiokafkaSide(ReaderSide):
    name = "aiokafka"

    def reader(self) -> Callable[[bytes], Any]:
        from aiokafka.record.memory_records import MemoryRecords

        if "_crecords" not in MemoryRecords.__module__:
            raise RuntimeError("aiokafka runs without its compiled reader")
        reader: Callable[[bytes], Any] = MemoryRecords
        return reader


class KafkaPythonSide(ReaderSide):
    name = "kafka-python"

    def reader(self) -> Callable[[bytes], Any]:
        import crc32c  # noqa: F401 - without it kafka-python computes CRCs in Python
        from kafka.record.memory_records import MemoryRecords

        reader: Callable[[bytes], Any] = MemoryRecords
        return reader
