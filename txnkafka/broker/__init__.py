"""Owns the logs of a data directory: flush tickets, maintenance, compaction."""

from txnkafka.broker.flush import Flush, FlushTickets, Released
from txnkafka.broker.log_manager import LogManager

__all__ = ["Flush", "FlushTickets", "LogManager", "Released"]
