"""`txnkafka serve` as a process that is killed at random moments and started again, on one port."""

from __future__ import annotations

import random
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.server.serving import EVENT_LOOPS, serve_command

__all__ = ["KilledServer"]

PORTS = range(20_000, 30_000)  # below the ports of connections: one of those could take it meanwhile
DURABILITIES = ("fsync", "page_cache")
SECONDS = 60.0


class KilledServer:
    """``kills`` and ``kills_of_starts`` count; ``start_seconds`` is what the first start took."""

    def __init__(self, data: Path, rng: random.Random, *options: str) -> None:
        self.kills = self.kills_of_starts = 0
        self.start_seconds = 0.0
        self._data, self._options, self._rng = data, options, rng
        self._port = _free_port()
        self.address = f"127.0.0.1:{self._port}"
        self._errors = (data.parent / "server.log").open("a+")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves."""
        began = time.monotonic()
        self._launch()
        self._wait_until_listening()
        self.start_seconds = self.start_seconds or time.monotonic() - began

    def kill_now_and_then(self, kills: int, seconds: tuple[float, float]) -> None:
        """Kill it so many times: so long after it serves, or, one time in four, while it starts. It serves
        before and afterwards."""
        for _ in range(kills):
            self.kill()
            while self._rng.random() < 0.25 and self.kills < kills:
                self.kill_a_start()
            if self.kills == kills:
                break
            self.start()
            time.sleep(self._rng.uniform(*seconds))
        self.start()

    def kill_a_start(self) -> None:
        """Start it, and kill it before it serves, or nearly so."""
        self._launch()
        time.sleep(self._rng.random() * self.start_seconds * 0.8)
        self.kills_of_starts += not self._is_listening(0)
        self.kill()

    def kill(self) -> None:
        """End it as a crash does."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"the server ended by itself:\n{self.log()[-4000:]}")
        self._process.kill()
        self._ended()
        self.kills += 1

    def pause(self, seconds: float) -> None:
        """Let it stand still so long, as a machine does that is suspended."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """Exit status after SIGTERM."""
        assert self._process is not None
        self._process.terminate()
        return self._ended()

    def log(self) -> str:
        """What all of them have printed on stderr."""
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._ended()
        self._errors.close()

    def _launch(self) -> None:
        durability = self._rng.choice(DURABILITIES)  # both are the same to whoever is killed
        options = ["--durability", durability, *self._options]
        command = serve_command(self._data, self._port, *options, event_loop=self._rng.choice(EVENT_LOOPS))
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors)

    def _is_listening(self, seconds: float) -> bool:
        assert self._process is not None
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def _wait_until_listening(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        if not self._is_listening(SECONDS) or not self._process.stdout.readline().startswith(b"listening"):
            raise RuntimeError(f"the server did not start:\n{self.log()[-4000:]}")

    def _ended(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        status = self._process.wait(SECONDS)
        self._process.stdout.close()
        return status


def _free_port() -> int:
    """Not by the seed of the test: another run with the same seed would get the same port, and its clients
    would connect to this server while their own is dead."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as found:
            if found.connect_ex(("127.0.0.1", port)):
                return port
    raise RuntimeError("there is no free port")
