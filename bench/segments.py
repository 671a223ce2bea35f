"""The inputs: log directories that Kafka's own UnifiedLog writes (Generate.java), kept in build/bench between
runs.

The same description gives the same bytes; it is part of the directory's name, together with the generator's
version.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench.java import BUILD, JavaProcess

__all__ = ["MIB", "NAMES", "Input", "generate", "linked", "ready"]

MIB = 1 << 20
NAMES = {"10": "10 B", "100": "100 B", "1024": "1 KB", "mixed": "mixed"}  # of the shapes, in the table
# Increase it when Generate.java writes other bytes for the same options.
GENERATOR_VERSION = 1


@dataclass(frozen=True)
class Input:
    """A topic ``bench``: values of ``shape`` bytes (or mixed), batches of ``batch`` bytes before compression.

    With ``producers`` the records are transactional, ``aborted`` percent of the transactions end
    aborted.
    """

    shape: str
    size: int
    codec: str = "none"
    batch: int = 16 << 10
    producers: int = 0
    aborted: int = 0
    partitions: int = 1

    @property
    def name(self) -> str:
        transactions = f"-{self.producers}-producers-{self.aborted}-aborted" if self.producers else ""
        partitions = f"-{self.partitions}-partitions" if self.partitions > 1 else ""
        options = transactions + partitions
        return f"{self.shape}-{self.codec}-{self.batch}-{self.size}{options}-v{GENERATOR_VERSION}"

    @property
    def log_dir(self) -> Path:
        return BUILD / "bench" / "logs" / self.name

    @property
    def segment(self) -> Path:
        return self.log_dir / "bench-0" / f"{0:020}.log"

    @property
    def description(self) -> Path:
        """The generator's facts about each partition, written last, beside the log directory."""
        return self.log_dir.with_suffix(".json")

    @property
    def records(self) -> int:
        """Records in all partitions, aborted ones included, markers not."""
        return sum(part["records"] for part in json.loads(self.description.read_text()))


def generate(inputs: list[Input]) -> None:
    """Write the missing inputs."""
    missing = [wanted for wanted in dict.fromkeys(inputs) if not wanted.description.exists()]
    if not missing:
        return
    process = JavaProcess()
    for wanted in missing:
        print(f"writing {wanted.name}", flush=True)
        shutil.rmtree(wanted.log_dir, ignore_errors=True)
        parts = [_generate_partition(process, wanted, partition) for partition in range(wanted.partitions)]
        # The log was closed cleanly, so a broker would have left this file. Without it the tail is checked
        # twice.
        (wanted.log_dir / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
        wanted.description.write_text(json.dumps(parts))
    process.close()


def ready(wanted: Input) -> Path:
    """Return the first segment of an input: written if necessary, dropped from the page cache, and read back.

    So every run finds it in the page cache in the large pieces of readahead, as after a copy or a restart,
    and not in the small ones of its appends.
    """
    generate([wanted])
    with wanted.segment.open("rb", buffering=0) as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(MIB):
            pass
    return wanted.segment


def linked(wanted: Input, partitions: int) -> Path:
    """Make a log directory whose partitions are all links to the first segment of an input: as much to read
    as in a large directory, with the disk space and page cache of a small one."""
    segment = ready(wanted)
    log_dir = BUILD / "bench" / "links" / f"{wanted.name}-{partitions}"
    shutil.rmtree(log_dir, ignore_errors=True)
    for partition in range(partitions):
        directory = log_dir / f"bench-{partition}"
        directory.mkdir(parents=True)
        os.link(segment, directory / segment.name)
    return log_dir


def _generate_partition(process: JavaProcess, wanted: Input, partition: int) -> dict[str, int]:
    return process.ask(
        "generate",
        directory=wanted.log_dir / f"bench-{partition}",
        bytes=wanted.size // wanted.partitions,
        shape=wanted.shape,
        codec=wanted.codec,
        batch=wanted.batch,
        producers=wanted.producers,
        aborted=wanted.aborted,
        seed=1 + partition,
    )
