"""Converts Kafka's ids: 16 bytes, written as 22 characters of URL-safe base64 without padding.

Topic ids and directory ids have the same form. The zero id means "none" and is never a valid topic id.

Source: ``org.apache.kafka.common.Uuid``.
"""

from __future__ import annotations

import base64
import re

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_ZERO = bytes(16)


def topic_id_from_bytes(data: bytes) -> str:
    """Return the 22 characters for 16 bytes."""
    if len(data) != 16:
        raise ValueError(f"a topic id has 16 bytes, not {len(data)}")
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def topic_id_to_bytes(text: str) -> bytes:
    """Return the 16 bytes for 22 characters. Raises ``ValueError`` for anything else."""
    if not _TOPIC_ID.fullmatch(text):
        raise ValueError(f"not an id: {text[:40]!r}; it has 22 characters, as random_uuid() makes them")
    return base64.urlsafe_b64decode(text + "==")


def parse_topic_id(text: str) -> str:
    """Return the id in its canonical spelling. Raises ``ValueError`` when it is malformed or zero."""
    data = topic_id_to_bytes(text)
    if data == _ZERO:
        raise ValueError("the id is zero")
    return topic_id_from_bytes(data)
