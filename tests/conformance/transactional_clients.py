"""Real clients that take the same commands: Java 4.3, Java 3.9 and franz-go as processes, confluent-kafka."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.conformance.maven import BUILD, kafka_3_9_clients, kafka_jars
from tests.unit.server.client_commands import Client, ConfluentClient
from tests.unit.server.client_process import ClientProcess

__all__ = ["CLIENTS", "LEFT_OUT", "see", "started", "values"]

HERE = Path(__file__).resolve().parent
PROGRAMS = BUILD / "conformance" / "clients"
JVM = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
JVM += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
SECONDS = 60.0


def values(client: Client, server: str, topic: str, level: str = "read_committed") -> list[str]:
    """What a consumer of the client gets of partition 0 from its beginning to its end."""
    return client.ask("consume", server=server, topic=topic, partition="0", level=level)


def see(client: Client, server: str, topic: str, *expected: str) -> None:
    """A read_committed consumer gets these. A commit is answered before consumers see it, so it may take a
    moment; what should never be seen must not be seen meanwhile."""
    wanted, deadline = list(expected), time.monotonic() + SECONDS
    while (found := values(client, server, topic)) != wanted and time.monotonic() < deadline:
        assert found == wanted[: len(found)]
    assert found == wanted


def _java(name: str, jars: Path) -> list[str]:
    """The program, compiled against the jars unless it was."""
    source, classes = HERE / "java" / "clients" / "ClientProcess.java", PROGRAMS / name
    stamp = classes / "ClientProcess.class"
    if not stamp.exists() or stamp.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(source)], check=True)
    return ["java", *JVM, "-cp", f"{classes}:{jars}/*", "ClientProcess"]


def _go() -> list[str]:
    """The program, built; Go's own cache knows whether there is anything to do."""
    program = PROGRAMS / "franz-go"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "go", check=True)
    return [str(program)]


PROCESSES: dict[str, Callable[[], list[str]]] = {
    "java-4.3": lambda: _java("java-4.3", kafka_jars()),
    "java-3.9": lambda: _java("java-3.9", kafka_3_9_clients()),
    "franz-go": _go,
}
LEFT_OUT = (
    {"franz-go": "there is no go: install Go 1.24 or newer (Debian, Ubuntu: golang; macOS: brew install go)"}
    if shutil.which("go") is None
    else {}
)
CLIENTS = [name for name in ("confluent-kafka", *PROCESSES) if name not in LEFT_OUT]


def started(name: str, log: Path) -> Client:
    """A client by its name in CLIENTS."""
    return ClientProcess(PROCESSES[name](), log) if name in PROCESSES else ConfluentClient()
