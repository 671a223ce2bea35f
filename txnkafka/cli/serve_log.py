"""What ``txnkafka serve`` logs, on stderr: lines for people, or objects of JSON for programs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from txnkafka.cli.output import json_text

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages

__all__ = ["logging_to"]


@contextmanager
def logging_to(messages: Messages, log_format: str) -> Iterator[None]:
    """Log as ``text`` or ``json`` meanwhile, as much as ``messages`` says."""
    logger = logging.getLogger("txnkafka")
    handler = _JsonHandler(messages.verbosity) if log_format == "json" else _MessageHandler(messages)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if messages.verbosity > 0 else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _MessageHandler(logging.Handler):
    """Prints log records as messages of the command."""

    def __init__(self, messages: Messages) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record, with the traceback if it has one."""
        text = self.format(record)
        if record.levelno >= logging.ERROR:
            self._messages.error(text)
        elif record.levelno >= logging.WARNING:
            self._messages.warning(text)
        elif record.levelno >= logging.INFO:
            self._messages.note(text)
        else:
            self._messages.detail(text)


class _JsonHandler(logging.Handler):
    """Prints log records as JSON, one a line: ``time`` (UTC), ``level``, ``logger``, ``message``, and
    ``exception``, the traceback, if it has one."""

    def __init__(self, verbosity: int) -> None:
        super().__init__(logging.ERROR if verbosity < 0 else logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        when = datetime.fromtimestamp(record.created, UTC)
        row = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["exception"] = logging.Formatter().formatException(record.exc_info)
        sys.stderr.write(f"{json_text(row)}\n")
        sys.stderr.flush()
