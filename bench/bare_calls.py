"""The system calls of durable transactions of one record, by a server in C that does nothing else: no server
that syncs what it acknowledges costs less."""

from __future__ import annotations

import socket
import subprocess
import time

from bench.compiled import c_program
from bench.harness import Timing
from bench.servers import cpu_seconds, fresh, resident_bytes

__all__ = ["BareCallsSide"]

REQUESTS = ((b"a", 90), (b"p", 230), (b"e", 60))  # of a transaction, and about how many bytes they have
ANSWER_BYTES = 40


class BareCallsSide:
    """One client, which waits for each answer."""

    name, output = "C, system calls", "transactions"

    def __init__(self, count: int) -> None:
        self._count = count
        self._done = 0

    def warm(self) -> None:
        """Start the server, and use it for a round."""
        place = fresh("bare-calls")
        program = c_program("transaction_calls")
        self._server = subprocess.Popen(
            [str(program), str(place / "state"), str(place / "data")], stdout=subprocess.PIPE, text=True
        )
        assert self._server.stdout is not None
        host, _, port = self._server.stdout.readline().split()[-1].rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.run()

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
