"""The system calls of durable transactions of one record, by servers that do nothing else: in C, the least
that a server costs which syncs what it acknowledges, and on asyncio, the least with that event loop."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from bench.compiled import c_program
from bench.harness import Timing
from bench.servers import cpu_seconds, fresh, resident_bytes

__all__ = ["BareCallsSide"]

REQUESTS = ((b"a", 90), (b"p", 230), (b"e", 60))  # of a transaction, and about how many bytes they have
ANSWER_BYTES = 40


class BareCallsSide:
    """One client, which waits for each answer; ``language`` is C or asyncio."""

    output = "transactions"

    def __init__(self, language: str, count: int) -> None:
        self.name = f"{language}, system calls"
        self._language = language
        self._count = count
        self._done = 0

    def warm(self) -> None:
        """Start the server, and use it for a round."""
        self._server = subprocess.Popen(self._command(fresh(self.name)), stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        host, _, port = self._server.stdout.readline().split()[-1].rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.run()

    def _command(self, place: Path) -> list[str]:
        files = [str(place / "state"), str(place / "data")]
        if self._language == "C":
            return [str(c_program("transaction_calls")), *files]
        return [sys.executable, "-m", "bench.calls_in_asyncio", *files]

    def run(self) -> Timing:
        """One round; CPU time and memory are those of the server."""
        process, latencies = self._server.pid, []
        cpu, wall = cpu_seconds(process), time.perf_counter()
        for _ in range(self._count):
            begin = time.perf_counter()
            for request, size in REQUESTS:
                self._socket.sendall(request.ljust(size))
                self._socket.recv(ANSWER_BYTES, socket.MSG_WAITALL)
            latencies.append(time.perf_counter() - begin)
        cpu, wall = cpu_seconds(process) - cpu, time.perf_counter() - wall
        self._done += self._count
        return Timing(cpu, wall, self._count, resident_bytes(process), latencies=latencies)

    def digest(self) -> object:
        """How many transactions there were; there is nothing to compare them with."""
        return self._done

    def close(self) -> None:
        """Disconnect, which ends the server."""
        self._socket.close()
        self._server.wait()
