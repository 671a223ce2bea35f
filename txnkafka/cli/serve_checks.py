"""What ``serve`` checks before it changes anything: that the directory is one of a broker, or new, and that
its addresses are free."""

from __future__ import annotations

import socket
from errno import EADDRINUSE
from typing import TYPE_CHECKING, Any, Final

from txnkafka.errors import LogDirError
from txnkafka.storage.formats import META_PROPERTIES, parse_partition_directory

if TYPE_CHECKING:
    from txnkafka.env import FileSystem

__all__ = ["address_text", "check_address", "check_data_directory"]

MOST_NAMED: Final = 3
OF_A_FILE_SYSTEM: Final = "lost+found"
CHECKPOINT: Final = "-checkpoint"


def check_data_directory(files: FileSystem, path: str) -> None:
    """Raise LogDirError for a file, and for a directory that is neither empty nor that of a broker. What a
    broker leaves that crashes while it creates the directory is as good as empty. Raises OSError."""
    if not files.is_directory(path):
        if files.exists(path):
            raise LogDirError(f"{path} is a file, not a directory")
        return
    names = [entry.name for entry in files.list(path)]
    if META_PROPERTIES in names or any(map(parse_partition_directory, names)):
        return
    if others := [name for name in names if not _may_be_in_a_new_one(name)]:
        more = f" and {len(others) - MOST_NAMED:,} more" if len(others) > MOST_NAMED else ""
        raise LogDirError(
            f"{path} has files, but neither {META_PROPERTIES} nor partitions (orders-0): it is not a data "
            f"directory; found: {', '.join(others[:MOST_NAMED])}{more}"
        )


def _may_be_in_a_new_one(name: str) -> bool:
    return name.startswith((".", META_PROPERTIES)) or name == OF_A_FILE_SYSTEM or CHECKPOINT in name


def check_address(option: str, host: str, port: int) -> None:
    """Raise OSError when this address cannot be listened on. A name may have addresses that this machine has
    not, such as ::1 of localhost: one that it has is enough."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        errors = [error for each in found if (error := _refusal(*each)) is not None]
        if errors and (len(errors) == len(found) or any(each.errno == EADDRINUSE for each in errors)):
            raise errors[0]
    except OSError as error:
        raise OSError(
            f"cannot listen on {address_text(host, port)}: {error.strerror}; "
            f"{option} HOST:PORT chooses another address, and port 0 a free port"
        ) from None


def _refusal(family: int, kind: int, protocol: int, name: str, address: Any) -> OSError | None:
    """Return why an address cannot be bound, or None."""
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def address_text(host: str, port: int) -> str:
    """Return HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
