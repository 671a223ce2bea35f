"""The view of one log directory, or of several directories of one broker: topics, partitions, checkpoints.

Accepted paths: a broker's log directory, a copy of one, a single partition directory, a single ``.log`` file.
Checkpoints, markers and metadata may be missing; their facts are then unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, get_args

from txnkafka.env import AnyPath, DirectoryEntry, FileSystem, list_of_paths, open_file_system, thread_count
from txnkafka.errors import LogDirError, UnknownTopicOrPartitionError
from txnkafka.logdir.directory_files import CHECKPOINTS, DirectoryFiles
from txnkafka.logdir.directory_files import ReadMethod as ReadMethod
from txnkafka.logdir.display import html_table
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.names import topic_matches, what_there_is, without_internal
from txnkafka.logdir.partition import PartitionView
from txnkafka.logdir.partition_source import PartitionSource
from txnkafka.logdir.partitions import Partitions, PartitionTables
from txnkafka.model import TopicPartition
from txnkafka.storage.formats import (
    META_PROPERTIES,
    PARTITION_METADATA,
    PartitionDirectory,
    parse_partition_directory,
    parse_segment_file,
)
from txnkafka.storage.formats.kafka_files import holds_log

if TYPE_CHECKING:
    from txnkafka.logdir.coordinator import CoordinatorView
    from txnkafka.logdir.groups import GroupsView, PendingOffset
    from txnkafka.wire.records import GroupOffset, TransactionMetadata

MOST_NAMED, MOST_SEARCHED = 3, 100


class TopicView(NamedTuple):
    """A topic: name, id (None if no partition has one), and the numbers of its partitions here."""

    name: str
    topic_id: str | None
    partitions: list[int]


class LogDir(PartitionTables):
    """Read-only view of one or more log directories. As a table: the records of all topics but Kafka's own.

    ``io``: ``auto`` maps files unless a broker has locked the directory, ``mmap`` and ``pread`` force the
    method. Files are opened on demand, and nothing is ever written. A path may be an address such as
    ``s3://bucket/kafka-logs``, which fsspec opens with ``storage_options``; local paths become absolute in
    ``paths``. ``threads`` is the number of threads that decode records of local files; default: one per
    processor, at most 4. Raises LogDirError for a path without a log."""

    def __init__(
        self,
        path: AnyPath | Iterable[AnyPath],
        *,
        io: ReadMethod = "auto",
        threads: int | None = None,
        storage_options: Mapping[str, object] | None = None,
        file_system: FileSystem | None = None,
    ) -> None:
        if io not in get_args(ReadMethod):
            raise ValueError(f"io must be auto, mmap or pread, not {io!r}")
        self.paths = list_of_paths(path)
        self.findings: list[Finding] = []
        self.other_directories: list[tuple[str, PartitionDirectory]] = []
        self._io = io
        if file_system is None:
            file_system, self.paths = open_file_system(self.paths, storage_options)
        if io == "mmap" and not file_system.maps_files:
            raise LogDirError(f"{self.paths[0]} cannot be mapped into memory: io must be auto or pread")
        self.file_system = file_system
        self.threads = thread_count(threads) if file_system.maps_files else 1
        self._sources: dict[TopicPartition, PartitionSource] = {}
        for each_path in self.paths:
            self._add(each_path)

    def __repr__(self) -> str:
        return f"LogDir({', '.join(map(repr, self.paths))})"

    def _repr_html_(self) -> str:
        """Return the topics as a table."""
        views = self.topics.values()
        rows = ((view.name, f"{len(view.partitions):,}", view.topic_id or "unknown") for view in views)
        caption = f"Log directory {', '.join(self.paths)}"
        return html_table(caption, ("topic", "partitions", "topic id"), rows, len(views))

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        """Return all partitions, sorted."""
        return sorted(self._sources)

    @property
    def sources(self) -> list[PartitionSource]:
        """Return the sources of all partitions, sorted by partition."""
        return [self._sources[topic_partition] for topic_partition in self.topic_partitions]

    @property
    def topics(self) -> dict[str, TopicView]:
        """Return the topics by name."""
        found: dict[str, TopicView] = {}
        for topic, partition in self.topic_partitions:
            topic_id = self._sources[TopicPartition(topic, partition)].topic_id
            view = found.setdefault(topic, TopicView(topic, topic_id, []))
            view.partitions.append(partition)
        return found

    def partition(self, topic: str, partition: int) -> PartitionView:
        """Return a view of the present state of one partition. Raises UnknownTopicOrPartitionError, which
        lists the existing ones, and TypeError unless ``topic`` is a str and ``partition`` an int."""
        if not isinstance(topic, str) or not hasattr(partition, "__index__"):
            raise TypeError(f"a partition is named by a str and an int, not by {topic!r} and {partition!r}")
        source = self._sources.get(TopicPartition(topic, partition))
        if source is not None:
            return PartitionView(source, directory=self)
        view = self.topics.get(topic)
        there = (
            what_there_is("partitions", list(map(str, view.partitions)), "")
            if view
            else what_there_is("topics", list(self.topics), topic)
        )
        raise UnknownTopicOrPartitionError(f"no {topic}-{partition} in {', '.join(self.paths)}; {there}")

    def partitions(self, topic: str | None = None) -> Iterator[PartitionView]:
        """Yield the view of each partition, or of each partition of a topic."""
        for topic_partition in self.topic_partitions:
            if topic is None or topic_partition.topic == topic:
                yield self.partition(*topic_partition)

    def topic(self, *names: str) -> Partitions:
        """Return all partitions of the topics with these names or matching these shell patterns
        (``"orders*"``). Raises UnknownTopicOrPartitionError for a name without a match."""
        there = list(self.topics)
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"a topic is named by a str, not by {name!r}")
            if not any(topic_matches(topic, name) for topic in there):
                hint = what_there_is("topics", there, name)
                raise UnknownTopicOrPartitionError(f"no topic {name} in {', '.join(self.paths)}; {hint}")
        chosen = [each for each in self._sources if any(topic_matches(each.topic, name) for name in names)]
        return Partitions([self.partition(*each) for each in sorted(chosen)])

    def _views(self) -> Iterator[PartitionView]:
        for topic_partition in without_internal(self.topic_partitions):
            with closing(self.partition(*topic_partition)) as view:
                yield view

    @cached_property
    def coordinator(self) -> CoordinatorView:
        """The state in the ``__transaction_state`` partitions here, loaded at first use."""
        from txnkafka.coordinator import TRANSACTION_STATE_TOPIC
        from txnkafka.logdir.coordinator import replay_transaction_log

        return replay_transaction_log(self.partitions(TRANSACTION_STATE_TOPIC))

    @cached_property
    def groups(self) -> GroupsView:
        """The offsets and members in the ``__consumer_offsets`` partitions here, loaded at first use."""
        from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
        from txnkafka.logdir.groups import replay_offsets_log

        names = {view.topic_id: view.name for view in self.topics.values() if view.topic_id is not None}
        return replay_offsets_log(self.partitions(CONSUMER_OFFSETS_TOPIC), names)

    def transactional_ids(self) -> dict[str, TransactionMetadata]:
        """Return the state of every transactional id in the ``__transaction_state`` partitions here."""
        return dict(self.coordinator.transactions)

    def committed_offsets(self) -> dict[tuple[str, TopicPartition], GroupOffset]:
        """Return the committed offset of each (group, topic partition)."""
        return dict(self.groups.committed)

    def pending_offsets(self) -> dict[tuple[str, TopicPartition], list[PendingOffset]]:
        """Return the offsets committed in open transactions, by (group, topic partition)."""
        return {key: list(pending) for key, pending in self.groups.pending.items()}

    def _add(self, path: str) -> None:
        try:
            if self.file_system.is_directory(path):
                self._add_directory(path)
            elif self.file_system.exists(path):
                self._add_segment(path)
            else:
                raise LogDirError(f"{path} does not exist")
        except OSError as error:
            raise LogDirError(f"cannot list {path}: {error.strerror or error}") from error

    def _add_directory(self, path: str) -> None:
        entries = self.file_system.list(path)
        named = self._named(path, entries)
        if self._is_partition(path, entries, named):
            self._add_single(path)
            return
        if named:
            self.file_system.load(path, (PARTITION_METADATA, *CHECKPOINTS))
        current = {directory.topic_partition for directory in named.values() if directory.state == "current"}
        directory = self._files_of(path, current)
        for name, parsed in named.items():
            full = self.file_system.join(path, name)
            if parsed.state != "current":
                self.other_directories.append((full, parsed))
            elif parsed.topic_partition in current:
                current.remove(parsed.topic_partition)
                self._register(directory.source(full, parsed.topic_partition))
            else:
                text = f"another spelling of {parsed.topic_partition}, which exists too"
                self._note("foreign-directory", "warning", full, text, "move it away: it is not read")
        if not directory.is_log_directory and not self._any_holds_log(path, named):
            why = self._log_directory_below(path, entries) or _nothing_of_kafka(list(named))
            raise LogDirError(f"{path} is not a Kafka log directory: {why}")

    def _log_directory_below(self, path: str, entries: Iterable[DirectoryEntry]) -> str:
        """Return a hint with the first directories in ``path`` that look like log directories; empty if none
        does."""
        directories = sorted(entry.name for entry in entries if entry.is_directory)
        found = [
            name for name in directories[:MOST_SEARCHED]
            if self._looks_like_log_directory(self.file_system.join(path, name))
        ]  # fmt: skip
        if not found:
            return ""
        names = ", ".join(f"'{name}'" for name in found[:MOST_NAMED])
        return f"{names} below it looks like one" if len(found) == 1 else f"{names} below it look like some"

    def _looks_like_log_directory(self, path: str) -> bool:
        try:
            names = [entry.name for entry in self.file_system.list(path) if entry.may_be_directory]
        except OSError:
            return False
        return self._any_holds_log(path, filter(parse_partition_directory, names))

    def _named(self, path: str, entries: Iterable[DirectoryEntry]) -> dict[str, PartitionDirectory]:
        """Return the directories with a partition's name, Kafka's own spelling first. An entry that cannot be
        opened counts as a partition if it has a partition's name; otherwise it is left out with a note."""
        found = {}
        for entry in entries:
            parsed = parse_partition_directory(entry.name) if entry.may_be_directory else None
            if parsed is not None:
                found[entry.name] = parsed
            elif entry.fault:
                full = self.file_system.join(path, entry.name)
                text = f"cannot be opened: {entry.fault}"
                self._note("unreadable-file", "note", full, text, "check permissions and where links lead")
        ordered = sorted(found.items(), key=lambda item: item[0] != str(item[1].topic_partition))
        return dict(ordered)

    def _is_partition(self, path: str, entries: list[DirectoryEntry], named: Iterable[str]) -> bool:
        """Return True for segments without partition directories; segments next to partition directories are
        findings."""
        logs = [entry.name for entry in entries if not entry.is_directory and entry.name.endswith(".log")]
        strays = list(filter(parse_segment_file, logs))
        if not strays or not self._any_holds_log(path, named):
            return bool(strays)
        for name in strays:
            text = "a segment beside partition directories belongs to none of them"
            self._note("foreign-file", "warning", self.file_system.join(path, name), text, "move it away")
        return False

    def _files_of(self, path: str, wanted: Iterable[TopicPartition]) -> DirectoryFiles:
        return DirectoryFiles(
            self.file_system, path, wanted, self.findings, threads=self.threads, io=self._io
        )  # fmt: skip

    def _note(self, code: str, severity: str, path: str, text: str, remedy: str) -> None:
        self.findings.append(Finding(path, None, severity, code, text, remedy))

    def _any_holds_log(self, path: str, names: Iterable[str]) -> bool:
        return any(self._holds_log(self.file_system.join(path, name)) for name in names)

    def _holds_log(self, path: str) -> bool:
        """Return True if a directory contains one of Kafka's files; the directory's name proves nothing."""
        try:
            names = [entry.name for entry in self.file_system.list(path)]
        except OSError:
            return False
        return holds_log(names)

    def _add_segment(self, path: str) -> None:
        parent, name = self.file_system.split(path)
        parsed = parse_segment_file(name)
        if parsed is None or parsed.kind != "log" or parsed.suffix:
            raise LogDirError(f"{path} is not a segment: its name must be a base offset (20 digits) and .log")
        self._add_single(parent, parsed.base_offset)

    def _add_single(self, path: str, only_base_offset: int | None = None) -> None:
        """Add a partition directory given by the caller; its parent may still be its log directory."""
        parent, name = self.file_system.split(path)
        parsed = parse_partition_directory(name)
        topic_partition = parsed.topic_partition if parsed else TopicPartition(name.strip(".") or "log", 0)
        directory = self._files_of(parent, {topic_partition})
        source = directory.source(path, topic_partition)._replace(is_named=parsed is not None)
        if parsed is not None and parsed.state != "current":
            source = source._replace(state=parsed.state)
        self._register(source._replace(only_base_offset=only_base_offset))

    def _register(self, source: PartitionSource) -> None:
        other = self._sources.setdefault(source.topic_partition, source)
        if other == source:
            return
        if other.path == source.path:
            raise LogDirError(
                f"several segments of {source.path} were given; give one of them, or the directory"
            )
        raise LogDirError(
            f"{source.topic_partition} is in two places, {other.path} and {source.path}; "
            "Kafka refuses to start on that too: read them one at a time"
        )


def _nothing_of_kafka(named: list[str]) -> str:
    """Return the missing part of a directory whose entries ``named`` only look like partitions."""
    if not named:
        return "it contains neither partition directories (topic-0) nor segments (*.log)"
    names = ", ".join([*named[:MOST_NAMED], *(["…"] if len(named) > MOST_NAMED else [])])
    return f"it has no {META_PROPERTIES}, and what looks like a partition ({names}) has no file of Kafka's"
