from collections.abc import Iterable

from typing_extensions import Buffer

from txnkafka._core.record_input import RecordInput, _InputRecord

def encode_batch(
    records: RecordInput | Iterable[_InputRecord],
    *,
    start: int = 0,
    stop: int | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    delete_horizon: int | None = None,
    last_offset: int | None = None,
) -> bytearray: ...
def replace_payload(batch: Buffer, payload: Buffer, *, codec: int) -> bytearray: ...
def assign(batch: Buffer, position: int = 0, *, base_offset: int, partition_leader_epoch: int) -> None: ...
def set_producer(
    batch: Buffer,
    position: int = 0,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool | None = None,
) -> None: ...
def set_max_timestamp(
    batch: Buffer, position: int = 0, *, timestamp_type: int, max_timestamp: int
) -> None: ...
def end_txn_marker(
    *,
    base_offset: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    commit: bool,
    partition_leader_epoch: int = -1,
) -> bytes: ...
def empty_batch(
    *,
    base_offset: int,
    last_offset: int,
    max_timestamp: int,
    timestamp_type: int = 0,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes: ...
