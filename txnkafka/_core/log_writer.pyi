from typing import NamedTuple

from typing_extensions import Buffer

from txnkafka._core.producer_rules import Checked
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.validate import BatchRules, IncomingBatch

class AppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    is_duplicate: bool
    leader_epoch: int
    durable_at: int

def appended(batch: IncomingBatch, log_start_offset: int, leader_epoch: int) -> AppendInfo: ...
def duplicate(checked: Checked, log_start_offset: int, leader_epoch: int) -> AppendInfo: ...

class LogEnds:
    log_start: int
    high_watermark: int
    log_end: int
    def on_append(self, log_end: int) -> None: ...

class LogWriter:
    rules: BatchRules
    producers: ProducerTable
    offsets: LogEnds
    config: object
    guarded_by: object
    flushing: object
    local: object
    segments: object
    verification: object
    known_epoch: int | None
    def append(
        self,
        batch: Buffer,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        origin: int = 2,
        transaction_version: int = -1,
        guard: int = 0,
    ) -> AppendInfo: ...
    def take_in(self, batch: IncomingBatch, position: int, leader_epoch: int, now_ms: int) -> None: ...
