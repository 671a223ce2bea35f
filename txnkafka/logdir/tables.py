"""Records as Arrow record batches and tables, with the same methods for one and for several partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

from txnkafka.env.packages import import_package
from txnkafka.logdir.read_request import ReadRequest, Selection, request_of, takes_selection
from txnkafka.logdir.requested import count_requested, read_requested
from txnkafka.record.arrow import COLUMN_NAMES, arrow_schema, to_arrow
from txnkafka.record.filter import decoder_for

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from txnkafka.logdir.log_view import LogView


class Tables(ABC):
    """Reads the records of some partitions as tables with the columns of Spark's Kafka source. The selection
    applies to each partition: ``start_offset=-10`` selects the end of every partition."""

    @abstractmethod
    def _views(self) -> Iterator[LogView]:
        """Yield the partitions to read, in order."""

    @takes_selection
    def count(self, **selection: Unpack[Selection]) -> int:
        """Return the number of the selected records, from batch headers: CRCs are not checked, and only
        batches cut by a bound and sets of magic 0 and 1 are decoded. With ``where``, all batches are
        decoded."""
        request = request_of(**selection)
        return sum(count_requested(view, request) for view in self._views())

    @takes_selection
    def arrow_batches(
        self, columns: Sequence[str] = COLUMN_NAMES, **selection: Unpack[Selection]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records as Arrow record batches of about a megabyte, partition by partition in offset
        order. Memory is bounded unless the caller keeps the batches."""
        return self._batches(arrow_schema(columns), request_of(**selection))

    def _batches(self, schema: pa.Schema, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        new_decoder = partial(decoder_for, schema.names, request.where)
        for view in self._views():
            for chunk in read_requested(view, request, new_decoder):
                yield to_arrow(chunk, view.topic_partition, schema)

    @takes_selection
    def to_arrow(self, columns: Sequence[str] = COLUMN_NAMES, **selection: Unpack[Selection]) -> pa.Table:
        """Return the records as an Arrow table. Memory: the selected columns of the selected records, plus a
        bounded amount for reading."""
        schema, request = arrow_schema(columns), request_of(**selection)
        return import_package("pyarrow", "to_arrow", "arrow").Table.from_batches(
            self._batches(schema, request), schema
        )

    @takes_selection
    def to_pandas(
        self, columns: Sequence[str] = COLUMN_NAMES, **selection: Unpack[Selection]
    ) -> pd.DataFrame:
        """Return the records as a pandas DataFrame; keys and values are bytes objects. Briefly, the Arrow
        table also exists in memory."""
        import_package("pandas", "to_pandas", "pandas")
        frame: pd.DataFrame = self.to_arrow(columns, **selection).to_pandas()
        return frame

    @takes_selection
    def to_polars(
        self, columns: Sequence[str] = COLUMN_NAMES, **selection: Unpack[Selection]
    ) -> pl.DataFrame:
        """Return the records as a polars DataFrame, which shares the memory of the Arrow table where
        possible."""
        polars = import_package("polars", "to_polars", "polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow(columns, **selection))
        return frame
