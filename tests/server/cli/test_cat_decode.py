"""``txnkafka cat --decode`` and decoders in Python: content instead of bytes, errors with their place."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.server.decoding.registry_server import serving
from tests.unit.cli.conftest import FIRST_SEGMENT, Run
from tests.unit.decoding.schemas import ORDER_AVRO, avro, framed
from txnkafka import LogDir
from txnkafka.decoding import AvroDecoder, JsonDecoder
from txnkafka.errors import DecodeError

ORDER = {"id": 7, "city": "Rio", "at": datetime(2026, 1, 31, tzinfo=UTC)}
AS_JSON = {"id": 7, "city": "Rio", "at": "2026-01-31T00:00:00+00:00"}


def write(log_dir: Path, *values: bytes | None) -> None:
    records = [PlainRecord(b'{"k":1}', value, 1000, [(b"h", b"\xff")]) for value in values]
    (log_dir / "t-0").mkdir(parents=True)
    (log_dir / "t-0" / FIRST_SEGMENT).write_bytes(Batch(records=records, partition_leader_epoch=0).encode())


@pytest.fixture
def avro_options(tmp_path: Path) -> tuple[str, ...]:
    schema = tmp_path / "order.avsc"
    schema.write_text(ORDER_AVRO)
    return "--decode", "avro", "--schema", str(schema)


def test_values_and_keys_become_json(run: Run, tmp_path: Path, avro_options: tuple[str, ...]) -> None:
    write(tmp_path / "data", avro(ORDER_AVRO, ORDER), None)
    answer = run("cat", tmp_path / "data", *avro_options, "--decode-key", "json")
    assert answer.status == 0, answer.stderr
    rows = [json.loads(line) for line in answer.lines]
    plain = [json.loads(line) for line in run("cat", tmp_path / "data").lines]
    for row, undecoded, value in zip(rows, plain, (AS_JSON, None), strict=True):
        undecoded.pop("value_encoding", None)
        assert row == undecoded | {"key": {"k": 1}, "value": value}
        assert list(row) == list(undecoded)
    names = run("cat", tmp_path / "data", *avro_options, "--columns", "value").lines
    assert [json.loads(line) for line in names] == [{"value": AS_JSON}, {"value": None}]


def test_other_formats(run: Run, tmp_path: Path, avro_options: tuple[str, ...]) -> None:
    write(tmp_path / "data", avro(ORDER_AVRO, ORDER))
    text = json.dumps(AS_JSON, separators=(",", ":"))
    assert run("cat", tmp_path / "data", *avro_options, "--format", r"%o %s\n").lines == [f"0 {text}"]
    answer = run("cat", tmp_path / "data", *avro_options, "--format", "text")
    assert f'"{{\\"k\\":1}}" {text}' in answer.stdout
    answer = run("cat", tmp_path / "data", *avro_options, "--format", "csv")
    assert "CSV has the bytes of keys and values" in answer.stderr


def test_what_cannot_be_decoded_is_an_error_with_its_place(
    run: Run, tmp_path: Path, avro_options: tuple[str, ...]
) -> None:
    good = avro(ORDER_AVRO, ORDER)
    write(tmp_path / "data", good, good[:-1], good)
    answer = run("cat", tmp_path / "data", *avro_options)
    assert (answer.status, len(answer.lines)) == (1, 1)
    assert answer.stderr.startswith(
        "txnkafka: error: t-0, offset 1: the value cannot be decoded: it does not match the Avro schema"
    )


def test_what_cannot_be_decoded_is_printed_as_it_is_on_demand(
    run: Run, tmp_path: Path, avro_options: tuple[str, ...]
) -> None:
    good = avro(ORDER_AVRO, ORDER)
    write(tmp_path / "data", good, b"text", b"\xff", good)
    answer = run("cat", tmp_path / "data", *avro_options, "--decode-errors", "raw")
    rows = [json.loads(line) for line in answer.lines]
    assert [row["value"] for row in rows] == [AS_JSON, "text", "/w==", AS_JSON]
    assert [row.get("value_encoding") for row in rows] == [None, None, "base64", None]
    assert ["value_error" in row for row in rows] == [False, True, True, False]
    assert answer.status == 1
    assert "t-0: 2 keys and values could not be decoded" in answer.stderr
    raw = ("--decode-errors", "raw", "--format", r"%o=%S\n")
    assert run("cat", tmp_path / "data", *avro_options, *raw).lines[1:3] == ["1=4", "2=1"]


def test_a_registry_is_enough(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "data", framed(1, avro(ORDER_AVRO, ORDER)))
    with serving() as registry:
        registry.documents["/schemas/ids/1"] = {"schema": ORDER_AVRO}
        answer = run("cat", tmp_path / "data", "--schema-registry", registry.url)
        assert json.loads(answer.stdout)["value"] == AS_JSON
    answer = run("cat", tmp_path / "data", "--schema-registry", "http://127.0.0.1:1")
    assert (answer.status, answer.stdout) == (2, "")
    assert "http://127.0.0.1:1/schemas/ids/1 does not answer" in answer.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--decode avro", "--decode avro needs --schema FILE"),
        ("--decode-key protobuf --key-schema x", "--decode-key protobuf needs --key-message NAME"),
        ("--schema x", "--schema needs --decode avro or protobuf"),
        ("--key-message x", "--key-message needs --decode-key protobuf"),
        ("--decode registry", "--decode registry needs --schema-registry URL"),
        ("--decode json --schema-registry http://x", "--schema-registry needs --decode registry"),
        ("--schema-registry file:///x", "--schema-registry: file:///x is not an address such as http://host"),
        ("--decode avro --schema /none", "the schema /none cannot be read: No such file or directory"),
    ],
)
def test_options_that_do_not_fit_together(run: Run, log_dir: Path, options: str, message: str) -> None:
    answer = run("cat", log_dir, *options.split())
    assert (answer.status, answer.stdout) == (2, "")
    assert message in answer.stderr


def test_json_has_no_numbers_that_parsers_refuse(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.avsc").write_text('{"type": "array", "items": ["double", "bytes"]}')
    content = avro((tmp_path / "x.avsc").read_text(), [float("nan"), 1.5, b"a", b"\xff"])
    write(tmp_path / "data", content)
    answer = run("cat", tmp_path / "data", "--decode", "avro", "--schema", tmp_path / "x.avsc")
    assert json.loads(answer.stdout)["value"] == ["nan", 1.5, "a", {"base64": "/w=="}]


def test_records_in_python(tmp_path: Path) -> None:
    write(tmp_path / "data", avro(ORDER_AVRO, ORDER), None, b"\xff")
    view = LogDir(tmp_path / "data").partition("t", 0)
    records = view.records(decode_key=JsonDecoder(), decode_value=AvroDecoder(ORDER_AVRO))
    assert [next(records)[3:5], next(records)[3:5]] == [({"k": 1}, ORDER), ({"k": 1}, None)]
    with pytest.raises(DecodeError, match="t-0, offset 2: the value cannot be decoded") as caught:
        next(records)
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.field) == ("t", 0, 2, "value")


def test_content_that_is_nested_too_deeply_is_an_error_with_its_place(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "data", b"[" * 700 + b"]" * 700)
    answer = run("cat", tmp_path / "data", "--decode", "json")
    assert (answer.status, answer.stdout) == (1, "")
    assert "t-0, offset 0: the value cannot be decoded: it is nested too deeply" in answer.stderr
