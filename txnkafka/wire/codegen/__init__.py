"""Readers and writers of frozen dataclasses, generated as Python source from the fields of the class.

``fields`` has the words in which a message class is written. ``reader_source`` and ``writer_source`` make the
source for one version of a message; ``compiled`` runs it when that version is first used, and keeps it.
"""

from __future__ import annotations

from txnkafka.wire.codegen.compiled import reader_of, writer_of
from txnkafka.wire.codegen.fields import Buffer

__all__ = ["Buffer", "reader_of", "writer_of"]
