"""``BrokerProcess``: a broker in a process of its own, for tests of programs with any Kafka client."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final, Self

from txnkafka.testing.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_PROGRAM: Final = "txnkafka.testing.broker_program"
_STOP_SECONDS: Final = 30


class BrokerProcess:
    """A broker on ``directory``, by default a new temporary one, which ``close`` deletes. ``address`` with
    port 0 picks a port, which stays the same after ``kill`` and ``start``. ``settings`` are Kafka's."""

    def __init__(
        self,
        directory: str | None = None,
        *,
        address: str = "127.0.0.1:0",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._own = None if directory is not None else tempfile.mkdtemp(prefix="txnkafka-broker-")
        self.directory = directory or f"{self._own}/data"
        self._settings = json.dumps({**SETTINGS, **(settings or {})})
        self.bootstrap_servers = address
        # a pipe would fill up while the broker runs; close() closes it
        self._log = tempfile.TemporaryFile("a+")  # noqa: SIM115
        self._process: subprocess.Popen[str] | None = None
        self.is_used_up = False  # its clock was moved, or a fault was planned
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<BrokerProcess {self.bootstrap_servers}{'' if self.is_running else ' stopped'}>"

    @property
    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the broker again after ``kill`` or ``stop``, on the same directory and port. Raises
        RuntimeError if it does not start, with the reason."""
        if self._process is not None:
            raise RuntimeError(f"{self!r} runs already")
        command = [
            sys.executable,
            "-m",
            _PROGRAM,
            self.directory,
            self.bootstrap_servers,
            self._settings,
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self.bootstrap_servers = self._answer()

    def log(self) -> str:
        """Return the lines that the broker has logged, since the first start."""
        self._log.seek(0)
        return self._log.read()

    def kill(self) -> None:
        """Kill the process with SIGKILL, as the loss of a machine; acknowledged data is kept."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the broker cleanly."""
        self._end(None)

    def restart(self) -> None:
        """Kill the broker, unless that has been done, and start it again."""
        if self._process is not None:
            self.kill()
        self.start()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises RuntimeError with the broker's error."""
        self._call("create_topic", name, partitions)

    def advance(self, seconds: float) -> None:
        """Move the broker's clock forward; what is due then has happened when this returns."""
        self.is_used_up = True
        self._call("advance", round(seconds * 1000))

    def hang_transaction(self, topic: str, partition: int = 0, records: int = 1) -> int:
        """Append records of a transaction that no coordinator knows, and that holds back read_committed
        consumers; returns its producer id."""
        self.is_used_up = True
        result: int = self._call("hang_transaction", topic, partition, records)
        return result

    def fail_next_flush(self) -> None:
        """Let the next sync to the disk fail with EIO. The broker fences the partitions in it: they accept no
        writes until ``restart``, as Apache Kafka's offline directories."""
        self.is_used_up = True
        self._call("fail_next_flush")

    def drop_connections(self) -> int:
        """Close the connections of all clients, which connect again; returns their number."""
        result: int = self._call("drop_connections")
        return result

    def clean(self) -> None:
        """Delete all topics of users and all groups."""
        self._call("clean")

    def close(self) -> None:
        """Stop the broker, and delete its temporary directory."""
        if self._process is not None:
            self.kill()
        self._log.close()
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, *command: Any) -> Any:
        process = self._process
        if process is None or process.stdin is None:
            raise RuntimeError(f"{self!r} does not run: call start() first")
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            self._process = None
            process.communicate()
            raise RuntimeError(f"the broker has ended: {self.log().strip()[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the broker refused: {answer['error']}")
        return answer["result"]

    def _end(self, number: signal.Signals | None) -> None:
        process, self._process = self._process, None
        if process is None:
            raise RuntimeError(f"{self!r} does not run")
        if number is not None:
            process.send_signal(number)
        process.communicate(timeout=_STOP_SECONDS)  # also ends stdin
