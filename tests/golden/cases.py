"""The golden cases: log directories that a real Kafka wrote, with its answers about them.

The archives are unpacked once per content into build/golden (ignored by git), by the first process that needs
them. Nothing is computed here: each answer is read from a file with the output of the broker, the consumer or
the tools. README.md beside this file describes the files.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from txnkafka.model import TopicPartition

__all__ = ["ARCHIVES", "ISOLATION_LEVELS", "Case", "case", "cases", "unpacked"]

ARCHIVES = tuple(Path(__file__).with_name(name) for name in ("golden.tar.xz", "kafka_4_4.tar.xz"))
CACHE = Path(__file__).resolve().parents[2] / "build" / "golden"
ISOLATION_LEVELS = ("read_committed", "read_uncommitted")

Json = Any


@dataclass(frozen=True)
class Case:
    """One recorded history: ``logs`` as it was found, ``recovered`` the result of the broker's recovery."""

    name: str
    root: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def recovered(self) -> Path | None:
        """The directory after the broker's own recovery; None if nothing was damaged."""
        path = self.root / "recovered"
        return path if path.is_dir() else None

    @property
    def answered(self) -> Path:
        """The directory that the expected answers are about."""
        return self.recovered or self.logs

    @property
    def expected(self) -> Path:
        return self.root / "expected"

    @functools.cached_property
    def meta(self) -> dict[str, Json]:
        """case.json: versions, features, broker properties, topics, operations, damage."""
        return self._json(self.root / "case.json")

    @property
    def damage(self) -> str | None:
        """The damage that was done to ``logs`` by hand, in words."""
        return self.meta.get("damage")

    @property
    def recorded_at_ms(self) -> int:
        """The time of the answers that depend on the clock."""
        return int(self.meta["recorded_at_ms"])

    @property
    def startup(self) -> dict[str, Json] | None:
        """Whether the broker started on a damaged directory, with its log messages."""
        path = self.expected / "startup.json"
        return self._json(path) if path.exists() else None

    @property
    def refused(self) -> bool:
        """Whether the broker refused to start; then there are no answers."""
        return self.startup is not None and not self.startup["started"]

    def partitions(self) -> list[TopicPartition]:
        """The partitions with answers, in order."""
        return sorted(map(_topic_partition, self._names(".facts.json")))

    def dumped(self) -> list[TopicPartition]:
        """The partitions whose files the broker's dump tool printed (more than those with answers)."""
        return sorted(map(_topic_partition, self._names(".dump.json")))

    def facts(self, partition: TopicPartition) -> dict[str, Json]:
        """The broker's answers: offsets, producers, offsets for times and raw fetches."""
        return self._json(self.expected / f"{partition}.facts.json")

    def expected_records(self, partition: TopicPartition, isolation_level: str) -> list[dict[str, Json]]:
        """The records that the Java consumer returned; bytes are base64 text or None."""
        text = (self.expected / f"{partition}.{isolation_level}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def dump(self, partition: TopicPartition) -> dict[str, Json]:
        """The output of DumpLogSegments for ``answered``: for each kind of file, for each file, its columns
        and rows."""
        return self._json(self.expected / f"{partition}.dump.json")

    def decoded(self, partition: TopicPartition) -> str | None:
        """The output of DumpLogSegments with the decoder for a coordinator's log."""
        path = self.expected / f"{partition}.decoded.txt"
        return path.read_text(encoding="utf-8") if path.exists() else None

    def last_prepared(self, transactional_id: str) -> set[str]:
        """Return the partitions of the last Prepare record of an id, as the decoder shows it."""
        found: set[str] = set()
        for partition in self.partitions():
            text = self.decoded(partition) or ""
            for key, payload in re.findall(r" key: (\{.*?\}) payload: (\{.*)$", text, re.MULTILINE):
                if json.loads(key)["data"].get("transactionalId") == transactional_id:
                    value = json.loads(payload)["data"]
                    if str(value["transactionStatus"]).startswith("Prepare"):
                        topics = value["transactionPartitions"]
                        found = {f"{each['topic']}-{i}" for each in topics for i in each["partitionIds"]}
        return found

    @property
    def cluster(self) -> dict[str, Json]:
        """Transactions and groups as described by the coordinators; empty if they were not asked."""
        path = self.expected / "cluster.json"
        return self._json(path) if path.exists() else {}

    def _names(self, ending: str) -> list[str]:
        return [path.name.removesuffix(ending) for path in self.expected.glob(f"*{ending}")]

    @staticmethod
    def _json(path: Path) -> dict[str, Json]:
        content: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))
        return content


def _topic_partition(name: str) -> TopicPartition:
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition))


@functools.cache
def unpacked() -> Path:
    """Return the folder of the unpacked cases; unpack them if necessary."""
    content = b"".join(archive.read_bytes() for archive in ARCHIVES)
    folder = CACHE / hashlib.sha256(content).hexdigest()[:16]
    if not folder.is_dir():
        _unpack(folder)
    return folder


def _unpack(folder: Path) -> None:
    # Unpacked beside it and renamed, so that parallel test runs never see a part of it.
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="unpack-", dir=folder.parent))
    for archive in ARCHIVES:
        _extract(archive, fresh)
    fresh.chmod(0o755)
    try:
        os.rename(fresh, folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(fresh)


def _extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive, "r:xz") as members:
        for member in members:
            content = members.extractfile(member)
            assert content is not None, f"{member.name} is not a file"
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())


@functools.cache
def cases() -> tuple[Case, ...]:
    """Return all cases, sorted by name."""
    return tuple(Case(path.parent.name, path.parent) for path in sorted(unpacked().glob("*/case.json")))


def case(name: str) -> Case:
    """Return the case of that name."""
    (found,) = (each for each in cases() if each.name == name)
    return found
