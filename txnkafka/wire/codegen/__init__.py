"""Readers and writers, generated as Python source: of frozen dataclasses from the fields of the class, of
dictionaries from the tables of ``wire.schema``.

``fields`` has the words in which a message class is written. ``reader_source`` and ``writer_source`` generate
the source for one version of a message; ``compiled`` runs it when that version is first used, and keeps it.
``table_readers`` and ``table_writers`` do so for tables.
"""

from __future__ import annotations

from txnkafka.wire.codegen.compiled import reader_of, writer_of
from txnkafka.wire.codegen.fields import Buffer

__all__ = ["Buffer", "reader_of", "writer_of"]
