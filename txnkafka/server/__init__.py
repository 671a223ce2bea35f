"""The wire protocol of the broker: sessions, handlers, and the only modules with sockets (``tcp``,
``connection``).
"""

from __future__ import annotations
