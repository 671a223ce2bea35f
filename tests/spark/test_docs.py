"""Every example of docs/spark.md runs, one after the other, on a recorded directory."""

from __future__ import annotations

import os
import re
import shutil
from base64 import b64decode
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.golden.cases import case
from tests.pages import ROOT, examples
from tests.server.serving import Serving
from txnkafka import TopicPartition
from txnkafka.spark.options import ReadKeywords
from txnkafka.spark.schema import COLUMN_TYPES
from txnkafka.spark.source_options import OPTION_NAMES
from txnkafka.spark.tables import TABLES

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


def test_examples(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, object] = {"spark": spark}
    shutil.copytree(case("interleaved").logs, tmp_path / "data")
    with Serving(tmp_path / "data", "--config", "log.retention.ms=-1") as serving:  # the records are old
        places = {"/var/lib/kafka/data": str(case("interleaved").logs), "localhost:9092": serving.address}
        for example in EXAMPLES:
            for place, here in {**places, "/var/lib/lake": str(tmp_path)}.items():
                example = example.replace(place, here)
            exec(example, names)
        assert names["orders"].count() == len(orders())  # type: ignore[attr-defined]
    assert spark.read.parquet(str(tmp_path / "orders")).count() == len(orders())
    assert len(EXAMPLES) == 17
    assert names["records"] == paid_orders() > 0
    of_orders_0 = case("interleaved").expected_records(TopicPartition("orders", 0), "read_committed")
    assert names["committed"].count() == len(of_orders_0)  # type: ignore[attr-defined]
    spark.catalog.dropTempView("orders")


def test_the_example_of_the_readme(spark: SparkSession) -> None:
    """As it stands there; with TXNKAFKA_REWRITE=1 the page gets what it prints."""
    (example,) = (each for each in examples("README.md") if "spark.read" in each.source)
    printed = example.run({})
    page = ROOT / "README.md"
    if os.environ.get("TXNKAFKA_REWRITE"):
        text = page.read_text(encoding="utf-8")
        before = f"{example.source}```\n\n```text\n"
        page.write_text(text.replace(f"{before}{example.printed}", f"{before}{printed}"), encoding="utf-8")
    assert f"{example.source}```\n\n```text\n{printed}```" in page.read_text(encoding="utf-8")


def orders() -> list[dict[str, Any]]:
    """Return every committed record of the topic."""
    recorded = case("interleaved")
    partitions = (TopicPartition("orders", number) for number in (0, 1))
    return [*chain(*(recorded.expected_records(partition, "read_committed") for partition in partitions))]


def paid_orders() -> int:
    return sum(b"paid" in b64decode(record["value"] or "") for record in orders())


def test_every_option_column_and_keyword_is_explained() -> None:
    explained = set(re.findall(r"`([\w.]+)`", TEXT))
    assert explained >= TABLES.keys()
    assert explained >= (OPTION_NAMES.keys() - {"paths"}) | COLUMN_TYPES.keys() | set(
        ReadKeywords.__annotations__
    )


def test_every_column_of_each_table_is_in_its_section() -> None:
    sections = dict(re.findall(r"\n### `(\w+)`\n(.*?)(?=\n##)", TEXT, flags=re.DOTALL))
    assert sections.keys() | {"records"} == TABLES.keys()
    for name, text in sections.items():
        rows = re.findall(r"^\| (`.*?) \| (\S.*?) \|", text, flags=re.MULTILINE)
        columns = [column for cell, _ in rows for column in re.findall(r"`(\w+)`", cell)]
        assert columns == TABLES[name].columns.names
        kinds = [
            kind
            for cell, kinds in rows
            for kind in (kinds.strip("`").split(", ") * cell.count("`"))[: cell.count("`") // 2]
        ]
        assert kinds == [field.dataType.simpleString() for field in TABLES[name].columns.fields]
