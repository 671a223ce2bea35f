"""Conversations with Apache Kafka as text: one line each, requests and answers as data.

``python -m tests.conformance.record`` writes them, ``tests/unit/server/test_transcripts.py`` replays them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.side_by_side.differences import unexplained
from tests.side_by_side.messages import Request
from tests.side_by_side.pair import Compared
from tests.side_by_side.sides import Conversation

__all__ = ["DIRECTORY", "Transcript", "read", "replayed", "transcript_of", "write"]

DIRECTORY = Path(__file__).resolve().parents[1] / "unit" / "server" / "transcripts"


class Transcript(NamedTuple):
    """A conversation. Names that begin with ``~`` began with ``prefix``: partitions of internal topics depend
    on it."""

    name: str
    prefix: str
    exchanges: list[tuple[Request, dict[str, Any]]]


def transcript_of(name: str, prefix: str, compared: Iterable[Compared]) -> Transcript:
    """What Kafka has answered."""
    return Transcript(name, prefix, [(each.request, each.kafka) for each in compared])


def write(path: Path, transcripts: Iterable[Transcript]) -> None:
    """One line each, the name first."""
    lines = []
    for name, prefix, exchanges in transcripts:
        rows = [[request.api, request.version, request.fields, answer] for request, answer in exchanges]
        lines.append(json.dumps([name, prefix, rows], separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> Iterator[Transcript]:
    """What ``write`` wrote."""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, prefix, rows = json.loads(line)
        yield Transcript(name, prefix, [(Request(*row[:3]), row[3]) for row in rows])


def replayed(transcript: Transcript, conversation: Conversation, used: Counter[str]) -> Sequence[Compared]:
    """The exchanges that another broker answers differently, in the order of the transcript."""
    found = []
    for request, kafka in transcript.exchanges:
        ours = conversation.ask(request)
        left = unexplained(request, ours, kafka, used)
        if left:
            found.append(Compared(request, ours, kafka, left))
    return found
