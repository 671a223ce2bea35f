"""Real clients that take the same commands: Java 4.4, Java 3.9 and franz-go as processes, confluent-kafka."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.conformance.maven import BUILD, kafka_3_9_clients, kafka_jars
from tests.server.client_commands import Client, ConfluentClient
from tests.server.client_process import ClientProcess

__all__ = [
    "CLIENTS", "LEFT_OUT", "JavaMember", "JavaReader", "java_program", "see", "started", "values",
]  # fmt: skip

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


def java_program(
    name: str,
    jars: Path,
    program: str = "ClientProcess",
    *,
    sources: Path = HERE / "java" / "clients",
    options: Sequence[str] = JVM,
) -> list[str]:
    """Return the command of a program of ``sources``; compile it first unless that is done."""
    classes = PROGRAMS / name
    stamp = classes / f"{program}.compiled"
    newest = max(source.stat().st_mtime for source in sources.glob("*.java"))
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        classes.mkdir(parents=True, exist_ok=True)
        javac = ["javac", "-Xlint:none", "-cp", f"{jars}/*", "-sourcepath", str(sources), "-d", str(classes)]
        subprocess.run([*javac, str(sources / f"{program}.java")], check=True)
        stamp.touch()
    return ["java", *options, "-cp", f"{classes}:{jars}/*", program]


class JavaReader:
    """Apache Kafka's consumer, as a process that follows a topic; see ``Reader``."""

    def __init__(self, directory: Path, server: str, topic: str, partitions: int) -> None:
        self.records: dict[int, list[tuple[int, str]]] = {number: [] for number in range(partitions)}
        self.failures: list[str] = []
        program = java_program("java-4.4", kafka_jars(), "FollowProcess")
        self._command = [*program, server, topic, str(partitions)]
        self._seen, self._said = directory / "java-reader.out", directory / "java-reader.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to read."""
        with self._seen.open("wb") as seen, self._said.open("wb") as said:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=seen, stderr=said)

    def end(self) -> None:
        """Read what is there, and stop. The server is there again, and no transaction is open."""
        assert self._process is not None
        self._process.communicate(b"\n", SECONDS)
        if self._process.returncode:
            self.failures.append(self._said.read_text()[-2000:])
        for line in self._seen.read_text().splitlines():
            partition, offset, value = line.split(" ")
            self.records[int(partition)].append((int(offset), value.rstrip(".")))

    def close(self) -> None:
        """End the process, if it has not ended."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


class JavaMember:
    """A member of a group as a process, by Java's consumer; ``topic`` is a pattern behind a slash."""

    def __init__(self, log: Path, server: str, group: str, protocol: str, topic: str, *settings: str) -> None:
        command = java_program("java-4.4", kafka_jars(), "MemberProcess")
        self._seen, self._said = log.with_suffix(".out"), log
        with self._seen.open("wb") as seen, self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [*command, server, group, protocol, topic, *settings],
                stdin=subprocess.PIPE, stdout=seen, stderr=said,
            )  # fmt: skip

    def _lines(self, kind: str) -> list[str]:
        lines = self._seen.read_text().splitlines()
        return [line.removeprefix(kind).strip() for line in lines if line.startswith(kind)]

    @property
    def has(self) -> set[int]:
        """Its partitions. A member that died has none, and says why."""
        assert self._process.poll() is None, self._said.read_text()[-2000:]
        shown = self._lines("has")
        return set(map(int, shown[-1].split())) if shown else set()

    @property
    def read(self) -> list[str]:
        """The values that it has read, and committed."""
        return self._lines("read")

    def end(self) -> None:
        """Leave the group."""
        self._process.communicate(b"\n", SECONDS)
        assert self._process.returncode == 0, self._said.read_text()[-2000:]

    def kill(self) -> None:
        """Go without a word."""
        self._process.kill()
        self._process.communicate()


def _go() -> list[str]:
    """The program, built; Go's own cache knows whether there is anything to do."""
    program = PROGRAMS / "franz-go"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "go", check=True)
    return [str(program)]


PROCESSES: dict[str, Callable[[], list[str]]] = {
    "java-4.4": lambda: java_program("java-4.4", kafka_jars()),
    "java-3.9": lambda: java_program("java-3.9", kafka_3_9_clients()),
    "franz-go": _go,
}
LEFT_OUT = (
    {"franz-go": "there is no go: install Go 1.24 or newer (Debian, Ubuntu: golang; macOS: brew install go)"}
    if shutil.which("go") is None
    else {}
)
CLIENTS = [name for name in ("confluent-kafka", *PROCESSES) if name not in LEFT_OUT]


def started(name: str, log: Path) -> Client:
    """A client by its name in CLIENTS; KeyError for another name."""
    return ConfluentClient() if name == "confluent-kafka" else ClientProcess(PROCESSES[name](), log)
