"""Reads the registry of a stopped directory, ``__cluster_metadata-0``, without changing it.

Apache Kafka truncates that log silently at the first bad batch, and then renames the directories of all
topics that this loses to ``…-stray``. So damage in the log is an error, and the hand-over stops.

Source: ``KafkaRaftClient``, ``FileQuorumStateStore``, ``BootstrapDirectory``, ``LogManager.isStrayReplica``.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from txnkafka.broker.registry.metadata_log import formatted_levels, formatted_records
from txnkafka.broker.registry.metadata_replay import MetadataReplay
from txnkafka.broker.registry.metadata_snapshot import (
    KRAFT_VOTERS,
    control_type,
    find_snapshots,
    read_checkpoint,
)
from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.coordinator.registry.metadata_records import decode_control_body
from txnkafka.errors import KafkaError
from txnkafka.handover.report import Owner, error, warning
from txnkafka.storage.formats.layout import BOOTSTRAP_CHECKPOINT, parse_segment_file
from txnkafka.storage.formats.limits import SMALL_FILE_LIMIT
from txnkafka.storage.formats.segment_reader import LogFileReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.env import DataFiles
    from txnkafka.logdir import Finding

METADATA_DIRECTORY = "__cluster_metadata-0"
_NUMBERS: Final = dict.fromkeys(("leaderId", "leaderEpoch", "votedId"), (int,))
_QUORUM_STATE: Final[dict[int, dict[str, tuple[type, ...]]]] = {  # version → field → types
    0: {**_NUMBERS, "clusterId": (str,), "appliedOffset": (int,), "currentVoters": (list, type(None))},
    1: {**_NUMBERS, "votedDirectoryId": (str,)},
}
_LAST_EPOCH: Final = (1 << 31) - 1
_RESTORE = "restore the directory __cluster_metadata-0 from a backup; without it no topic is known"


@dataclass(frozen=True)
class Registry:
    """The content of the metadata log, and the faults of its files. ``voters`` are the voters in the log
    (KIP-853), with their directory ids and endpoints; empty if the configuration names the voter."""

    image: ClusterImage
    kraft_version: int = 0
    voters: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    formatted: Mapping[str, int] = field(default_factory=dict)

    @property
    def features(self) -> Mapping[str, int]:
        """The feature levels in the log, or before the first start those written by ``kafka-storage
        format``."""
        return self.image.features or self.formatted


def has_registry(files: DataFiles, path: str) -> bool:
    """Return True if the data directory at ``path`` has a metadata log. Raises OSError."""
    return files.is_directory(files.join(path, METADATA_DIRECTORY))


def no_registry(directory: str, to: Owner) -> Finding:
    """Return the finding for a directory without a metadata log, such as a broker's with its controller on
    another node."""
    text = "the directory has no metadata log"
    if to is Owner.KAFKA:
        message = f"{text}: Apache Kafka begins a new cluster, and renames the partitions to …-stray"
        return error("no-metadata-log", directory, message, _RESTORE)
    message = f"{text}: the partitions become topics with the settings of the broker"
    remedy = "restore the metadata log if it exists, else set --config, above all log.retention.ms"
    return warning("no-metadata-log", directory, message, remedy)


def read_registry(files: DataFiles, path: str) -> Registry:
    """Read the registry of the data directory at ``path``. Faults become findings. Raises OSError."""
    directory = files.join(path, METADATA_DIRECTORY)
    findings = [*_quorum_state(files, directory), *_bootstrap(files, path)]
    state = MetadataReplay()
    try:
        _replay(files, directory, state)
    except KafkaError as fault:
        findings.append(error("bad-metadata-log", directory, str(fault), _RESTORE))
    formatted: dict[str, int] = {}
    with suppress(KafkaError):  # damaged file: reported as a finding
        formatted = formatted_levels(formatted_records(files, path, state))
    return Registry(state.image, state.kraft_version, _voters(state), findings, formatted)


def _replay(files: DataFiles, directory: str, state: MetadataReplay) -> None:
    snapshots = find_snapshots(files, directory)
    newest = snapshots[-1] if snapshots else None
    for _ in state.load(files, directory, newest):
        pass
    segments = sorted(
        (parsed.base_offset, entry)
        for entry in files.list(directory)
        if (parsed := parse_segment_file(entry.name)) and parsed.kind == "log" and not parsed.suffix
    )
    begin = 0 if newest is None else newest.end_offset
    if segments and segments[0][0] > begin:
        raise KafkaError(f"it begins at offset {segments[0][0]}, and no snapshot has the earlier records")
    for base_offset, entry in segments:
        path = files.join(directory, entry.name)
        for _ in state.read(LogFileReader(files, path, entry.size)) if entry.size else ():
            pass
        state.check_follows(base_offset, path)


def _voters(state: MetadataReplay) -> list[dict[str, Any]]:
    for key, value in state.voters:
        if int.from_bytes(key[2:4], "big") == KRAFT_VOTERS:
            body = decode_control_body(KRAFT_VOTERS, value).value or {}
            return list(body.get("voters", ()))
    return []


def _quorum_state(files: DataFiles, directory: str) -> list[Finding]:
    path = files.join(directory, "quorum-state")
    if not files.exists(path):
        return []  # the next election writes the file
    try:
        fault = _fault_of_quorum_state(json.loads(files.read(path, SMALL_FILE_LIMIT)))
    except (ValueError, RecursionError) as wrong:
        fault = repr(wrong)
    if not fault:
        return []
    remedy = "remove the file: the next election uses the log instead"
    return [error("bad-quorum-state", path, f"it is damaged, and no broker starts with it: {fault}", remedy)]


def _fault_of_quorum_state(state: Any) -> str:
    version = state.get("data_version") if isinstance(state, dict) else None
    fields = _QUORUM_STATE.get(version) if isinstance(version, int) else None
    if fields is None:
        return f"data_version is {version!r}"
    wrong = [name for name, kind in fields.items() if name not in state or type(state[name]) not in kind]
    if wrong:
        return f"{wrong[0]} is {state.get(wrong[0], 'missing')!r}"
    epoch = state["leaderEpoch"]
    return "" if 0 <= epoch < _LAST_EPOCH else f"leaderEpoch is {epoch}, and no larger epoch is possible"


def _bootstrap(files: DataFiles, path: str) -> list[Finding]:
    path = files.join(path, BOOTSTRAP_CHECKPOINT)
    if not files.exists(path):
        return []
    try:
        if any(control_type(record) is None for record in read_checkpoint(files, path)):
            return []
        fault = "it is empty"
    except KafkaError as wrong:
        fault = str(wrong)
    remedy = "remove the file: it is only needed before the first start"
    return [error("bad-bootstrap-checkpoint", path, f"Apache Kafka does not start with it: {fault}", remedy)]
