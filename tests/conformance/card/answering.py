"""The loop of a client that is a process: one command a line on stdin, one JSON object a line on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence

__all__ = ["PATIENCE", "NoSuchCommandError", "answer_commands"]

PATIENCE = 30.0  # seconds that any command may take


class NoSuchCommandError(Exception):
    """The client has nothing like it."""


def answer_commands(
    run: Callable[[str, Mapping[str, str]], Sequence[object] | None], errors: tuple[type[Exception], ...]
) -> None:
    """Answer each line of stdin with what ``run`` returns, or with the class of the error that it raises."""
    for line in sys.stdin:
        command, *words = line.split()
        answer: dict[str, object] = {"error": None}
        try:
            values = run(command, dict(word.split("=", 1) for word in words))
            answer["values"] = [str(value) for value in values or ()]
        except (*errors, NoSuchCommandError, TimeoutError) as error:
            answer = {"error": type(error).__name__, "detail": str(error) or command}
        print(json.dumps(answer), flush=True)
