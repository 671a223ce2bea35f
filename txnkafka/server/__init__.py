"""The broker on the wire: sessions, handlers, and the place with sockets (``tcp``, ``connection``)."""

from __future__ import annotations
