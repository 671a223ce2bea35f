"""What the logs of one owner share: each of them alone would need it only now and then."""

from __future__ import annotations

from txnkafka.storage.log.log_validator import LogValidator
from txnkafka.storage.log.open_files import OpenFiles

__all__ = ["LogResources"]


class LogResources:
    """``validator`` has the buffers that batches are validated in, ``open_files`` the limit on open files.
    For one thread at a time, as the logs."""

    __slots__ = ("open_files", "validator")

    def __init__(self, *, max_open_files: int | None = None) -> None:
        self.validator = LogValidator()
        self.open_files = OpenFiles(max_open_files)
