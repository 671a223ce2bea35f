from typing_extensions import Buffer

class BatchFields:
    base_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    earliest_timestamp: int
    latest_timestamp: int
    partition_leader_epoch: int
    last_offset_delta: int
    base_sequence: int
    record_count: int
    bad_record: int
    keyless: int
    out_of_order: int
    size: int
    attributes: int
    producer_epoch: int
    magic: int
    crc_holds: bool
    problem: str
    record_problem: str

def read_batch(data: Buffer) -> BatchFields: ...
def read_records(batch: BatchFields, records: Buffer) -> None: ...
