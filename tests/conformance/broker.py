"""Apache Kafka as one process: broker and controller in one, on the loopback, in a directory of its own."""

from __future__ import annotations

import base64
import contextlib
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.conformance.maven import kafka_jars
from tests.server.serving import free_ports

__all__ = ["KafkaBroker", "java"]

START_SECONDS = STOP_SECONDS = 120
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "broker.session.timeout.ms": "15000",  # on a busy machine it must not be fenced
    # after a kill Kafka 4.4 does not register a broker before the session of the killed one is over
    "initial.broker.registration.timeout.ms": "120000",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}


def java(memory: str, *arguments: str, jars: Path | None = None) -> list[str]:
    """The command for a main class of Kafka, or of another release in ``jars``."""
    return ["java", memory, "-XX:+UseSerialGC", "-cp", f"{jars or kafka_jars()}/*", *arguments]


class KafkaBroker:
    """``with KafkaBroker(directory) as kafka:`` formats the directory, starts Kafka there, and stops it in
    the end, whatever happens. Its files are in ``log_dir``, what it logs in ``server.log``. With
    ``is_static`` the only voter is in the configuration, and not in the directory. ``release`` gives the
    levels of features that the directory is formatted with, ``features`` other levels of some. ``jars`` is a
    directory with another release of Kafka than the newest.
    """

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        is_static: bool = False,
        release: str | None = None,
        features: Mapping[str, int] | None = None,
        jars: Path | None = None,
        jvm_options: Sequence[str] = ("-Xmx512m", "-XX:+UseSerialGC"),
    ) -> None:
        self._jvm_options, self._jars = jvm_options, jars or kafka_jars()
        self._levels = [] if release is None else ["--release-version", release]
        for name, level in (features or {}).items():
            self._levels += ["--feature", f"{name}={level}"]
        self.log_dir = directory / "data"
        self.config = directory / "server.properties"
        self._log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        port, controller_port = free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        controller = f"127.0.0.1:{controller_port}"
        addresses = {
            **(
                {"controller.quorum.voters": f"1@{controller}"}
                if is_static
                else {"controller.quorum.bootstrap.servers": controller}
            ),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(self.log_dir),
        }
        directory.mkdir(parents=True, exist_ok=True)
        lines = {**PROPERTIES, **addresses, **(properties or {})}
        self.config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    @property
    def process_id(self) -> int:
        """Of the running broker."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> KafkaBroker:
        self.format()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait until it serves; raises RuntimeError with the end of its log."""
        with self._log.open("wb") as log:
            options = ["-cp", f"{self._jars}/*", "kafka.Kafka", str(self.config)]
            command = ["java", *self._jvm_options, *options]
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_SECONDS
        while b"Kafka Server started" not in self._log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"Kafka did not start:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop cleanly, as with SIGTERM; kill what does not obey."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """As a crash of the process does."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def said(self) -> list[str]:
        """What it has logged since it was started."""
        return self._log.read_text(errors="replace").splitlines()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Not running meanwhile."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def format(self) -> None:
        """Make the directory what Kafka starts on, with the one voter in it."""
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # a leading dash would look like an option
        options = ["format", f"--cluster-id={cluster_id}", "--config", str(self.config), "--standalone"]
        command = java("-Xmx256m", "kafka.tools.StorageTool", *options, *self._levels, jars=self._jars)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"Kafka's directory could not be formatted:\n{done.stdout}{done.stderr}")
