"""Move an amount between two accounts whose records are in different partitions: both records count, or none.

    python examples/transfer.py DIRECTORY FROM TO AMOUNT

txnkafka has no transaction coordinator yet: this program is its own. The log ``decisions-0`` has a decision
for each transaction that is committed. The order makes it exact: (1) the data is durable in all partitions,
(2) the decision is durable, (3) the markers are written. When the program was stopped in between, its next
run completes the transaction: with a decision it is committed, without one it is aborted.

The markers are those of transaction version 2 (KIP-890): a marker has the epoch after that of its data, and
the next transaction begins with that epoch, so that nothing of an older transaction can enter it.
"""

from __future__ import annotations

import sys
import time

from txnkafka import LogDir
from txnkafka.log import (
    AppendOrigin,
    DataDirectory,
    LocalDataFiles,
    LogConfig,
    PartitionLog,
    TopicPartition,
    build_batch,
    end_txn_marker,
    perform,
    random_uuid,
)

ACCOUNTS = [TopicPartition("accounts", 0), TopicPartition("accounts", 1)]
DECISIONS = TopicPartition("decisions", 0)
PRODUCER_ID = 1000
LAST_EPOCH = 2**15 - 2  # its marker has the last epoch there is


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def opened(path: str, files: LocalDataFiles) -> DataDirectory:
    """The directory with all partitions, and no open transaction."""
    data = DataDirectory(files, path, lambda topic: LogConfig(), now_ms=now_ms())
    try:
        for error in data.refused.values():
            raise error  # a partition is damaged: the transaction may not be completed without it
        create_missing(data)
        complete(data, LogDir(path, file_system=files))
    except BaseException:
        data.close()
        raise
    return data


def create_missing(data: DataDirectory) -> None:
    """Create the partitions that are not there, with one topic id for each topic."""
    topic_ids = {partition.topic: topic_id for partition, topic_id in data.topic_ids.items()}
    missing = {
        partition: topic_ids.setdefault(partition.topic, random_uuid())
        for partition in (*ACCOUNTS, DECISIONS)
        if partition not in data.topic_ids
    }
    if missing:
        perform(data.creation(missing, now_ms=now_ms()))


def complete(data: DataDirectory, log_dir: LogDir) -> None:
    """End the transactions that an earlier run has left open."""
    decided = {record.key for record in log_dir.partition(*DECISIONS).records()}
    for partition in ACCOUNTS:
        log = data.logs[partition]
        for entry in log.producers.open_transactions():
            begins_at = entry.current_txn_first_offset
            end(log, entry.producer_epoch, commit=decision(log, begins_at) in decided)
        log.flush()


def decision(log: PartitionLog, offset: int) -> bytes:
    """The key of the decision to commit the transaction that begins at ``offset``; no other begins there."""
    return b"%s@%d" % (str(log.topic_partition).encode(), offset)


def transfer(data: DataDirectory, sender: str, receiver: str, amount: int) -> None:
    """Commit two records. When this raises, the outcome is decided by the next ``opened``."""
    logs = [data.logs[partition] for partition in ACCOUNTS]
    epoch = next_epoch(logs)
    changes = zip(logs, (sender, receiver), (-amount, amount), strict=True)
    first_offsets = [append(log, epoch, account, change) for log, account, change in changes]
    for log in logs:
        log.flush()

    decisions = zip(logs, first_offsets, strict=True)
    records = [(decision(log, offset), b"commit", now_ms()) for log, offset in decisions]
    data.logs[DECISIONS].append(build_batch(records), now_ms=now_ms())  # one batch: all of it, or nothing
    data.logs[DECISIONS].flush()

    for log in logs:
        end(log, epoch, commit=True)
        log.flush()


def next_epoch(logs: list[PartitionLog]) -> int:
    """The epoch of the next transaction, which the last marker has. Raises ValueError when none is left."""
    known = [log.producers.entry(PRODUCER_ID) for log in logs]
    epoch = max((entry.producer_epoch for entry in known if entry is not None), default=0)
    if epoch > LAST_EPOCH:
        raise ValueError(f"producer {PRODUCER_ID} has no epochs left: take another producer id")
    return epoch


def append(log: PartitionLog, epoch: int, account: str, change: int) -> int:
    """Append the only batch of the transaction in this partition; returns its offset."""
    now = now_ms()
    guard = log.verification.maybe_start(
        log.producers, PRODUCER_ID, epoch, 0, supports_epoch_bump=True, now_ms=now
    )
    batch = build_batch(
        [(account.encode(), b"%+d" % change, now)],
        producer_id=PRODUCER_ID,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    return log.append(batch, now_ms=now, guard=guard).first_offset


def end(log: PartitionLog, epoch: int, *, commit: bool) -> None:
    """Append the marker that ends the transaction in this partition."""
    marker = end_txn_marker(
        base_offset=0,
        timestamp=now_ms(),
        producer_id=PRODUCER_ID,
        producer_epoch=epoch + 1,
        coordinator_epoch=0,  # there is one coordinator: the process that holds the directory
        commit=commit,
    )
    log.append(marker, now_ms=now_ms(), origin=AppendOrigin.COORDINATOR, transaction_version=2)


def main(path: str, sender: str, receiver: str, amount: str) -> None:
    with opened(path, LocalDataFiles()) as data:
        transfer(data, sender, receiver, int(amount))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
