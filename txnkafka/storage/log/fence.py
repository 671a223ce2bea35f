"""Stops appends to a log after its first I/O error, after it was closed, and in any process but its owner.

Source: KAFKA-10778; ``LogDirFailureChannel``.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from txnkafka.env import this_process
from txnkafka.errors import KafkaError, KafkaStorageError

if TYPE_CHECKING:
    from txnkafka.model import TopicPartition

LOG = logging.getLogger("txnkafka.storage")


class Fence:
    """``error`` is the error that stopped appends to the log in ``directory``; ``is_closed``: its owner has
    closed it. An append tests both and ``owner.is_here`` before it calls ``check``."""

    __slots__ = ("_directory", "error", "is_closed", "owner", "topic_partition")

    def __init__(self, topic_partition: TopicPartition, directory: str) -> None:
        self.topic_partition = topic_partition
        self._directory = directory
        self.owner = this_process()
        self.error: OSError | None = None
        self.is_closed = False

    def put_up(self, error: OSError | KafkaError) -> None:
        """Stop all further appends and acknowledgements. The first error is kept."""
        if self.error is None:
            self.error = error if isinstance(error, OSError) else OSError(errno.EIO, str(error))
            LOG.error("%s accepts no more appends: %s", self.topic_partition, error)

    def check_owner(self) -> None:
        """Raise LogDirError in any process that did not open the log, for example in a child, and
        KafkaStorageError for a closed log."""
        if not self.owner.is_here:  # tested without a call, because every append runs this
            self.owner.check(self._directory)
        if self.is_closed:  # the directory may have another owner now
            raise KafkaStorageError(f"{self.topic_partition} is closed: open {self._directory} again")

    def check(self) -> None:
        """Raise KafkaStorageError after an error and for a closed log, LogDirError in another process."""
        self.check_owner()
        if self.error is not None:
            raise KafkaStorageError(
                f"{self.topic_partition} is offline since {self._directory} failed: {self.error}. "
                "Opening the data directory again recovers all acknowledged records"
            )
