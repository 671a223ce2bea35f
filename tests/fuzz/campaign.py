"""All targets, their corpus, and how a failure is told.

An input that fails is written to build/fuzz/TARGET, from where ``python -m tests.fuzz`` tries it again.
"""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.appending import APPEND
from tests.fuzz.codecs import GZIP, LZ4, SNAPPY, ZSTD
from tests.fuzz.compacting import COMPACT
from tests.fuzz.decoding import BATCH
from tests.fuzz.derived_files import CHECKPOINT, INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX
from tests.fuzz.directory import DIRECTORY
from tests.fuzz.encoding import CHANGE, COLUMNS
from tests.fuzz.engine import Limits, Report, Target
from tests.fuzz.half_records import HALF_RECORD
from tests.fuzz.isolation import fuzz_isolated
from tests.fuzz.log_records import LOG_RECORD
from tests.fuzz.owning import OWNER, REPAIR
from tests.fuzz.places import PLACE
from tests.fuzz.producers import PRODUCERS
from tests.fuzz.requests import REQUEST
from tests.fuzz.responses import RESPONSE
from tests.fuzz.sessions import SESSION
from tests.fuzz.text import TEXT

__all__ = ["CORPUS", "FINDINGS", "TARGETS", "corpus_of", "describe", "run"]

CORPUS = Path(__file__).with_name("corpus")
FINDINGS = Path(__file__).resolve().parents[2] / "build" / "fuzz"
_RECORDS = (BATCH, GZIP, SNAPPY, LZ4, ZSTD, TEXT, CHANGE, COLUMNS, PRODUCERS, APPEND, COMPACT)
_FILES = (INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT, CHECKPOINT, LOG_RECORD, DIRECTORY, OWNER, REPAIR, PLACE)
TARGETS = {target.name: target for target in (*_RECORDS, *_FILES, HALF_RECORD, REQUEST, SESSION, RESPONSE)}


def corpus_of(target: Target) -> list[bytes]:
    """The committed inputs, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / (target.corpus or target.name)).iterdir())]


def run(target: Target, seed: int, limits: Limits) -> Report:
    """Fuzz one target from its corpus and keep the input that fails."""
    report = fuzz_isolated(target, corpus_of(target), seed, limits)
    if report.failure is not None:
        folder = FINDINGS / target.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / report.failure.name).write_bytes(report.failure.content)
    return report


def describe(target: Target, seed: int, report: Report) -> str:
    """What a run did, and how to repeat its failure."""
    if report.failure is None:
        return f"seed {seed}, {report.summary(target)}"
    failure = report.failure
    path = FINDINGS / target.name / failure.name
    return (
        f"{failure.text}\n"
        f"{target.name}: seed {seed}, iteration {failure.iteration}, {len(failure.content)} bytes\n"
        f"again: python -m tests.fuzz {target.name} {path}\n"
        f"or:    python -m tests.fuzz {target.name} --seed {seed} --iterations {failure.iteration + 1}"
    )
