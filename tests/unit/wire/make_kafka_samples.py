"""Makes kafka_samples.jsonl: random objects of every record type and version, written by Kafka's own classes.

    python -m tests.unit.wire.make_kafka_samples 'KAFKA/libs/*'

The argument is a Java class path with the jars of Apache Kafka (4.4.0 made the committed file); a JDK is
needed.  Fields are chosen by our tables, but bytes and JSON of a sample are Kafka's alone: a table that lacks
a field, has one too many or in the wrong version shows as a sample that cannot be made or does not read as
its JSON.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

from tests.unit.wire.kafka_classes import MESSAGE, SAMPLES, messages
from txnkafka.wire.schema import Array, Field, Scalar, Struct, Type, in_versions

ENCODER = Path(__file__).with_name("KafkaEncoder.java")
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16}
TEXTS = ("", "t", "orders", "ünïcode-☃", "x" * 130)
SAMPLES_EACH = 3


class Chooser:
    """Random JSON for a table; ``level`` 0 leaves tagged fields out and takes null and empty where it can."""

    def __init__(self, seed: str, level: int) -> None:
        self.random, self.level = random.Random(seed), level

    def fields(self, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
        present = [field for field in fields if in_versions(version, field.versions)]
        shown = [field for field in present if field.tag is None or self.level]
        return {_camel(field.name): self.field(field, version) for field in shown}

    def field(self, field: Field, version: int) -> Any:
        if in_versions(version, field.nullable) and self.random.randrange(self.level + 2) < 1:
            return None
        return self.value(field.type, version)

    def value(self, kind: Type, version: int) -> Any:
        if isinstance(kind, Array):
            count = self.random.randrange(3) if self.level else 0
            return [self.value(kind.element, version) for _ in range(count)]
        return self.fields(kind.fields, version) if isinstance(kind, Struct) else self.scalar(kind)

    def scalar(self, kind: Scalar) -> Any:
        if kind.name in BITS:
            bits = BITS[kind.name]
            value = self.random.getrandbits(self.random.choice((3, bits)))
            return value - (1 << bits) if kind.name != "uint16" and value >> (bits - 1) else value
        if kind.name == "bool":
            return self.random.random() < 0.5
        if kind.name == "float64":
            return self.random.choice((0.0, 1024.5, -1e300))
        if kind.name == "uuid":
            return b64encode(self.random.randbytes(16), altchars=b"-_")[:22].decode()
        if kind.name == "bytes":
            return b64encode(self.random.randbytes(self.random.choice((0, 5, 200)))).decode()
        return self.random.choice(TEXTS)


def make(class_path: str) -> None:
    # KRaft's control records have their version as a field of its own; others do not look at it.
    wanted = [
        (
            name,
            version,
            Chooser(f"{name} {version} {level}", level).fields(message.fields, version)
            | ({"version": version} if name.startswith(MESSAGE) else {}),
        )
        for name, message in messages().items()
        for version in range(20)
        if in_versions(version, message.versions)
        for level in range(SAMPLES_EACH)
    ]
    answers = encode(class_path, wanted)
    rows = [
        json.dumps([name, version, data, json.loads(fields)], ensure_ascii=False, separators=(",", ":"))
        for (name, version, _), (data, fields) in zip(wanted, answers, strict=True)
    ]
    SAMPLES.write_text("".join(row + "\n" for row in dict.fromkeys(rows)), encoding="utf-8")


def encode(class_path: str, wanted: list[tuple[str, int, dict[str, Any]]]) -> list[list[str]]:
    lines = (f"{name}\t{version}\t{json.dumps(fields)}\n" for name, version, fields in wanted)
    command = ["java", "-cp", class_path, str(ENCODER)]
    run = subprocess.run(command, input="".join(lines), text=True, check=True, stdout=subprocess.PIPE)
    return [line.split("\t") for line in run.stdout.splitlines()]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head.replace("kraft", "kRaft") + "".join(word.title() for word in rest)


if __name__ == "__main__":
    make(sys.argv[1])
