"""The request and the answer of an append."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.log_writer import AppendInfo as AppendInfo
from txnkafka._core.log_writer import appended as appended
from txnkafka._core.log_writer import duplicate as duplicate
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from typing_extensions import Buffer


class AppendRequest(NamedTuple):
    """One of several batches to append together; the fields are also parameters of
    ``PartitionLog.append``."""

    batch: Buffer
    origin: AppendOrigin = AppendOrigin.CLIENT
    transaction_version: int = -1
    guard: int = NO_GUARD
