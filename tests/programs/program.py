"""``Program``: a row of the table of programs; ``Place``: where a program reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["Input", "Place", "Program"]

Input = Literal["transactions", "records", "lines"]
"""A topic with committed and aborted transactions; a topic without transactions; a file."""


class Place(NamedTuple):
    """``directory`` survives the kills: a program keeps its state and its input file there."""

    server: str
    source: str
    target: str
    directory: Path

    @property
    def lines(self) -> Path:
        """The input of a program that reads no topic."""
        return self.directory / "lines"


@dataclass(frozen=True)
class Program:
    """A program that copies each record of a topic, or each line of a file, to a topic exactly once.

    ``prepare`` fetches and builds once; it raises NotFetchedError. ``command`` is the command line for a
    place. ``about`` names the guarantee and what the program does. ``repeats`` is the reason why a program
    repeats records, whatever it promises.
    """

    name: str
    version: str
    about: str
    prepare: Callable[[], None]
    command: Callable[[Place], list[str]]
    input: Input = "transactions"
    target: str = "out"
    repeats: str = ""
