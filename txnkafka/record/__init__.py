"""What a record batch means: its codecs, its control records."""

from __future__ import annotations

from txnkafka.record.compression import CompressionType, Decompressor

__all__ = ["CompressionType", "Decompressor"]
