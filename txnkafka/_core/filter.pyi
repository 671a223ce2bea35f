from typing_extensions import Buffer

from txnkafka._core.columns import RecordColumns

def filter_records(source: RecordColumns, mask: Buffer, target: RecordColumns) -> None: ...
