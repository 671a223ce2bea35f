"""What an output directory says of itself: ``_txnkafka`` below it, which readers of data leave alone.

    export.json                 id and options of the export, written once
    lock                        held by whoever works on it
    00000/plan                  a round: what is read, written before anything is read
    00000/staged/U-X/….staged   files of unit U, by attempt X
    00000/staged/U-X.json       ... all of them are there and synced
    00000/units/U.json          the same record: the unit counts, its files belong to the export
    00000/finished.json         every unit counts, and the table format knows of it

A unit counts from the moment its record is renamed from ``staged`` to ``units``; only then its files move to
where readers see them. Whoever comes after a crash moves what was not moved yet. So a file that is seen
always belongs to exactly one unit that counts, and no unit counts twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from txnkafka.env import DataFiles, make_directories, remove_tree, unique_name, write_durably
from txnkafka.errors import KafkaError
from txnkafka.export.plan import RoundPlan
from txnkafka.export.unit import StagedUnit, staged_name
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from txnkafka.env import Lock
    from txnkafka.export.options import ExportOptions

__all__ = ["MANIFEST", "Manifest", "Round"]

MANIFEST = "_txnkafka"
VERSION = 1
SIZE_LIMIT = 1 << 31


class Manifest:
    """The manifest of an output directory, locked as long as it is open."""

    def __init__(self, files: DataFiles, output: str, options: ExportOptions) -> None:
        """Take the directory, which must be new, empty or hold an export with the same options. Raises
        KafkaError."""
        self.files = files
        self.output = output
        self.folder = files.join(output, MANIFEST)
        if files.exists(output) and not files.exists(self.folder) and files.list(output):
            raise KafkaError(f"{output} is not empty and holds no export; choose another directory")
        make_directories(files, self.folder)
        self._lock = self._take_lock()
        try:
            self.export_id = self._identify(options)
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> Lock:
        lock = self.files.lock(self.files.join(self.folder, "lock"))
        if lock is None:
            raise KafkaError(f"another export into {self.output} is running; wait until it has ended")
        return lock

    def _identify(self, options: ExportOptions) -> str:
        path = self.files.join(self.folder, "export.json")
        if not self.files.exists(path):
            new = {"version": VERSION, "id": unique_name(), "options": options.as_dict()}
            write_durably(self.files, path, json.dumps(new).encode())
        recorded = json.loads(self.files.read(path, SIZE_LIMIT))
        if recorded["version"] != VERSION:
            raise KafkaError(f"{path} is of another version of txnkafka; export to another directory")
        options.check_same(recorded["options"], self.output)
        return str(recorded["id"])

    def close(self) -> None:
        """Let others have the directory."""
        self._lock.close()

    def rounds(self) -> list[Round]:
        """The rounds that were planned, in order."""
        names = [each.name for each in self.files.list(self.folder) if each.is_directory]
        found = [Round(self, int(name)) for name in names]
        return [each for each in found if each.is_planned]


class Round:
    """One run over what there was to read, from its plan to its end."""

    def __init__(self, manifest: Manifest, number: int) -> None:
        self.number = number
        self._files = manifest.files
        self._output = manifest.output
        self._folder = self._path(manifest.folder, f"{number:05}")
        self._units = self._path(self._folder, "units")
        self._end = self._path(self._folder, "finished.json")
        self.staging = self._path(self._folder, "staged")

    def _path(self, folder: str, name: str) -> str:
        return self._files.join(folder, name)

    @property
    def is_planned(self) -> bool:
        """Whether there is a plan."""
        return self._files.exists(self._path(self._folder, "plan"))

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        return self._files.exists(self._end)

    def begin(self, plan: RoundPlan) -> None:
        """Record what is going to be read."""
        for folder in (self.staging, self._units):
            make_directories(self._files, folder)
        write_durably(self._files, self._path(self._folder, "plan"), plan.to_json())

    def plan(self) -> RoundPlan:
        """What is read."""
        path = self._path(self._folder, "plan")
        return RoundPlan.from_json(self._files.read(path, SIZE_LIMIT))

    def counted(self) -> Iterator[StagedUnit]:
        """The units that count, in the order of the plan."""
        for each in self._files.list(self._units):
            yield StagedUnit.from_json(self._files.read(self._path(self._units, each.name), SIZE_LIMIT))

    def staged(self) -> Iterator[StagedUnit]:
        """The units that were staged and do not count yet; of some there may be several."""
        for each in self._files.list(self.staging):
            if each.name.endswith(".json"):
                yield StagedUnit.from_json(self._files.read(self._path(self.staging, each.name), SIZE_LIMIT))

    def count(self, unit: StagedUnit) -> None:
        """Make a staged unit count, then show its files."""
        name = staged_name(unit.number)
        self._files.rename(self._path(self.staging, f"{unit.name}.json"), self._path(self._units, name))
        self._files.sync_directory(self._units)
        self.publish(unit)

    def publish(self, unit: StagedUnit) -> None:
        """Move the files of a unit that counts to where readers see them, as far as that was not done."""
        folders = set()
        for each in unit.files:
            target, staged = self._path(self._output, each.path), self._path(self.staging, each.staged)
            if self._files.exists(staged):
                folders.add(target.rpartition("/")[0])
                make_directories(self._files, target.rpartition("/")[0])
                self._files.rename(staged, target)
            elif not self._files.exists(target):
                raise KafkaError(f"{target}, a file of this export, is gone; export to another directory")
        for folder in sorted(folders):
            self._files.sync_directory(folder)

    def finish(self, plan: RoundPlan) -> None:
        """Record that nothing is left to do, and where each partition's export ended."""
        ends = {(each.topic, each.partition): each.end_offset for each in plan.ranges}
        for unit in self.counted():
            if unit.stopped_by is not None:
                ends[plan.units[unit.number].topic_partition] = unit.end_offset
        end = {"ends": [[*topic_partition, offset] for topic_partition, offset in ends.items()]}
        write_durably(self._files, self._end, json.dumps(end).encode())
        with suppress(OSError):  # a late attempt may still write there; nobody reads it
            remove_tree(self._files, self.staging)

    def ends(self) -> dict[TopicPartition, int]:
        """Where each partition's export ended. Only of a finished round."""
        end = json.loads(self._files.read(self._end, SIZE_LIMIT))
        return {TopicPartition(topic, partition): offset for topic, partition, offset in end["ends"]}
