"""Resources shared by the logs of one owner, because each log rarely needs them."""

from __future__ import annotations

from txnkafka.storage.log.log_validator import LogValidator
from txnkafka.storage.log.open_files import OpenFiles


class LogResources:
    """``validator`` owns the buffers for validation, ``open_files`` the limit on open files. Only one thread
    at a time may use them, like the logs."""

    __slots__ = ("open_files", "validator")

    def __init__(self, *, max_open_files: int | None = None) -> None:
        self.validator = LogValidator()
        self.open_files = OpenFiles(max_open_files)
