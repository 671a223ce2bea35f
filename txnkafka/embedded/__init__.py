"""``txnkafka.Broker``: a broker with its clients in one process, over the server's dispatcher."""

from __future__ import annotations

from txnkafka.embedded.broker import Broker

__all__ = ["Broker"]
