"""Frames that are no requests, or unusual ones: both brokers close the connection, or neither does."""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["FRAMES"]


def _frame(key: int, version: int, body: bytes = b"", client_id: bytes = b"\0\1c") -> bytes:
    content = struct.pack(">hhi", key, version, 7) + client_id + body
    return struct.pack(">i", len(content)) + content


_END_TXN = b"\0\1x" + struct.pack(">qhb", 5, 0, 1)
_FLEXIBLE_END_TXN = b"\2x" + struct.pack(">qhb", 5, 0, 1)
FRAMES: Final = {
    "an unknown API": _frame(999, 0),
    "a negative API": _frame(-1, 0),
    "Metadata in an unknown version": _frame(3, 99),
    "Produce 2, which is announced": _frame(0, 2),
    "InitProducerId 6, which is unstable": _frame(22, 6, b"\0" * 20),
    "ApiVersions in an unknown version": _frame(18, 99, b"\0\1\1\0"),
    "ApiVersions in a negative version": _frame(18, -1),
    "ApiVersions 5 with a flexible header": _frame(18, 5, b"\0\0\0\0"),
    "ApiVersions 0": _frame(18, 0),
    "ApiVersions 0 without a client id": _frame(18, 0, client_id=b"\xff\xff"),
    "a client id that is cut off": _frame(18, 0, client_id=b"\0\7c"),
    "a header that is cut off": b"\0\0\0\4\0\x12\0\0",
    "an empty frame": b"\0\0\0\0",
    "a negative size": b"\xff\xff\xff\xff",
    "a size above the limit": b"\x06\x40\x00\x01",
    "a body that is cut off": _frame(26, 1, _END_TXN[:-1]),
    "bytes behind the body": _frame(26, 1, _END_TXN + b"more"),
    "an unknown tagged field": _frame(26, 3, b"\0" + _FLEXIBLE_END_TXN + b"\1\x63\2ab"),
    "a tagged field in the header": _frame(26, 3, b"\1\5\1a" + _FLEXIBLE_END_TXN + b"\0"),
    "null where it is not allowed": _frame(26, 1, b"\xff\xff" + _END_TXN[3:]),
    "an array longer than the frame": _frame(3, 1, b"\x7f\xff\xff\xff"),
    "a null array where it is not allowed": _frame(20, 1, b"\xff\xff\xff\xff\0\0\0\1"),
    "a null array where it is allowed": _frame(27, 1, b"\0\1\0"),
    "ControlledShutdown, which needs another listener": _frame(7, 3, b"\0" * 13),
    "a vote, which needs another listener": _frame(52, 0, b"\0" * 8),
}
"""What is sent, its size first."""
