"""The broker on the wire: sessions, handlers, and the one place with sockets (``txnkafka.server.tcp``)."""

from __future__ import annotations
