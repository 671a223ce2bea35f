"""Clients as processes that take one command a line and answer with one JSON object a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.server.client_commands import ClientError

__all__ = ["ClientProcess", "kafka_python"]


class ClientProcess:
    """A client that is driven over its pipes, one command and one answer at a time."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def ask(self, command: str, **options: str) -> list[str]:
        """Write the line, read the line."""
        assert self._process.stdin
        assert self._process.stdout
        words = [command, *(f"{name}={value}" for name, value in options.items())]
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the client's process ended at: {words[:2]}")
        found: dict[str, Any] = json.loads(line)
        if found.get("error") is not None:
            raise ClientError(found["error"], found["detail"])
        return found.get("values") or []

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def kafka_python(log: Path) -> ClientProcess:
    """kafka-python."""
    return ClientProcess([sys.executable, "-m", "tests.server.kafka_python_process"], log)
