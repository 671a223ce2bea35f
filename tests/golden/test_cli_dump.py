"""``txnkafka dump`` of every golden file, compared with Kafka's own DumpLogSegments of the same bytes.

Kafka's tool stops at the first unreadable entry, ours continues: only there it has more rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden.cases import Case, cases
from txnkafka.cli.main import cli
from txnkafka.model import TopicPartition

Row = dict[str, Any]

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")
KAFKA_STOPS = {
    ("clean_bad_index", "00000000000000000000.index"): "random bytes",
    ("clean_lying_index", "00000000000000000000.index"): "random bytes",
    ("clean_torn_tail", "00000000000000000086.index"): "an entry that points at the batch that was cut",
    ("clean_flip_last_payload", "00000000000000000086.log"): "a wrong CRC",
    ("crash_flip_old_payload", "00000000000000000016.log"): "a wrong CRC",
}
SPELLED_OTHERWISE = {"isvalid": "is_valid", "compresscodec": "compression"}
HEADER_KEYS = re.compile(r"headerKeys: \[(.*?)\](?= |$)")
FIELD = re.compile(r"(\w+): (\S+)")


def dumped(*arguments: object) -> list[Row]:
    command = ["dump", "--format", "jsonl", *map(str, arguments)]
    result = CliRunner().invoke(cli, command, standalone_mode=False)
    assert result.exception is None
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.return_value == any(row["type"] == "finding" for row in rows)
    return rows


def of_file(rows: list[Row], name: str, *types: str) -> list[Row]:
    return [row for row in rows if Path(row["file"]).name == name and row["type"] in types]


def our_name(name: str) -> str:
    return SPELLED_OTHERWISE.get(name) or re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def renamed(names: list[str], values: list[Any], time_name: str) -> Row:
    """Return a row of Kafka's with our names; the name of the time field gives the timestamp type."""
    row: Row = {}
    for name, value in zip(names, values, strict=True):
        if name in TIMESTAMP_TYPES:
            row["timestamp_type"], row[time_name] = name, value
        else:
            row[our_name(name)] = value
    if "compression" in row:
        row["compression"] = row["compression"].lower()
    if "producer_id" in row and "position" not in row:
        row.pop("timestamp", None)  # repeats last_timestamp
    return row


def matches(ours: list[Row], theirs: list[Row], *, stops: bool = False) -> None:
    if stops:
        assert len(ours) > len(theirs)
        ours = ours[: len(theirs)]
    assert [{name: row[name] for name in their} for row, their in zip(ours, theirs, strict=True)] == theirs


DUMPED = [(case, partition) for case in cases() for partition in case.dumped()]
IDS = [f"{case.name}-{partition}" for case, partition in DUMPED]


@pytest.mark.parametrize(("case", "partition"), DUMPED, ids=IDS)
def test_files_are_dumped_as_kafka_dumps_them(case: Case, partition: TopicPartition) -> None:
    contents = {name: content for name, content in case.dump(partition).items() if content is not None}
    rows = dumped(*(case.answered / str(partition) / name for name in contents))
    for name, content in contents.items():
        types = {row["type"] for row in rows} - {"finding"}
        theirs = [renamed(content["columns"], row, "max_timestamp") for row in content["rows"]]
        ours = of_file(rows, name, *types)
        if name.endswith(".log"):
            ours = [row for row in ours if row["magic"] == 2 or case.damage]
        matches(ours, theirs, stops=(case.name, name) in KAFKA_STOPS)
    stopped = {name for case_name, name in KAFKA_STOPS if case_name == case.name and name.endswith(".log")}
    assert all(of_file(rows, name, "finding") for name in stopped)
    assert case.damage or not any(row["type"] == "finding" for row in rows)


def sections(text: str) -> dict[str, list[str]]:
    """Return the tool's lines about each file."""
    parts = re.split(r"^Dumping (\S+)\n", text, flags=re.MULTILINE)
    return {name: body.splitlines() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def batch_rows(lines: list[str]) -> Iterator[Row]:
    """Parse batches; lines of magic 0 and 1 begin differently."""
    for line in lines:
        if line.startswith(("baseOffset: ", "offset: ")):
            fields = dict(FIELD.findall(line))
            if line.startswith("offset: "):
                fields["lastOffset"] = fields.pop("offset")
            yield renamed(list(fields), list(map(value_of, fields.values())), "max_timestamp")


def value_of(text: str) -> Any:
    if text == "OptionalLong.empty":
        return None
    delete_horizon = re.fullmatch(r"OptionalLong\[(\d+)\]", text)
    if delete_horizon:
        return int(delete_horizon[1])
    return json.loads(text) if re.fullmatch(r"-?\d+|true|false|null", text) else text


def record_rows(lines: list[str]) -> Iterator[Row]:
    for line in lines:
        if line.startswith("| "):
            header_keys = HEADER_KEYS.search(line)
            fields = dict(FIELD.findall(line.split(" headerKeys: ")[0]))
            wanted = ("offset", *TIMESTAMP_TYPES, "keySize", "valueSize", "sequence")
            fields = {name: int(text) for name, text in fields.items() if name in wanted}
            row = renamed(list(fields), list(fields.values()), "timestamp")
            if header_keys and "endTxnMarker" not in line:
                row["header_keys"] = header_keys[1]
            marker = re.search(r"endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)", line)
            if marker:
                row |= {"control_type": marker[1], "value": {"coordinator_epoch": int(marker[2])}}
            yield row


PRINTED = [(case, path) for case in cases() for path in sorted(case.expected.glob("*.dump.txt"))]


@pytest.mark.parametrize(
    ("case", "path"), PRINTED, ids=[f"{each.name}-{path.name}" for each, path in PRINTED]
)
def test_batches_and_records_are_those_that_kafka_prints(case: Case, path: Path) -> None:
    folder = case.answered / path.name.removesuffix(".dump.txt")
    printed = {name: lines for name, lines in sections(path.read_text()).items() if name.endswith(".log")}
    rows = dumped("--records", "--decoder", "none", *(folder / name for name in printed))
    for name, lines in printed.items():
        matches(of_file(rows, name, "batch"), list(batch_rows(lines)))
        ours = of_file(rows, name, "record", "control_record")
        for row in ours:
            row["header_keys"] = ",".join(header[0] for header in row.get("headers", ()))
        matches(ours, list(record_rows(lines)))


IMAGES = [(case, path) for case in cases() for path in sorted(case.root.glob("image_dump/*.dump.txt"))]


@pytest.mark.parametrize(("case", "path"), IMAGES, ids=[case.name for case, _ in IMAGES])
def test_a_damaged_file_shows_at_least_what_kafka_shows_of_it(case: Case, path: Path) -> None:
    folder = case.logs / path.name.removesuffix(".dump.txt")
    for name, lines in sections(path.read_text()).items():
        if name.endswith(".log"):
            rows = dumped(folder / name)
            theirs = list(batch_rows(lines))
            matches(of_file(rows, name, "batch")[: len(theirs)], theirs)
