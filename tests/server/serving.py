"""``txnkafka serve`` as a process of its own, on asyncio's event loop or on uvloop's."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

__all__ = ["EVENT_LOOPS", "EventLoop", "Serving", "free_ports", "serve_command"]

EventLoop = Literal["asyncio", "uvloop"]
WITHOUT_UVLOOP: Final = "import sys; sys.modules['uvloop'] = None; import txnkafka.cli.program as p; p.main()"
# without the extra `server`, uvloop is not installed; here it is, and the server uses it
_PROGRAMS: Final[dict[EventLoop, list[str]]] = {
    "asyncio": ["-c", WITHOUT_UVLOOP],
    "uvloop": ["-m", "txnkafka"],
}
EVENT_LOOPS: Final = tuple(_PROGRAMS)


def serve_command(data: Path, port: int, *options: str, event_loop: EventLoop = "asyncio") -> list[str]:
    """The command line of a broker on a data directory; ``__transaction_state`` has two partitions."""
    program = [sys.executable, *_PROGRAMS[event_loop], "serve"]
    address = ["--data", str(data), "--listen", f"127.0.0.1:{port}"]
    return [*program, *address, "--config", "transaction.state.log.num.partitions=2", *options]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback on which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Serving:
    """A broker on a data directory, ready for clients at ``address``, the address of its first listener."""

    def __init__(
        self,
        data: Path,
        *options: str,
        port: int = 0,
        event_loop: EventLoop = "asyncio",
        config_file: Path | None = None,
    ) -> None:
        self._log = (data.parent / f"{data.name}.log").open("a+")
        command = serve_command(data, port, *options, event_loop=event_loop)
        if config_file is not None:  # which has the addresses and the directory
            command = [*command[: command.index("serve") + 1], "--config-file", str(config_file), *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on 127.0.0.1:"):
            said = self.log()
            self.kill()
            self._log.close()
            raise RuntimeError(f"txnkafka serve does not listen: {said}")
        self.address = line.split()[-1]

    @property
    def host(self) -> str:
        return self.address.partition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.partition(":")[2])

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        """What it has printed on stderr."""
        self._log.seek(0)
        return self._log.read()

    def kill(self) -> None:
        self._process.kill()
        self._ended()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Exit status after a signal."""
        self._process.send_signal(number)
        return self._ended()

    def _ended(self) -> int:
        status = self._process.wait(90)  # syncs all logs, perhaps on a busy disk
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill it unless it has ended."""
        if self._process.poll() is None:
            self.kill()
        self._log.close()
