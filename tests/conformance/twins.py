"""Two logs that get the same: Kafka's UnifiedLog and ours. Answers are compared, and the files in the end.

What differs by design stands in DIVERGENCES.md; it is the only thing that is put right here:

- a batch that is refused by its producer's state, or is a duplicate: Kafka has noted the leader epoch and
  rolled the segment by then; ours follows with ``_follow_refusal``;
- a duplicate that Kafka does not remember any more: ours finds it in the log;
- a duplicate of a batch in a transaction that has ended: ours refuses it;
- the first batch of an empty log with a sequence above 0: ours refuses it, Kafka gets none (KAFKA-15591);
- a cut inside a batch: Kafka leaves a gap, ours none, so it is moved to the batch's beginning;
- after a cut Kafka forgets verifications of producers whose batches it replays;
- snapshots at or below the log start, which Kafka removes; the order of a snapshot's entries, which is that
  of a hash map; producers in it that are idle for long;
- an empty ``.txnindex``, which Kafka leaves where everything was cut off;
- the epoch of a leader that has written nothing yet.

What Kafka forgets when it loads its files is not compared for as long as that can show, and no longer: the
last stable offset until the high watermark has passed what was there; the epoch of a coordinator, where Kafka
has none, must be one that Kafka said earlier. Never compared are the append time of a duplicate after a
restart (Kafka answers that of the producer's last batch) and of one that Kafka does not remember.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.append_answer import Answer, answer_of, repeats_ended
from tests.conformance.kafka_log import KafkaLog
from tests.conformance.log_files import differences
from txnkafka import TopicPartition
from txnkafka._core.encode import encode_batch
from txnkafka._core.validate import read_batch
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.errors import KafkaError, OutOfOrderSequenceError
from txnkafka.storage.cleaner.compaction import clean
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats.checkpoint import format_partition_metadata, parse_offset_checkpoint
from txnkafka.storage.formats.layout import PARTITION_METADATA, RECOVERY_POINT_CHECKPOINT, file_name
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import delete_old_segments

__all__ = ["START_MS", "Twins"]

PARTITION = TopicPartition("twin", 0)
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
START_MS = 1_700_000_000_000
FORGOTTEN = {45, 48}  # what Kafka says to a batch that it would have found before the restart
OF_PRODUCERS = {45, 47, 48, 52}  # what is told when Kafka has rolled already
NOT_FROM_KAFKA = {"max_idle_producers"}


class Twins:
    """``theirs`` is Kafka's state after the last step, from KafkaLog; ``now_ms`` is the clock of both."""

    def __init__(
        self, kafka: KafkaLog, directory: Path, config: Mapping[str, object], *, log: bytes = b""
    ) -> None:
        self.now_ms = START_MS
        self.theirs: dict[str, Any] = {}
        self.refusals = 0
        self._kafka = kafka
        self._config = LogConfig(**config)  # type: ignore[arg-type]
        self._options = {f"config.{_kafka_name(name)}": value for name, value in config.items()}
        self._theirs_at, self._ours_at = directory / "theirs" / str(PARTITION), directory / "ours"
        self._restarts = 0
        self._was_reloaded = False
        self._reloaded_end = 0  # the log's end when Kafka loaded its files last
        self._coordinator_epochs: dict[int, set[int]] = {}  # that Kafka told, by producer
        self._verified: set[int] = set()
        self._appended: dict[bytes, Answer] = {}  # by what tells a batch from others
        if log:
            self._begin_with(log)
        self._open_theirs(clean=not log, recovery_point=0, log_start=0)
        self._directory = self._open_ours()
        if not log:
            self._directory.create(PARTITION, TOPIC_ID, now_ms=self.now_ms)
        self.advance_high_watermark(self.ours.high_watermark)

    @property
    def ours(self) -> PartitionLog:
        """Our log, open."""
        return self._directory.logs[PARTITION]

    @property
    def _verifying(self) -> set[int]:
        return {each for each in self._verified if self.ours.verification.pending(each)}

    # Steps

    def append(
        self,
        batch: bytes,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        leader_epoch: int = 0,
        transaction_version: int = -1,
        guards: tuple[int, int] = (0, 0),
    ) -> Answer:
        """Append to both. ``guards`` are theirs and ours."""
        before = self.theirs
        ours = self._append_ours(batch, origin, leader_epoch, transaction_version, guards[1])
        if ours.code == OutOfOrderSequenceError.code and before["end"] == 0 and _sequence(batch) > 0:
            return ours
        self.theirs = self._kafka.ask(
            "append",
            batch=base64.b64encode(batch).decode(),
            epoch=leader_epoch,
            now=self.now_ms,
            origin=origin.name,
            version=transaction_version,
            guard=guards[0],
        )
        theirs = answer_of(self.theirs)
        is_written = self.theirs["end"] > before["end"]
        if ours.code == 0 and theirs.code in FORGOTTEN:
            # found in the log, below what Kafka remembers
            assert ours[:3] == self._appended[_identity(batch)][:3]
        elif not is_written and theirs.code == 0 and ours.code in FORGOTTEN:
            producer = self.ours.producers.entry(int.from_bytes(batch[43:51]))
            assert repeats_ended(batch[22], producer, theirs.first_offset), (ours, theirs)
        elif not is_written and self._was_reloaded:
            # after a restart Kafka takes the time of the producer's last batch for it
            assert ours[:3] == theirs[:3], self.theirs
        else:
            assert ours == theirs, self.theirs
        if is_written:
            self._appended[_identity(batch)] = theirs
        else:
            self._follow_refusal(theirs, leader_epoch, len(before["bases"]))
        self._agree("append")
        return theirs

    def _append_ours(
        self, batch: bytes, origin: AppendOrigin, leader_epoch: int, transaction_version: int, guard: int
    ) -> Answer:
        try:
            info = self.ours.append(
                batch,
                now_ms=self.now_ms,
                leader_epoch=leader_epoch,
                origin=origin,
                transaction_version=transaction_version,
                guard=guard,
            )
        except KafkaError as error:
            return Answer(error.code)
        return Answer(0, info.first_offset, info.last_offset, info.log_append_time)

    def _follow_refusal(self, theirs: Answer, leader_epoch: int, segments: int) -> None:
        """Before Kafka asks the producers' state, it has noted the leader epoch and rolled the segment. We
        have not; here we follow, so that the files can be compared."""
        self.refusals += 1
        if theirs.code in OF_PRODUCERS or theirs.code == 0:
            assert len(self.ours.segments) == segments
            self.ours.epochs.assign(leader_epoch, self.ours.log_end_offset)
            self.ours.set_epochs(self.ours.epochs)
            if len(self.theirs["bases"]) > segments:
                self.ours.roll(self.now_ms)

    def verify(self, producer_id: int, epoch: int, sequence: int, *, bump: bool) -> tuple[int, int]:
        """Begin the verification of a transaction; the guards, theirs and ours."""
        self.theirs = self._kafka.ask(
            "verify", producer=producer_id, epoch=epoch, sequence=sequence, bump=bump, now=self.now_ms
        )
        self._verified.add(producer_id)
        guard = 0

        def start() -> None:
            nonlocal guard
            guard = self.ours.verification.maybe_start(
                self.ours.producers,
                producer_id,
                epoch,
                sequence,
                supports_epoch_bump=bump,
                now_ms=self.now_ms,
            )

        assert _code(start) == self.theirs["code"]
        assert bool(guard) == bool(self.theirs.get("guard"))
        return self.theirs.get("guard", 0), guard

    def advance_high_watermark(self, offset: int) -> None:
        """Readers see what is below."""
        self.ours.offsets.advance_high_watermark(offset)
        self.theirs = self._kafka.ask("high_watermark", offset=self.ours.high_watermark)
        self._agree("high watermark")

    def truncate(self, offset: int) -> None:
        """Cut the end, at the beginning of a batch: Kafka would leave a gap."""
        place = self.ours.segments.find(self.ours.segments.number_of(offset), offset)
        offset = offset if place is None else min(place[2], offset)
        self._directory.truncate(PARTITION, offset, now_ms=self.now_ms)
        self.theirs = self._kafka.ask("truncate", offset=offset, now=self.now_ms)
        for producer_id in self._verifying - {*self.theirs["verifying"]}:
            # Kafka forgets them for the batches that it replays
            fields = {"producer_id": producer_id, "base_sequence": 0, "transactional": True}
            self.ours.verification.on_append(read_batch(encode_batch([(None, b"", 0)], **fields)))
        self._reloaded()
        # until it is told again, Kafka's last stable offset waits for transactions below the high watermark
        self.theirs = self._kafka.ask("high_watermark", offset=self.ours.high_watermark)
        self.expire()  # those that Kafka has replayed

    def delete_records(self, offset: int) -> None:
        """Cut the beginning."""
        self.theirs = self._kafka.ask("delete_records", offset=offset, now=self.now_ms)
        assert _code(lambda: self._directory.delete_records(PARTITION, offset)) == self.theirs["code"]
        self._agree("delete records")

    def retain(self) -> None:
        """What retention has to delete. Ours keeps a segment in front of one that no flush has named."""
        self._directory.flush()
        self.advance_high_watermark(self.ours.high_watermark)
        self.theirs = self._kafka.ask("retain", now=self.now_ms)
        assert delete_old_segments(self.ours, self.now_ms) == self.theirs["deleted"]
        self._agree("retention")

    def roll(self) -> None:
        """A new segment."""
        self.theirs = self._kafka.ask("roll", now=self.now_ms)
        self.ours.roll(self.now_ms)
        self._agree("roll")

    def clean(self, dirty_from: int = 0) -> int:
        """A pass of the cleaner; where the next one begins."""
        self.theirs = self._kafka.ask("clean", dirty=dirty_from, memory=1 << 20, now=self.now_ms)
        assert self.theirs["code"] == 0, self.theirs
        stats = clean(self.ours, now_ms=self.now_ms, dirty_from=dirty_from)
        assert [stats.end_offset, stats.first_uncleanable_offset] == [
            self.theirs["dirty"],
            self.theirs["uncleanable"],
        ]
        self._agree("clean")
        return stats.end_offset

    def expire(self) -> None:
        """Producers that were idle for long are forgotten."""
        self.theirs = self._kafka.ask("expire", now=self.now_ms)
        self.ours.producers.expire(self.now_ms, self._config.producer_id_expiration_ms)
        self.ours.verification.expire(self.now_ms, self._config.producer_id_expiration_ms)
        self._agree("expire")

    def wait(self, ms: int) -> None:
        """Time passes."""
        self.now_ms += ms
        self.theirs = self._kafka.ask("wait", now=self.now_ms)
        self.ours.local.remove_deleted(self.now_ms)

    def restart(self) -> None:
        """Stop cleanly, compare the files, start again."""
        self.close()
        self._reopen(clean=True, recovery_point=self.theirs["end"])

    def checkpoint(self) -> None:
        """Our log is durable up to here, and says so."""
        self._directory.flush()
        self._directory.data.checkpoint()
        self.advance_high_watermark(self.ours.high_watermark)

    def crash(self, *, lose_recovery_point: bool) -> None:
        """Both processes are killed behind a flush. Recovery begins at the same offset."""
        self._directory.flush()
        self._kafka.ask("abandon")
        killed = self._directory
        self._restarts += 1
        target = self._ours_at.with_name(f"ours-{self._restarts}")
        shutil.copytree(self._ours_at, target)
        self._ours_at = target
        for log in killed.logs.values():
            log.local.close_files()
        checkpoint = target / RECOVERY_POINT_CHECKPOINT
        if lose_recovery_point:
            checkpoint.unlink()
        points = {} if lose_recovery_point else parse_offset_checkpoint(checkpoint.read_bytes())
        self._reopen(clean=False, recovery_point=points.get(PARTITION, 0))

    def close(self) -> None:
        """Stop both cleanly and compare the files."""
        directory = self._directory
        self.ours.local.remove_deleted(1 << 62)
        directory.close()
        assert self._kafka.ask("close")["code"] == 0
        found = differences(
            self._theirs_at,
            self._ours_at / str(PARTITION),
            log_start=self.theirs["start"],
            log_end=self.theirs["end"],
            idle_since_ms=self.now_ms - self._config.producer_id_expiration_ms,
        )
        assert found == []

    # Both sides

    def _begin_with(self, log: bytes) -> None:
        for directory in (self._theirs_at, self._ours_at / str(PARTITION)):
            directory.mkdir(parents=True)
            (directory / PARTITION_METADATA).write_bytes(format_partition_metadata(TOPIC_ID))
            (directory / file_name(0, "log")).write_bytes(log)

    def _reopen(self, *, clean: bool, recovery_point: int) -> None:
        log_start = self.theirs["start"]
        self._open_theirs(clean=clean, recovery_point=recovery_point, log_start=log_start)
        self._directory = self._open_ours()
        assert self._directory.data.refused == {}
        self._reloaded()
        self.theirs = self._kafka.ask("high_watermark", offset=self.ours.high_watermark)
        # Kafka does not load idle producers; here those that are replayed go at the next opportunity
        self.expire()

    def _open_theirs(self, *, clean: bool, recovery_point: int, log_start: int) -> None:
        self.theirs = self._kafka.ask(
            "open",
            directory=self._theirs_at,
            now=self.now_ms,
            clean=clean,
            recovery_point=recovery_point,
            log_start=log_start,
            topic_id=TOPIC_ID,
            **self._options,
        )
        assert self.theirs["code"] == 0, self.theirs

    def _open_ours(self) -> LogManager:
        path = str(self._ours_at)
        return LogManager(DataDirectory(LocalDataFiles(), path, lambda _: self._config, now_ms=self.now_ms))

    def _reloaded(self) -> None:
        self._was_reloaded = True
        self._reloaded_end = self.ours.log_end_offset

    def _may_be_ahead(self) -> bool:
        """Whether Kafka's last stable offset may be above ours: when it loads a snapshot it forgets
        transactions that ended at or above the high watermark."""
        first = self.ours.producers.first_undecided_offset
        is_open = first is not None and first <= self.ours.last_stable_offset
        return self.ours.high_watermark < self._reloaded_end and not is_open

    def _agree(self, step: str) -> None:
        ours = self.ours
        state = {
            "start": ours.log_start_offset,
            "end": ours.log_end_offset,
            "hw": ours.high_watermark,
            "lso": ours.last_stable_offset,
            "bases": [segment.base_offset for segment in ours.segments],
            "epochs": [list(each) for each in ours.epochs.entries],
            "verifying": sorted(self._verifying),
            "producers": sorted(
                [
                    each.producer_id,
                    each.producer_epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    each.coordinator_epoch,
                    each.current_txn_first_offset,
                ]
                for each in ours.producers.entries()
            ),
        }
        theirs = {name: self.theirs[name] for name in state}
        theirs["producers"] = sorted(theirs["producers"])
        if ours.last_stable_offset < theirs["lso"] and self._may_be_ahead():
            state["lso"] = theirs["lso"]
        for mine, other in zip(state["producers"], theirs["producers"], strict=False):
            told = self._coordinator_epochs.setdefault(other[0], set())
            if other[4] != -1:
                told.add(other[4])
            elif self._was_reloaded and other[0] == mine[0] and mine[4] in told:
                other[4] = mine[4]  # Kafka forgets it for who was idle when the snapshot was loaded
        assert state == theirs, step


def _kafka_name(name: str) -> str:
    """What UnifiedLog calls it; the small sizes have a name of their own, for tests."""
    small = name in ("segment_bytes", "segment_index_bytes")
    return ("internal." if small and name == "segment_bytes" else "") + name.replace("_", ".")


def _sequence(batch: bytes) -> int:
    return int.from_bytes(batch[53:57], signed=True)


def _identity(batch: bytes) -> bytes:
    """Producer, epoch, sequence and count."""
    return batch[43:61]


def _code(action: Callable[[], object]) -> int:
    try:
        action()
    except KafkaError as error:
        return error.code
    return 0
