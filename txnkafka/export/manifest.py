"""The manifest of an output directory: its folder ``_txnkafka``, ignored by readers of the data.

    export.json                 id and options of the export, written once
    lock                        locked by the running export
    00000/plan                  the plan of a round, written before any record is read
    00000/staged/U-X/….staged   files of unit U, by attempt X
    00000/staged/U-X.json       ... they are complete and synced
    00000/units/U.json          the same record: the unit counts, its files belong to the export
    00000/finished.json         every unit counts, and the table is committed

A round is a job of the staging protocol (``txnkafka.staging``), and its units are the parts: once a unit
counts, its files move to their final place, and a run after a crash moves the remaining ones. So every
visible file belongs to exactly one unit that counts, and no unit counts twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from txnkafka.env import DataFiles, make_directories, unique_name, write_durably
from txnkafka.errors import KafkaError
from txnkafka.export.plan import ExportedEnd, RoundPlan
from txnkafka.export.unit import StagedUnit
from txnkafka.model import TopicPartition
from txnkafka.staging import StagingArea, publish

if TYPE_CHECKING:
    from txnkafka.env import Lock
    from txnkafka.export.options import ExportOptions

MANIFEST = "_txnkafka"
IDENTITY, LOCK = "export.json", "lock"  # files in the manifest; the first has the id and the options
VERSION = 3  # 1: a unit was a part of one segment; 2: a plan did not identify its logs
SIZE_LIMIT = 1 << 31


class Manifest:
    """The manifest of an output directory, locked while it is open."""

    def __init__(self, files: DataFiles, output: str, options: ExportOptions) -> None:
        """Lock the directory, which must be new, empty or contain an export with the same options. Raises
        KafkaError."""
        self.files = files
        self.output = output
        self.folder = files.join(output, MANIFEST)
        if not self._is_export() and not self._is_as_good_as_empty():
            raise KafkaError(f"{output} is not empty and contains no export; choose another directory")
        make_directories(files, self.folder)
        self._lock = self._take_lock()
        try:
            self.export_id = self._identify(options)
        except BaseException:
            self.close()
            raise

    def _is_export(self) -> bool:
        if not self.files.is_directory(self.folder):
            return False
        return any(each.name == IDENTITY and not each.is_directory for each in self.files.list(self.folder))

    def _is_as_good_as_empty(self) -> bool:
        """Return True if the output is new, or if an export stopped before it wrote anything else there."""
        if not self.files.exists(self.output):
            return True
        names = [entry.name for entry in self.files.list(self.output)]
        if names != [MANIFEST] or not self.files.is_directory(self.folder):
            return not names
        return {LOCK, f"{IDENTITY}.tmp"}.issuperset(each.name for each in self.files.list(self.folder))

    def _take_lock(self) -> Lock:
        lock = self.files.lock(self.files.join(self.folder, LOCK))
        if lock is None:
            raise KafkaError(f"another export into {self.output} is running; wait until it has ended")
        return lock

    def _identify(self, options: ExportOptions) -> str:
        path = self.files.join(self.folder, IDENTITY)
        if not self.files.exists(path):
            new = {"version": VERSION, "id": unique_name(), "options": options.as_dict()}
            write_durably(self.files, path, json.dumps(new).encode())
        recorded = json.loads(self.files.read(path, SIZE_LIMIT))
        if recorded["version"] != VERSION:
            raise KafkaError(f"{path} is of another version of txnkafka; export to another directory")
        options.check_same(recorded["options"], self.output)
        return str(recorded["id"])

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def rounds(self) -> list[Round]:
        """Return the planned rounds, in order."""
        numbers = [int(entry.name) for entry in self.files.list(self.folder) if entry.is_directory]
        found = [Round(self, number) for number in sorted(numbers)]
        return [past for past in found if past.is_planned]


class Round:
    """One round of an export, from its plan to its end."""

    def __init__(self, manifest: Manifest, number: int) -> None:
        self.number = number
        self._files = manifest.files
        self._output = manifest.output
        self._folder = self._files.join(manifest.folder, f"{number:05}")
        self._plan = self._files.join(self._folder, "plan")
        self._end = self._files.join(self._folder, "finished.json")
        self.area = StagingArea(self._files, self._folder, StagedUnit.from_json)

    @property
    def is_planned(self) -> bool:
        """Return True if the round has a plan."""
        return self._files.exists(self._plan)

    @property
    def is_finished(self) -> bool:
        """Return True if the round has ended."""
        return self._files.exists(self._end)

    def begin(self, plan: RoundPlan) -> None:
        """Store the plan durably."""
        self.area.create()
        write_durably(self._files, self._plan, plan.to_json())

    def plan(self) -> RoundPlan:
        """Read the plan."""
        return RoundPlan.from_json(self._files.read(self._plan, SIZE_LIMIT))

    def count(self, unit: StagedUnit) -> None:
        """Count a staged unit, then publish its files."""
        self.area.count(unit)
        self.publish(unit)

    def publish(self, unit: StagedUnit) -> None:
        """Move the remaining files of a counted unit to their final place."""
        join, staging = self._files.join, self.area.staging
        try:
            moves = [(join(staging, file.staged), join(self._output, file.path)) for file in unit.files]
            publish(self._files, moves)
        except FileNotFoundError as error:
            raise KafkaError(
                f"{error.args[0]}, a file of this export, is gone; export to another directory"
            ) from error

    def finish(self, plan: RoundPlan) -> None:
        """Record durably that the round has ended, with each partition's end."""
        ends = {(bounds.topic, bounds.partition): bounds.end for bounds in plan.ranges}
        for unit in self.area.counted():
            if unit.stopped_by is not None:
                stopped = plan.units[unit.number].topic_partition
                ends[stopped] = ExportedEnd(unit.end_offset, ends[stopped].topic_id)
        end = {"ends": [[*topic_partition, known] for topic_partition, known in ends.items()]}
        write_durably(self._files, self._end, json.dumps(end).encode())
        self.area.clear()

    def ends(self) -> dict[TopicPartition, ExportedEnd]:
        """Return the end of each partition's export; only for a finished round."""
        end = json.loads(self._files.read(self._end, SIZE_LIMIT))
        return {TopicPartition(*name): ExportedEnd(*known) for *name, known in end["ends"]}
