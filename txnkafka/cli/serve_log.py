"""The log of ``txnkafka serve`` on stderr: text for people, or JSON objects for programs.

A line that cannot be written is dropped: the server keeps running when the disk of its log is full or the
reader of its log has closed the pipe, and logs again as soon as it can.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from txnkafka.cli.output import Messages, json_text

if TYPE_CHECKING:
    from typing import BinaryIO

_LONGEST: Final = 20_000  # characters: a log line may contain names sent by clients
_LOST: Final = (OSError, ValueError)  # errors that drop a line; ValueError: stderr is closed


@contextmanager
def logging_to(messages: Messages, log_format: str) -> Iterator[None]:
    """Log as ``text`` or ``json`` in the with block, at the verbosity of ``messages``."""
    logger = logging.getLogger("txnkafka")
    handler = (_JsonHandler if log_format == "json" else _MessageHandler)(messages.verbosity)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if messages.verbosity > 0 else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _write(text: str) -> None:
    """Write whole lines to stderr without its buffer, which would keep failed lines and fail again at
    exit."""
    stream: BinaryIO = getattr(sys.stderr.buffer, "raw", sys.stderr.buffer)
    left = memoryview(text.encode("utf-8", "backslashreplace"))
    while left and (count := stream.write(left)):
        left = left[count:]


class _LogMessages(Messages):
    """Messages of a command that keeps running when stderr fails."""

    def write_lines(self, text: str) -> None:
        """Write whole lines to stderr."""
        _write(text)


class _MessageHandler(logging.Handler):
    """Prints log records as messages of the command."""

    def __init__(self, verbosity: int) -> None:
        super().__init__()
        self._messages = _LogMessages(verbosity)

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record, with the traceback if it has one."""
        text, messages = _cut(self.format(record)), self._messages
        if record.levelno >= logging.ERROR:
            show = messages.error
        elif record.levelno >= logging.WARNING:
            show = messages.warning
        else:
            show = messages.note if record.levelno >= logging.INFO else messages.detail
        with suppress(*_LOST):
            show(text)


class _JsonHandler(logging.Handler):
    """Prints log records as JSON, one a line: ``time`` (UTC), ``level``, ``logger``, ``message``, the
    ``fields`` of the record, and ``exception``, the traceback, if it has one."""

    def __init__(self, verbosity: int) -> None:
        super().__init__(logging.ERROR if verbosity < 0 else logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        when = datetime.fromtimestamp(record.created, UTC)
        row = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(record.getMessage()),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            row["exception"] = _cut(logging.Formatter().formatException(record.exc_info))
        with suppress(*_LOST):
            _write(f"{json_text(row)}\n")
