"""Writes the seeds of tests/fuzz/corpus:  python -m tests.fuzz.make_corpus

They come from the writers in tests/models, from Kafka's own classes (vectors.py there, and the samples of
tests/unit/wire), from random requests, from the golden directories and from the image of tests/damage. Files
named finding-* are not made here: they are inputs that once failed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.damage.image import PARTITION, ROOT, SEGMENTS, image, log
from tests.fuzz import directory, log_records
from tests.fuzz.appending import append_seeds
from tests.fuzz.campaign import CORPUS
from tests.fuzz.codecs import CODECS
from tests.fuzz.encoding import column_seeds
from tests.fuzz.half_records import half_record_seeds
from tests.fuzz.requests import request_seeds
from tests.fuzz.responses import response_seeds
from tests.fuzz.sessions import session_seeds
from tests.golden.cases import cases
from tests.models.builder import Batch, PlainRecord, encode_record, end_marker
from tests.models.fetch_filter import decode_any, scan_log
from tests.models.framing_cases import CASES
from tests.models.headers import data, encode, marker
from tests.models.vectors import VECTORS
from tests.unit.wire.kafka_classes import Sample, messages, samples
from txnkafka.wire.records import control_body, group_log, metadata, transaction_log

__all__ = ["main"]

Seeds = Iterator[tuple[str, bytes]]
MAX_SLICE = 3000  # of a golden file


def _rich_records() -> list[PlainRecord]:
    headers = [(b"name", b"value"), (b"", None), (b"twice", b""), (b"twice", b"x")]
    text, no_text = "grün €\U0001f600".encode(), b'quote " \\ \n\x00\x7f\xc3\x28'
    return [
        PlainRecord(b"key", b"value", 1000, headers),
        PlainRecord(None, None, 999),
        PlainRecord(b"", b"", 1_700_000_000_000, offset_delta=7),
        PlainRecord(text, no_text, 1001, [(b"\xff", b"\xed\xa0\x80")]),
        PlainRecord(b"k" * 33, b"v" * 300, 1002, [(b"h" * 130, b"w" * 40)]),
        PlainRecord(b"k" * 127, b"v" * 2100, 1003),
    ]


def batch_seeds() -> Seeds:
    for name, vector in VECTORS.items():
        yield f"kafka-{name.replace(' ', '-')}", vector.log
    for base_offset in SEGMENTS:
        yield f"image-{base_offset}", log(base_offset)
    records = _rich_records()
    for codec in range(5):
        yield f"rich-{codec}", Batch(records=records, codec=codec, base_offset=1 << codec * 12).encode()
    yield "rich-twice", Batch(records=records).encode() + Batch(records=records[:3], base_offset=8).encode()
    small = [PlainRecord(b"%d" % i, b"v" * (i % 40), 1000 + i) for i in range(60)]
    yield "many-records", Batch(records=small, log_append_time=5).encode()
    fields = {"producer_id": 9, "producer_epoch": 1, "coordinator_epoch": 3}
    yield "markers", b"".join(end_marker(kind, base_offset=kind, **fields) for kind in (0, 1, 2))
    one = encode_record(PlainRecord(b"k", b"v", 0, [(b"h", b"x")]), base_timestamp=0, offset_delta=0)
    yield "bare", Batch(payload=one, count=1, base_timestamp=0).encode()
    yield "no-bytes", b""
    yield "zeros", bytes(100)
    yield "torn", Batch(records=records).encode()[:-1]


def producer_seeds() -> Seeds:
    """Batches of producers: in sequence, repeated, transactional, around the largest sequence."""
    plain = [data(1, 0, i, sequence=i, transactional=False) for i in range(7)]
    yield "in-sequence", encode(plain)
    yield "repeated", encode(plain + plain[1:])
    opened = [data(number, 0, number, sequence=5) for number in range(4)]
    ended = [marker(number, 1, 4 + number, number % 2) for number in (2, 0, 3)]
    yield "transactions", encode(opened + ended + [data(2, 1, 7), marker(9, 3, 8, 1)])
    wrapping = [data(2**40, 3, 0, sequence=2**31 - 2, last_offset=3), data(2**40, 3, 4, sequence=2)]
    yield "wrapping", encode(wrapping)
    yield "emptied", encode([data(1, 0, 0, last_offset=4, count=0), data(1, 0, 5), marker(1, 0, 6, 0)])
    yield "many", encode([data(number % 40, 0, number, sequence=number // 40) for number in range(100)])


def golden_slices(kind: str, limit: int = 12) -> Seeds:
    """Beginnings of the smallest files of that kind of different cases, cut on a batch if they are logs."""
    for case in cases()[:: max(1, len(cases()) // limit)]:
        paths = [path for path in case.logs.rglob(f"*.{kind}") if path.stat().st_size]
        if paths:
            path = min(paths, key=lambda each: (each.stat().st_size, each))
            name = str(path.relative_to(case.root.parent)).replace("/", "-").replace(".", "-")
            yield f"golden-{name}", _slice(path, kind)


def _slice(path: Path, kind: str) -> bytes:
    content = path.read_bytes()[: MAX_SLICE * 10]
    if kind != "log":
        return content[:MAX_SLICE]
    end = 0
    while end + 12 <= len(content):
        (length,) = struct.unpack_from(">i", content, end + 8)
        if length <= 0 or end + 12 + length > MAX_SLICE:
            break
        end += 12 + length
    return content[: end or MAX_SLICE]


def codec_seeds(codec: int) -> Seeds:
    """The framings that tests/models collects, with their magic in front."""
    for case in CASES:
        if case.codec == codec and len(case.payload) < MAX_SLICE:
            yield case.name.replace(" ", "-").replace(",", ""), bytes([case.magic]) + case.payload


def checkpoint_seeds() -> Seeds:
    """Every kind of small text file once from a case of each Kafka version, and a few made up."""
    names = ("*-checkpoint", "partition.metadata", "meta.properties", ".kafka_cleanshutdown")
    for case in cases():
        if case.name in ("kafka_2_8", "kafka_3_9", "coordinator_logs", "epochs"):
            for name in names:
                path = next(iter(sorted(case.logs.rglob(name))), None)
                if path is not None:
                    yield f"golden-{case.name}-{path.name.lstrip('.')}", path.read_bytes()
    yield "offsets", b"0\n3\nt 0 5\nu 1 9223372036854775807\nt 0 6\n"
    yield "epochs", b"0\n3\n0 0\n4 10\n5 20\n"
    yield "properties", b"#comment\nversion=1\ncluster.id=A\\u00e9\\\n  B\nnode.id=1\n"


def log_record_seeds() -> Seeds:
    """Records that the brokers of the golden cases wrote, and one of every type that Kafka's classes know."""
    kinds = {"__transaction_state": 0, "__consumer_offsets": 1, "__cluster_metadata": 2}
    seen: set[tuple[object, ...]] = set()
    for case in cases():
        for path in sorted(case.logs.glob("__*/*.log")):
            kind = kinds[path.parent.name.rpartition("-")[0]]
            for name, content in _log_records(path, kind):
                if name not in seen:
                    seen.add(name)
                    yield "golden-" + "-".join(map(str, name)), content
    yield from _samples()


def _log_records(path: Path, kind: int) -> Iterator[tuple[tuple[object, ...], bytes]]:
    """One record of each kind, type and version; control records are kind 3."""
    log_bytes = path.read_bytes()
    for header in scan_log(log_bytes)[0]:
        for record in decode_any(log_bytes[header.position : header.position + header.size]):
            key, value = record.key, record.value
            if header.control_type >= 0:
                yield (3, header.control_type), log_records.packed(3, key, value)
            else:
                type_and_version = (key or b"").hex()[:4], (value or b"").hex()[:4]
                yield (kind, *type_and_version), log_records.packed(kind, key, value)


def _samples() -> Seeds:
    """The shortest sample of each class and version, with a fitting key before it."""
    shortest: dict[tuple[str, int], Sample] = {}
    for sample in sorted(samples(), key=lambda each: -len(each.data)):
        shortest[sample.kafka_class.rpartition(".")[2], sample.version] = sample
    keys = {message: (1, number) for number, (_, message) in group_log.TYPES.items()}
    keys |= {message: (0, number) for number, (_, message) in transaction_log.TYPES.items()}
    keys |= {message: (2, number) for number, message in metadata.RECORDS.items()}
    keys |= {message: (3, number) for number, message in control_body.BODIES.items()}
    for (name, version), sample in shortest.items():
        kind, number = keys.get(messages()[sample.kafka_class], (None, 0))
        if kind is not None:
            yield f"kafka-{name}-{version}", _sample(kind, number, sample)


def _sample(kind: int, number: int, sample: Sample) -> bytes:
    if kind == 2:
        return log_records.packed(kind, None, bytes([1, number, sample.version]) + sample.data)
    key = struct.pack(">hh", 0, number) if kind == 3 else struct.pack(">h", number) + b"\0\1g\0\1t\0\0\0\0"
    # In control records of KRaft the version is a field of the class.
    version = b"" if "version" in sample.fields else struct.pack(">h", sample.version)
    return log_records.packed(kind, key, version + sample.data)


def record_seeds() -> Seeds:
    """For record_target.c: flags, number of records, readable bytes behind, records."""
    rich = _rich_records()
    for name, records in (("rich", rich), ("first", rich[:1]), ("nulls", rich[1:3]), ("small", rich[:3])):
        encoded = [encode_record(each, base_timestamp=1000, offset_delta=i) for i, each in enumerate(records)]
        for behind in (0, 200):
            yield f"{name}-{behind}", bytes([7, len(records), behind]) + b"".join(encoded)


def directory_seeds() -> Seeds:
    for mode in ("clean", "killed", "copied"):
        yield f"image-{mode}", directory.packed(image(mode))
    for name in ("coordinator_logs", "hanging", "compacted", "legacy_on_4"):
        found = next(each for each in cases() if each.name == name)
        files = {
            f"/logs/{path.relative_to(found.logs)}": path.read_bytes()
            for path in sorted(found.logs.rglob("*"))
            if path.is_file() and path.stat().st_size < MAX_SLICE
        }
        yield f"golden-{name}", directory.packed(files)


def place_seeds() -> Seeds:
    """A directory with each kind of file that is none where one should be."""
    files = image("clean")
    segment, index = f"{PARTITION}/{0:020}.log", f"{PARTITION}/{20:020}.index"
    victim = b"../../outside/victim"
    yield "plain", directory.packed(files)
    yield "lock-fifo", directory.packed(files | {f"{ROOT}/.lock|fifo": b""})
    yield "lock-link", directory.packed(files | {f"{ROOT}/.lock|link": b"../outside/missing"})
    yield "log-link", directory.packed(_without(files, segment) | {f"{segment}|link": victim})
    yield "index-link", directory.packed(_without(files, index) | {f"{index}|link": victim})
    yield "partition-link", directory.packed(files | {f"{ROOT}/t-1|link": b"../outside"})
    yield "loop", directory.packed(files | {f"{ROOT}/loop|link": b"loop"})
    yield "log-directory", directory.packed(files | {f"{PARTITION}/{60:020}.log|directory": b""})


def _without(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {each: content for each, content in files.items() if each != name}


def all_seeds() -> dict[str, Seeds]:
    """Names and contents by target."""
    codecs = {name: codec_seeds(codec) for name, codec in CODECS.items()}
    tables = {kind: golden_slices(kind) for kind in ("index", "timeindex", "txnindex", "snapshot")}
    return (
        codecs
        | tables
        | {
            "batch": chain(batch_seeds(), golden_slices("log")),
            "producers": producer_seeds(),
            "text": batch_seeds(),
            "change": batch_seeds(),
            "append": append_seeds(),
            "columns": iter(column_seeds().items()),
            "record": record_seeds(),
            "checkpoint": checkpoint_seeds(),
            "log-record": log_record_seeds(),
            "half-record": half_record_seeds(),
            "directory": directory_seeds(),
            "place": place_seeds(),
            "request": request_seeds(),
            "session": session_seeds(),
            "response": response_seeds(),
        }
    )


def main() -> None:
    """Write what is not there; remove what is no longer made."""
    for target, seeds in all_seeds().items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        wanted = dict(seeds)
        for path in folder.iterdir():
            if path.stem not in wanted and not path.name.startswith("finding-"):
                path.unlink()
        for name, content in wanted.items():
            (folder / f"{name}.bin").write_bytes(content)


if __name__ == "__main__":
    main()
