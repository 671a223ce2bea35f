"""Two partition directories, file by file."""

from __future__ import annotations

from pathlib import Path

from txnkafka._core.scan import scan
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.formats import parse_producer_snapshot
from txnkafka.storage.formats.checkpoint import EpochEntry, parse_leader_epoch_checkpoint
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT

__all__ = ["differences"]


def differences(
    theirs: Path, ours: Path, *, log_start: int, log_end: int, idle_since_ms: int
) -> list[str]:
    """Names of files that only one has, and of those that differ; producers that were idle since then do not
    count, nor do epochs that begin at the log end."""
    their_names, our_names = _names(theirs), _names(ours)
    # Kafka removes them when it opens the log; they may know more producers than the log
    our_names -= {name for name in our_names - their_names if _is_old_snapshot(name, log_start)}
    found = [f"theirs only: {name}" for name in sorted(their_names - our_names)]
    found += [f"ours only: {name}" for name in sorted(our_names - their_names)]
    epochs = [_epochs(path, log_end) for path in (theirs, ours)]
    if epochs[0] != epochs[1]:
        found.append(f"epochs: {epochs[0]} and {epochs[1]}")
    for name in sorted(their_names & our_names):
        contents = [(path / name).read_bytes() for path in (theirs, ours)]
        if name.endswith(".snapshot"):
            entries = [_producers(each, idle_since_ms) for each in contents]
            masked = [_as_kafka_has_it(*pair) for pair in zip(*entries, strict=False)]
            if masked != entries[0] or len(entries[0]) != len(entries[1]):
                found.append(f"{name}: {entries[0]} and {entries[1]}")
        elif contents[0] != contents[1]:
            found.append(_shown(name, *contents))
    return found


def _names(directory: Path) -> set[str]:
    """But for lists of aborted transactions that were cut to nothing: Kafka leaves the empty file. Epochs are
    looked at by themselves."""
    files = [each for each in directory.iterdir() if each.name != LEADER_EPOCH_CHECKPOINT]
    return {each.name for each in files if each.suffix != ".txnindex" or each.stat().st_size}


def _epochs(directory: Path, log_end: int) -> list[EpochEntry]:
    path = directory / LEADER_EPOCH_CHECKPOINT
    entries = parse_leader_epoch_checkpoint(path.read_bytes()) if path.exists() else []
    return [each for each in entries if each.start_offset < log_end]


def _producers(snapshot: bytes, idle_since_ms: int) -> list[ProducerStateEntry]:
    """As a set: Kafka writes them in the order of a hash map."""
    entries = parse_producer_snapshot(snapshot)
    return sorted(
        each for each in entries if each.last_timestamp > idle_since_ms or each.has_open_transaction
    )


def _as_kafka_has_it(theirs: ProducerStateEntry, ours: ProducerStateEntry) -> ProducerStateEntry:
    """Kafka forgets the coordinator of who was idle when a snapshot was loaded, and wrote again later."""
    forgotten = theirs.coordinator_epoch == -1 and theirs.producer_id == ours.producer_id
    return ours._replace(coordinator_epoch=-1) if forgotten else ours


def _is_old_snapshot(name: str, log_start: int) -> bool:
    return name.endswith(".snapshot") and int(name.split(".")[0]) <= log_start


def _shown(name: str, theirs: bytes, ours: bytes) -> str:
    if name.endswith(".log"):
        rows = [[tuple(each) for each in scan(content)] for content in (theirs, ours)]
        different = [pair for pair in zip(*rows, strict=False) if pair[0] != pair[1]]
        return f"{name}: {len(theirs)} and {len(ours)} bytes, {different[:2]}"
    return f"{name}: {theirs[:400]!r} and {ours[:400]!r}"
