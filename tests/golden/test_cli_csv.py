"""``txnkafka cat --format csv`` of golden directories has the same content as the JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden.cases import Case, cases
from txnkafka.cli.main import cli


@pytest.fixture(autouse=True)
def _long_fields() -> Iterator[None]:
    limit = csv.field_size_limit(1 << 24)
    yield
    csv.field_size_limit(limit)


def cat(case: Case, *arguments: str) -> str:
    result = CliRunner().invoke(cli, ["cat", str(case.answered), *arguments], standalone_mode=False)
    assert result.exception is None
    return result.stdout_bytes.decode()


def as_texts(record: dict[str, Any]) -> dict[str, str]:
    texts = {name: "" if value is None else str(value) for name, value in record.items()}
    return {**texts, "headers": json.dumps(record["headers"], ensure_ascii=False, separators=(",", ":"))}


@pytest.mark.parametrize("encoding", ["utf8", "base64"])
@pytest.mark.parametrize("name", ["codecs", "coordinator_logs", "legacy", "compacted"])
def test_csv_says_what_json_says(name: str, encoding: str) -> None:
    (case,) = (each for each in cases() if each.name == name)
    records = [json.loads(line) for line in cat(case, "--encoding", encoding).splitlines()]
    rows = list(csv.DictReader(io.StringIO(cat(case, "--encoding", encoding, "--format", "csv"), newline="")))
    marks = {"key_encoding": "", "value_encoding": ""} if encoding == "utf8" else {}
    assert rows == [marks | as_texts(each) for each in records]
    assert records
