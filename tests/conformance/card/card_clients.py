"""The columns of the card: each client with its version, and how it is started."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import confluent_kafka

from tests.conformance.card.confluent_client import ConfluentCardClient
from tests.conformance.transactional_clients import LEFT_OUT as WITHOUT_GO
from tests.conformance.transactional_clients import PROCESSES, PROGRAMS
from tests.server.client_commands import Client
from tests.server.client_process import ClientProcess

__all__ = ["COLUMNS", "COMMANDS", "LEFT_OUT", "command_of", "started", "version_of"]

HERE = Path(__file__).resolve().parent
KAFKA_CLIENTS = "<artifactId>kafka-clients</artifactId>\n      <version>"
NO_GO = next(iter(WITHOUT_GO.values()), "")
NO_NODE = (
    ""
    if shutil.which("npm")
    else "there is no npm: install Node.js 18 or newer (Debian, Ubuntu: npm; macOS: brew install node)"
)


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.conformance.card.{module}"]


def _sarama() -> list[str]:
    """The program, built; Go's own cache knows whether there is anything to do."""
    program = PROGRAMS / "sarama"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "sarama", check=True)
    return [str(program)]


def _kafkajs() -> list[str]:
    """The program beside the packages that its lock file names."""
    source, place = HERE / "kafkajs", PROGRAMS / "kafkajs"
    lock = place / "package-lock.json"
    place.mkdir(parents=True, exist_ok=True)
    is_fetched = lock.exists() and lock.read_bytes() == (source / lock.name).read_bytes()
    for name in ("package.json", "package-lock.json", "client.js"):
        shutil.copyfile(source / name, place / name)
    if not is_fetched or not (place / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=place, check=True)
    return ["node", str(place / "client.js")]


COMMANDS: dict[str, Callable[[], list[str]]] = {
    "java-4.4": PROCESSES["java-4.4"],
    "java-3.9": PROCESSES["java-3.9"],
    "kafka-python": _python("kafka_python_process"),
    "aiokafka": _python("aiokafka_process"),
    "franz-go": PROCESSES["franz-go"],
    "sarama": _sarama,
    "kafkajs": _kafkajs,
}
REASONS = {"franz-go": NO_GO, "sarama": NO_GO, "kafkajs": NO_NODE}
LEFT_OUT = {name: reason for name, reason in REASONS.items() if reason}
COLUMNS = [
    "java-4.4",
    "java-3.9",
    "confluent-kafka",
    *[name for name in COMMANDS if not name.startswith("java")],
]


@functools.cache
def command_of(name: str) -> tuple[str, ...]:
    """The program of a client that is a process, compiled or fetched by the first call."""
    return tuple(COMMANDS[name]())


def started(name: str, log: Path) -> Client:
    """A client by its name in COLUMNS."""
    return ClientProcess(list(command_of(name)), log) if name in COMMANDS else ConfluentCardClient()


def version_of(name: str) -> str:
    """As its packages say."""
    if name.startswith("java"):
        return {"java-4.4": "4.4.0", "java-3.9": _pinned("maven/kafka-3.9-clients.xml", KAFKA_CLIENTS)}[name]
    if name == "confluent-kafka":
        return f"{version(name)}, librdkafka {confluent_kafka.libversion()[0]}"
    if name == "kafkajs":
        packages = json.loads((HERE / "kafkajs" / "package-lock.json").read_text())["packages"]
        return str(packages["node_modules/kafkajs"]["version"])
    if name == "franz-go":
        return _pinned("go/go.mod", "github.com/twmb/franz-go v")
    return _pinned("card/sarama/go.mod", "github.com/IBM/sarama v") if name == "sarama" else version(name)


def _pinned(path: str, before: str) -> str:
    """The version behind the last place of a text in a file."""
    behind = (HERE.parent / path).read_text().rpartition(before)[2]
    return behind.split()[0].partition("<")[0]
