"""``hand_over``: makes a stopped data directory safe for its next owner, or reports what prevents that.

Steps in order: recover a directory that was not stopped cleanly; check the registry and the files, and stop
changing anything if a fault needs the operator's decision; remove the marker of a clean stop, rebuild derived
files that contradict the log, and write the marker again. After an interruption at any point, the next run
has the same result.

A check runs the same steps on changes in memory over the directory (``OverlayFiles``), so its report is
exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from txnkafka.broker.registry.metadata_log import MetadataLog
from txnkafka.config import LogConfig
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.coordinator.registry.metadata_records import producer_ids
from txnkafka.env import write_durably
from txnkafka.env.overlay import OverlayFiles
from txnkafka.errors import KafkaError, LocatedError, LogDirError
from txnkafka.handover.derived_files import check_files
from txnkafka.handover.groups import group_rows
from txnkafka.handover.names import check_kinds, check_names
from txnkafka.handover.partitions import check_partitions, missing_topic_ids
from txnkafka.handover.recovery import recover
from txnkafka.handover.registry import (
    METADATA_DIRECTORY,
    Registry,
    has_registry,
    no_registry,
    read_registry,
)
from txnkafka.handover.registry_rules import check_levels, check_registry
from txnkafka.handover.report import HandOver, Owner, Step, error
from txnkafka.handover.settings import settings_of
from txnkafka.handover.transactions import coordinator_findings, hanging, may_be_decided, transaction_rows
from txnkafka.logdir import LogDir
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats.checkpoint import format_partition_metadata
from txnkafka.storage.formats.layout import CLEAN_SHUTDOWN_FILE, LOCK_FILE, PARTITION_METADATA
from txnkafka.storage.identity import identify
from txnkafka.storage.locked_directory import lock_directory
from txnkafka.storage.log.repair_step import RepairStep
from txnkafka.storage.ownership import locked_error
from txnkafka.storage.recovery.log_end import Repair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.formats.meta_properties import MetaProperties

_NEVER_MS = (1 << 63) - 1
_NOT_MENDED = "remove the file, and hand the directory over again; this is a fault of txnkafka"
_NOT_RECOVERED = "it was not stopped cleanly, and no broker can start on it: restore it from a backup"
_RECOVERY = "'txnkafka repair --full --truncate-corrupt' discards damaged data; copy the directory first"


def check(files: DataFiles, path: str, to: Owner, *, now_ms: int) -> HandOver:
    """Return the report that ``hand_over`` would return, without changing anything. Raises the same
    errors."""
    return _HandingOver(OverlayFiles(files), path, to, now_ms, is_planned=True).run()


def hand_over(files: DataFiles, path: str, to: Owner, *, now_ms: int) -> HandOver:
    """Make the directory at ``path`` ready for its next owner. A directory that was not stopped cleanly is
    first handed over in memory: if that fails, nothing is changed.

    Raises LogDirError if a broker has locked the directory or if it is not a data directory, KafkaError,
    OSError."""
    if not files.exists(files.join(path, CLEAN_SHUTDOWN_FILE)):
        planned = check(files, path, to, now_ms=now_ms)
        if not planned.is_possible:
            return planned
    return _HandingOver(files, path, to, now_ms, is_planned=False).run()


class _HandingOver:
    """One hand-over on ``files``, step by step."""

    def __init__(self, files: DataFiles, path: str, to: Owner, now_ms: int, *, is_planned: bool) -> None:
        self._files, self._path, self._to, self._now_ms = files, path, to, now_ms
        self._report = HandOver(path, to, is_planned)

    def run(self) -> HandOver:
        """Run all possible steps."""
        report = self._report
        self._identity = identity = self._identified()
        report.cluster_id, report.node_id = identity.cluster_id, identity.node_id
        report.was_clean = self._files.exists(self._files.join(self._path, CLEAN_SHUTDOWN_FILE))
        report.findings += check_kinds(self._files, self._path)
        metadata_log = self._files.join(self._path, METADATA_DIRECTORY)
        if not has_registry(self._files, self._path):
            report.findings.append(no_registry(metadata_log, self._to))
        if report.is_possible and not report.was_clean:
            self._recover()
        registry = Registry(ClusterImage())
        if report.is_possible and has_registry(self._files, self._path):
            registry = read_registry(self._files, self._path)
            self._check_registry(registry, metadata_log)
        if report.is_possible:
            self._mend(registry)
        if report.is_possible and report.was_clean:
            self._end_decided()
        if report.is_possible:
            self._tell(registry)
        return report

    def _identified(self) -> MetaProperties:
        if not self._files.is_directory(self._path):
            raise LogDirError(f"{self._path} does not exist, or is not a directory")
        self._files.list(self._path)  # without permission, its files would seem missing
        if self._files.is_locked(self._files.join(self._path, LOCK_FILE)):
            raise locked_error(self._files, self._path)
        identity = identify(self._files, self._path, None, None)
        if identity is None or identity.version == 0:
            raise LogDirError(
                f"{self._path} has no meta.properties of version 1: it is not the data directory of a broker"
            )
        return identity

    def _end_decided(self) -> None:
        """Write the markers decided by the coordinator's log, as a starting broker does."""
        log_dir = self._log_dir()
        views = (view for view in log_dir.partitions() if str(view.topic_partition) != METADATA_DIRECTORY)
        if may_be_decided(views, log_dir.coordinator):
            self._run_broker()

    def _recover(self) -> None:
        if self._run_broker():
            self._step(None, "recovered", "it was not stopped cleanly")

    def _run_broker(self) -> bool:
        """Start a broker on the directory and stop it cleanly; return False if it could not start."""
        where = self._files.join(self._path, METADATA_DIRECTORY)
        if has_registry(self._files, self._path):
            self._report.findings += check_levels(read_registry(self._files, self._path), where)
        if not self._report.is_possible:
            return False
        try:
            recovered = recover(self._files, self._path, now_ms=self._now_ms)
        except KafkaError as fault:
            self._report.findings.append(error("not-recovered", where, str(fault), _NOT_RECOVERED))
            return False
        self._refused(recovered.refused)
        for partition, step in recovered.steps:
            self._step(partition, step.action, step.why, step.what)
        return True

    def _refused(self, refused: Mapping[TopicPartition, KafkaError]) -> None:
        for partition, fault in sorted(refused.items()):
            where = self._files.join(self._path, str(partition))
            remedy = fault.remedy if isinstance(fault, LocatedError) else ""
            reason = str(fault).removesuffix(f". {remedy}")
            self._report.findings.append(error("refused-partition", where, reason, remedy or _RECOVERY))

    def _check_registry(self, registry: Registry, where: str) -> None:
        report, image = self._report, registry.image
        report.features, report.next_producer_id = dict(registry.features), image.next_producer_id
        report.findings += registry.findings
        if report.is_possible:
            report.findings += check_registry(registry, self._identity, self._to, where)
            report.findings += check_partitions(image, self._topic_ids(), self._to, self._path)
        if self._to is Owner.KAFKA:
            report.findings += check_names(self._files, self._path)

    def _log_dir(self) -> LogDir:
        return LogDir(self._path, file_system=self._files, io="pread")

    def _topic_ids(self) -> dict[TopicPartition, str | None]:
        return {
            source.topic_partition: source.topic_id
            for source in self._log_dir().sources
            if str(source.topic_partition) != METADATA_DIRECTORY
        }

    def _mend(self, registry: Registry) -> None:
        """Rebuild the files that contradict the logs, unless a log itself is damaged."""
        report, log_dir = self._report, self._log_dir()
        checked = check_files(log_dir, self._to)
        report.findings += checked.faults
        if not report.is_possible:
            return
        states = log_dir.coordinator.transactions.values()
        ids = (max(state.producer_id, state.next_producer_id) for state in states)
        report.largest_producer_id = max(ids, default=-1)
        self._rebuild(checked.unsound, registry.image)
        if report.is_possible and (report.steps or checked.unsound):
            left = check_files(self._log_dir(), self._to)
            report.findings += left.faults
            report.findings += [
                error("not-mended", file, reason, _NOT_MENDED) for file, reason in left.unsound.items()
            ]

    def _rebuild(self, unsound: Mapping[str, str], image: ClusterImage) -> None:
        """Check all batches, and rebuild the derived files that contradict them."""
        missing = missing_topic_ids(image, self._topic_ids())
        with lock_directory(self._files, self._path, makes_identity=False) as locked:
            self._write_topic_ids(missing)
            directory = DataDirectory(
                self._files, self._path, lambda topic: _log_config(image, topic), now_ms=self._now_ms,
                repair=Repair(full=True, unsound=unsound, hands_over=True), locked=locked,
            )  # fmt: skip
        try:
            self._keep_producer_ids(directory)
        except BaseException:
            directory.abandon()
            raise
        directory.close()
        for step in directory.repairs_of_directory:
            self._step(None, step.action, step.why, step.what)
        for partition, log in sorted(directory.logs.items()):
            for step in log.repairs:
                self._step(partition, step.action, step.why, step.what)
        self._refused(directory.refused)

    def _write_topic_ids(self, missing: Mapping[TopicPartition, str]) -> None:
        for partition, topic_id in missing.items():
            path = self._files.join(self._path, str(partition), PARTITION_METADATA)
            write_durably(self._files, path, format_partition_metadata(topic_id))
            self._step(partition, "written from the metadata log", "it is missing", PARTITION_METADATA)

    def _keep_producer_ids(self, directory: DataDirectory) -> None:
        """Record in the registry that all producer ids in the logs are assigned, so that none is assigned
        again."""
        report = self._report
        in_logs = (entry.producer_id for log in directory.logs.values() for entry in log.producers.entries())
        report.largest_producer_id = largest = max(report.largest_producer_id, max(in_logs, default=-1))
        if largest < report.next_producer_id or not has_registry(self._files, self._path):
            return
        why = f"{largest} is in the logs, and {report.next_producer_id} was the next one to assign"
        node_id = 1 if self._identity.node_id is None else self._identity.node_id
        metadata = MetadataLog(self._files, self._path, node_id, now_ms=self._now_ms)
        try:
            metadata.append([producer_ids(node_id, -1, largest + 1)], self._now_ms)
        finally:
            metadata.close()
        report.next_producer_id = largest + 1
        self._step(None, f"raised to {largest + 1}", why, "the next producer id")

    def _step(
        self, partition: TopicPartition | None, action: str, why: str, what: str = "the directory"
    ) -> None:
        step = RepairStep(what, action, why)
        text = step.planned if self._report.is_planned else str(step)
        self._report.steps.append(Step(None if partition is None else str(partition), text))

    def _tell(self, registry: Registry) -> None:
        """Report the fate of transactions and groups."""
        report, log_dir = self._report, self._log_dir()
        report.settings = settings_of(registry, self._identity, self._to, self._path)
        coordinator = log_dir.coordinator
        report.findings += coordinator_findings(coordinator)
        report.transactions = transaction_rows(coordinator, self._to, self._now_ms)
        views = [view for view in log_dir.partitions() if str(view.topic_partition) != METADATA_DIRECTORY]
        report.findings += hanging(views, coordinator, self._now_ms)
        report.groups = group_rows(log_dir.partitions(CONSUMER_OFFSETS_TOPIC), self._to, report.findings)


def _log_config(image: ClusterImage, topic: str) -> LogConfig:
    """Return the topic's settings that determine its index files."""
    interval = image.topic_configs(topic).get("index.interval.bytes")
    try:
        config = LogConfig.of({} if interval is None else {"index.interval.bytes": interval})
    except ValueError:
        config = LogConfig()
    return replace(config, producer_id_expiration_ms=_NEVER_MS)
