"""Owns the logs of a data directory: group flushes, maintenance, compaction."""

from txnkafka.broker.flush import Flush, FlushQueue
from txnkafka.broker.log_manager import LogManager

__all__ = ["Flush", "FlushQueue", "LogManager"]
