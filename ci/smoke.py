"""Runs with an installed txnkafka, outside of any checkout: the compiled core loads and reads a batch."""

from __future__ import annotations

import struct
from importlib.metadata import distribution

import txnkafka
from txnkafka._core.columns import RecordColumns
from txnkafka._core.crc32c import crc32c
from txnkafka._core.decode import decode_batches
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan

RECORD = bytes([20, 0, 0, 0, 2]) + b"k" + bytes([6]) + b"abc" + bytes([0])  # lengths are zigzag varints
AFTER_CRC = struct.pack(">hiqqqhii", 0, 0, 1000, 1000, -1, -1, -1, 1) + RECORD
BATCH = struct.pack(">qiibI", 5, 9 + len(AFTER_CRC), 0, 2, crc32c(AFTER_CRC)) + AFTER_CRC

installed = {str(file) for file in distribution("txnkafka").files or ()}
for needed in ("txnkafka/py.typed", "txnkafka/_core/crc32c.pyi", "pyspark_txnkafka.py"):
    assert needed in installed, f"the wheel lacks {needed}"
assert any(file.endswith("share/doc/txnkafka/lso.md") for file in installed), "the wheel lacks its pages"
assert any(file.endswith("share/doc/txnkafka/pictures/show-80.svg") for file in installed), "no pictures"
assert distribution("txnkafka").metadata.get_all("Project-URL"), "the metadata has no URLs"
description = str(distribution("txnkafka").metadata.get_payload())
assert "](https://" in description, "the description is not README.md"
assert "](docs/" not in description, "the description has links that are dead on an index"
for suffix in (".pyx", ".c"):
    assert not any(file.endswith(suffix) for file in installed), f"the wheel contains {suffix} files"

assert crc32c(b"123456789") == 0xE3069283
index, columns = scan(BATCH), RecordColumns()
assert decode_batches(BATCH, index, select(index), 0, len(index), columns) == 1
assert memoryview(columns.offsets).tolist() == [5]
assert bytes(memoryview(columns.value_data)) == b"abc"
print(f"txnkafka {txnkafka.__version__} from {txnkafka.__file__} reads a batch")
