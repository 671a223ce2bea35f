"""``txnkafka consume`` from a data directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.clusters import broker_on, hang
from tests.unit.cli.conftest import Run
from txnkafka.cli import consume as consume_module

DAY_MS = 86_400_000
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """orders-0 has five records, a day apart; orders-1 has one without key; bills-0 has one."""
    folder = tmp_path / "data"
    with broker_on(folder) as broker, broker.admin() as admin, broker.producer() as producer:
        admin.create_topic("orders", partitions=2, config={"retention.ms": -1})
        admin.create_topic("bills")
        for number in range(5):
            value = b"value-%d" % number
            time_ms = FIRST_MS + number * DAY_MS
            producer.send("orders", value, b"k%d" % number, partition=0, timestamp=time_ms)
        producer.send("orders", None, partition=1, headers=[("h", b"x"), ("none", None)])
        producer.send("bills", b"bill")
        producer.flush()
    return folder


def values(run: Run, data: Path, *options: object) -> list[str]:
    answer = run("consume", *options, "--data", data, "-e")
    assert (answer.status, answer.stderr) == (0, "")
    return answer.lines


ORDERS = ("orders", "-p", 0)


def test_values_are_lines(run: Run, data: Path) -> None:
    assert values(run, data, *ORDERS) == [f"value-{number}" for number in range(5)]
    assert sorted(values(run, data, "orders", "bills")) == ["", "bill", *(f"value-{n}" for n in range(5))]


@pytest.mark.parametrize(
    ("offset", "numbers"),
    [
        (["beginning"], [0, 1, 2, 3, 4]),
        (["end"], []),
        (["3"], [3, 4]),
        (["-2"], [3, 4]),
        (["-9"], [0, 1, 2, 3, 4]),
        ([f"s@{FIRST_MS + 2 * DAY_MS}"], [2, 3, 4]),
        (["s@2023-11-15T22:13:20Z"], [1, 2, 3, 4]),
        ([f"s@{FIRST_MS + 9 * DAY_MS}"], []),
        ([f"e@{FIRST_MS + 2 * DAY_MS}"], [0, 1]),
        ([f"s@{FIRST_MS + 1}", f"e@{FIRST_MS + 3 * DAY_MS}"], [1, 2]),
        (["1", f"e@{FIRST_MS + 9 * DAY_MS}"], [1, 2, 3, 4]),
    ],
)
def test_where_reading_begins_and_ends(run: Run, data: Path, offset: list[str], numbers: list[int]) -> None:
    options = [word for value in offset for word in ("-o", value)]
    assert values(run, data, *ORDERS, *options) == [f"value-{number}" for number in numbers]


def test_an_end_time_ends_the_command(run: Run, data: Path) -> None:
    answer = run("consume", *ORDERS, "-o", f"e@{FIRST_MS + DAY_MS}", "--data", data)
    assert answer == (0, "value-0\n", "")


def test_a_number_of_records(run: Run, data: Path) -> None:
    assert run("consume", *ORDERS, "-c", 2, "--data", data) == (0, "value-0\nvalue-1\n", "")
    assert run("consume", *ORDERS, "-c", 1, "-o", -1, "-u", "--data", data) == (0, "value-4\n", "")


def test_templates_and_delimiters(run: Run, data: Path) -> None:
    template = r"%t %p %o %T %k %s %K %S %h|"
    assert values(run, data, "orders", "-p", 1, "-f", template)[0].split()[:3] == ["orders", "1", "0"]
    last = run("consume", "orders", "-p", 1, "-f", r"%k|%s|%K|%S|%h\n", "-e", "--data", data).stdout
    assert last == "||-1|-1|h=x,none=NULL\n"
    assert values(run, data, *ORDERS, "-o", 4, "-K", r"\t") == ["k4\tvalue-4"]
    assert run("consume", *ORDERS, "-o", 3, "-D", ";", "-e", "--data", data).stdout == "value-3;value-4;"


def test_json_lines_are_those_of_cat(run: Run, data: Path) -> None:
    lines = values(run, data, "orders", "-p", 0, "-J")
    assert lines == values(run, data, "orders", "-p", 0, "--format", "jsonl")
    by_cat = run("cat", data, "--partition", "orders-0").lines
    assert [json.loads(line) for line in lines] == [json.loads(line) for line in by_cat]


def test_text_shows_all_fields(run: Run, data: Path) -> None:
    (line,) = values(run, data, "orders", "-p", 1, "-f", "text")
    assert line.startswith("orders-1@0 ")
    assert line.endswith(' null null h="x" none=null')


def test_a_group_continues_where_it_stopped(run: Run, data: Path) -> None:
    group = ("orders", "-G", "readers")
    assert run("consume", *group, "-c", 2, "-f", r"%o\n", "--data", data).status == 0
    rest = values(run, data, *group)
    assert len(rest) == 4
    assert values(run, data, *group) == []
    offsets = run("groups", "--data", data, "--format", "json").stdout
    assert [row["lag"] for row in json.loads(offsets)] == [0, 0]


def test_a_group_that_begins_at_the_end(run: Run, data: Path) -> None:
    assert values(run, data, "orders", "-G", "late", "-o", "end") == []
    assert values(run, data, "orders", "-G", "early", "-o", "beginning", "-f", r"%p\n").count("0") == 5


def test_a_group_reads_topics_that_match(run: Run, data: Path) -> None:
    assert len(values(run, data, "^bi.*", "^ord.*", "-G", "readers")) == 7


def test_aborted_and_open_transactions(run: Run, data: Path) -> None:
    with broker_on(data) as broker:
        hang(broker, "orders", 0, 1)
        with broker.producer() as producer:
            producer.send("orders", b"behind", partition=0).result()
    assert values(run, data, *ORDERS, "-o", 4) == ["value-4"]
    uncommitted = values(run, data, *ORDERS, "-o", 4, "--isolation-level", "read_uncommitted")
    assert uncommitted == ["value-4", "hanging", "behind"]


def test_a_missing_topic_or_partition(run: Run, data: Path) -> None:
    for group in ((), ("-G", "readers")):
        answer = run("consume", "gone", *group, "--data", data)
        assert (answer.status, answer.stdout) == (2, "")
        assert answer.stderr.startswith("txnkafka: error: topic gone: UNKNOWN_TOPIC_OR_PARTITION")
    answer = run("consume", "orders", "-p", 2, "--data", data)
    assert answer == (2, "", "txnkafka: error: orders-2: the topic has partitions 0 to 1\n")


def test_ctrl_c(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(consume_module.Reading, "run", interrupted)
    assert run("consume", "orders", "--data", data) == (130, "", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "first"], "'first' is none of beginning, end, stored"),
        (["-o", "s@soon"], "'soon' is not a time"),
        (["-o", "1", "-o", "2"], "-o: give one start"),
        (["-o", "stored"], "-o stored needs a group: -G GROUP"),
        (["-G", "g", "-o", "5"], "-o: a group continues at its offsets"),
        (["-G", "g", "-p", "1"], "-p: a group divides the partitions itself"),
        (["-J", "-K", ":"], "--format, -J and -K exclude each other"),
        (["-f", "csv"], "--format csv reads files only"),
        (["-f", "%y"], "%y is not a field of a record"),
    ],
)
def test_options_that_exclude_each_other(run: Run, options: list[str], message: str) -> None:
    answer = run("consume", "orders", *options, "--data", "/data")
    assert (answer.status, answer.stdout) == (2, "")
    assert message in answer.stderr
