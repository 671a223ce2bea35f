"""Kafka's own UnifiedLog in a process of its own (java/KafkaLog.java): one command, one answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.conformance.maven import BUILD, kafka_jars

__all__ = ["KafkaLog", "compiled"]

SOURCES = Path(__file__).resolve().parent / "java"
CLASSES = BUILD / "conformance" / "classes"
OPTIONS = ["-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]


def compiled() -> str:
    """The class path of our Java files, compiled anew when they have changed."""
    sources = sorted(SOURCES.glob("*.java"))
    stamp = CLASSES / "KafkaLog.class"
    newest = max(source.stat().st_mtime for source in sources)
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        if shutil.which("javac") is None:
            raise RuntimeError("there is no javac: install a JDK (Debian, Ubuntu: openjdk-17-jdk-headless)")
        CLASSES.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-cp", f"{kafka_jars()}/*", "-d", str(CLASSES), *map(str, sources)]
        subprocess.run(command, check=True)
    return f"{CLASSES}:{kafka_jars()}/*"


class KafkaLog:
    """The process; one log is open at a time."""

    def __init__(self, log: Path) -> None:
        command = ["java", *OPTIONS, "-cp", compiled(), "KafkaLog"]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def ask(self, command: str, **options: object) -> dict[str, Any]:
        """The answer; ``code`` is 0 or Kafka's error, the rest is the log's state afterwards."""
        assert self._process.stdin
        assert self._process.stdout
        words = [command, *(f"{name}={_word(value)}" for name, value in options.items())]
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Java process ended at: {words}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
