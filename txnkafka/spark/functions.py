"""Functions for binary columns with record batches, such as ``content`` of Spark's ``binaryFile``.

SQL has them after ``register(spark)``, under the names in ``SQL_NAMES``. They are Arrow UDFs and need Spark
4.1. The result for null is null.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

__all__ = [
    "RECORDS",
    "SQL_NAMES",
    "control_type",
    "crc_valid",
    "decode_committed_record_batches",
    "decode_record_batches",
    "register_functions",
    "try_decode_record_batches",
]

RECORDS = (
    "array<struct<offset: bigint, timestamp: timestamp, timestampType: int, key: binary, value: binary, "
    "headers: array<struct<key: string, value: binary>>, leaderEpoch: int, producerId: bigint, "
    "producerEpoch: int, sequence: int, isTransactional: boolean>>"
)
TYPES = {
    "decode_record_batches": RECORDS,
    "decode_committed_record_batches": RECORDS,
    "try_decode_record_batches": RECORDS,
    "crc_valid": "boolean",
    "control_type": "string",
}
ARROW_UDF: Any = getattr(sf, "arrow_udf", None)  # new in Spark 4.1
SQL_NAMES = {f"txnkafka_{name}": name for name in TYPES}


def decode_record_batches(column: Column | str) -> Column:
    """Return the records of batches in a binary column, as an array of structs (``RECORDS``).

    Records are not filtered by transaction, so aborted ones are included; control records are not. Damaged
    bytes fail the query with their position and a remedy."""
    return _apply("decode_record_batches", column)


def decode_committed_record_batches(
    column: Column | str, aborted: Column | str, last_stable_offset: Column | str
) -> Column:
    """Return the records of batches that a read_committed reader gets, as ``decode_record_batches`` does.

    ``aborted`` are the aborted transactions of the batches' partition: an array of structs with
    ``producerId``, ``firstOffset`` and ``lastOffset``, as in the table ``transactions``; null for none.
    Records at and above ``last_stable_offset`` are left out, none when it is null."""
    return _apply("decode_committed_record_batches", column, aborted, last_stable_offset)


def try_decode_record_batches(column: Column | str) -> Column:
    """Like ``decode_record_batches``, but null where the bytes are damaged."""
    return _apply("try_decode_record_batches", column)


def crc_valid(column: Column | str) -> Column:
    """Return whether the bytes are whole record batches with matching checksums; zeros may follow them."""
    return _apply("crc_valid", column)


def control_type(column: Column | str) -> Column:
    """Return ``commit``, ``abort``, a KRaft type or ``unknown`` if the bytes begin with a valid control
    batch, else null."""
    return _apply("control_type", column)


def register_functions(spark: SparkSession) -> None:
    """Register the functions for SQL, if this Spark version supports them."""
    if ARROW_UDF is not None:
        for sql_name, name in SQL_NAMES.items():
            spark.udf.register(sql_name, _arrow_udf(name))


def _apply(name: str, *columns: Column | str) -> Column:
    if ARROW_UDF is None:
        raise NotImplementedError(f"{name} needs Spark 4.1 or newer, which has Arrow UDFs")
    applied: Column = _arrow_udf(name)(*columns)
    return applied


def _arrow_udf(name: str) -> Any:
    """Create the UDF. It is not cached, since Spark's object belongs to one session."""
    from txnkafka.spark import arrow_functions

    return ARROW_UDF(getattr(arrow_functions, name), TYPES[name])
