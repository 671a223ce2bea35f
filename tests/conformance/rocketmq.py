"""Apache RocketMQ on the loopback: a name server and a broker, in a directory of their own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from tests.conformance.maven import rocketmq_jars
from tests.server.serving import free_ports

__all__ = ["RocketMQ", "rocketmq_java"]

PROGRAMS: Final = Path(__file__).parent / "java" / "rocketmq"
LOOPBACK: Final = "127.0.0.1"
JVM_OPTIONS: Final = ("-Xmx512m", "-XX:+UseSerialGC")
NO_REPLICAS: Final = "META-INF/service/org.apache.rocketmq.store.ha.HAService"
START_SECONDS: Final = 120
STOP_SECONDS: Final = 60
CLIENT_SECONDS: Final = 60
FlushDiskType = Literal["SYNC_FLUSH", "ASYNC_FLUSH"]
# milliseconds, except for the number of checks: so that a test sees all checks of a message within seconds
FAST: Final = {
    "transactionTimeOut": 3_000,
    "transactionCheckInterval": 2_000,
    "transactionCheckMax": 3,
    "transactionOpBatchInterval": 300,  # until then the broker knows only in memory which halves are finished
}
SETTINGS: Final = {
    "brokerClusterName": "cluster",
    "brokerName": "broker",
    "brokerId": 0,
    "brokerIP1": LOOPBACK,
    "bindAddress": LOOPBACK,
    "autoCreateTopicEnable": "true",
    "defaultTopicQueueNums": 1,
    # small files, and none for timers
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeConsumeQueue": 60_000,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
    "timerWheelEnable": "false",
    "diskMaxUsedSpaceRatio": 99,
    # on a busy machine it must refuse nothing
    "waitTimeMillsInSendQueue": CLIENT_SECONDS * 1_000,
    "osPageCacheBusyTimeOutMills": CLIENT_SECONDS * 1_000,
    "syncFlushTimeout": CLIENT_SECONDS * 1_000,
}


def rocketmq_java(home: Path, program: str, *arguments: str, jvm_options: Sequence[str]) -> list[str]:
    """The command for a main class or a source file. RocketMQ writes its logs below ``home``, which is in the
    class path."""
    path = f"{home}:{rocketmq_jars()}/*"
    return ["java", *jvm_options, f"-Duser.home={home}", "-cp", path, program, *arguments]


class RocketMQ:
    """``with RocketMQ(directory) as rocketmq:`` starts both processes, and kills them in the end.

    ``settings`` are the broker's, beside ``FAST`` and ``SETTINGS``. Clients find the broker by the
    ``address`` of the name server."""

    def __init__(
        self,
        directory: Path,
        flush_disk_type: FlushDiskType = "ASYNC_FLUSH",
        settings: Mapping[str, object] | None = None,
        *,
        jvm_options: Sequence[str] = JVM_OPTIONS,
    ) -> None:
        self.directory = directory
        self._jvm_options = jvm_options
        (name_port,) = free_ports(1)
        self.address = f"{LOOPBACK}:{name_port}"
        port = _broker_port()
        self._settings: dict[str, object] = {
            **SETTINGS,
            **FAST,
            "flushDiskType": flush_disk_type,
            "namesrvAddr": self.address,
            "listenPort": port,
            "storePathRootDir": directory / "store",
            "storePathCommitLog": directory / "store" / "commitlog",
            "rocketmqHome": directory,
            **(settings or {}),
        }
        self._name_server: subprocess.Popen[bytes] | None = None
        self._broker: subprocess.Popen[bytes] | None = None

    @property
    def process_ids(self) -> tuple[int, int]:
        """Of the running broker, and of the name server."""
        assert self._broker is not None
        assert self._name_server is not None
        return self._broker.pid, self._name_server.pid

    def __enter__(self) -> RocketMQ:
        service = self.directory / NO_REPLICAS
        service.parent.mkdir(parents=True, exist_ok=True)
        service.write_text("RocketBroker$Alone\n")
        port = self.address.rpartition(":")[2]
        settings = {"listenPort": port, "bindAddress": LOOPBACK, "rocketmqHome": self.directory}
        try:
            program = "org.apache.rocketmq.namesrv.NamesrvStartup"
            self._name_server = self._started("namesrv", program, settings, JVM_OPTIONS)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()  # a clean stop takes ten seconds
        if self._name_server is not None:
            _kill(self._name_server)
            self._name_server = None

    def start(self, **settings: object) -> None:
        """Start the broker, with other ``settings`` than before, and wait until it serves. Raises
        RuntimeError with the end of its log."""
        self._settings |= settings
        program = str(PROGRAMS / "RocketBroker.java")
        self._broker = self._started("broker", program, self._settings, self._jvm_options)

    def stop(self) -> None:
        """Stop the broker cleanly, as with SIGTERM; kill it if it does not obey."""
        if self._broker is None:
            return
        self._broker.terminate()
        try:
            self._broker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._broker = None

    def kill(self) -> None:
        """Stop the broker as a crash does, with SIGKILL."""
        if self._broker is not None:
            _kill(self._broker)
            self._broker = None

    def _started(
        self, name: str, program: str, settings: Mapping[str, object], jvm_options: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        config, output = self.directory / f"{name}.conf", self.directory / f"{name}.log"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = rocketmq_java(self.directory, program, "-c", str(config), jvm_options=jvm_options)
        with output.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_SECONDS
        while b"boot success" not in output.read_bytes():
            if process.poll() is not None or time.monotonic() > deadline:
                _kill(process)
                raise RuntimeError(f"RocketMQ's {name} did not start:\n{output.read_text()[-4000:]}")
            time.sleep(0.05)
        return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _broker_port() -> int:
    """A port of the loopback: the broker also listens on the second one below it."""
    while True:
        (port,) = free_ports(1)
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port - 2)):
                return port
