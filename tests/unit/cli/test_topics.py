"""``txnkafka topics`` on a data directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.clusters import broker_on, hang, rows
from tests.unit.cli.conftest import Run
from txnkafka.cli.topics import topics


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the topics bills (1 partition) and orders (2 partitions)."""
    folder = tmp_path / "data"
    with broker_on(folder) as broker, broker.admin() as admin:
        admin.create_topic("orders", partitions=2, config={"retention.ms": 5})
        admin.create_topic("bills")
    return folder


def test_topics_are_listed(run: Run, data: Path) -> None:
    answer = run("topics", "list", "--data", data)
    assert (answer.status, answer.stderr) == (0, "")
    assert [line.split() for line in answer.lines] == [
        ["topic", "partitions", "replication_factor"], ["bills", "1", "1"], ["orders", "2", "1"],
    ]  # fmt: skip
    listed = rows(run, "topics", "list", "or*", "--data", data)
    assert [(row["topic"], row["partitions"], row["is_internal"]) for row in listed] == [("orders", 2, False)]


def test_a_topic_that_does_not_exist(run: Run, data: Path) -> None:
    for command in ("list", "describe"):
        answer = run("topics", command, "order", "--data", data)
        assert (answer.status, answer.stdout) == (2, "")
        assert answer.stderr == f"txnkafka: error: no topic order in {data}; did you mean orders?\n"
    answer = run("topics", "delete", "gone", "bills", "--data", data)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith("txnkafka: error: topic gone: UNKNOWN_TOPIC_OR_PARTITION")
    assert [row["topic"] for row in rows(run, "topics", "list", "--data", data)] == ["orders"]


def test_internal_topics_are_listed_on_request(run: Run, data: Path) -> None:
    run("txn", "fence", "shop", "--data", data)
    names = [row["topic"] for row in rows(run, "topics", "list", "--internal", "--data", data)]
    assert names == ["__transaction_state", "bills", "orders"]


def test_a_topic_is_described_with_offsets_and_settings(run: Run, data: Path) -> None:
    with broker_on(data) as broker:
        hang(broker, "orders", 1, 3)
    answer = run("topics", "describe", "orders", "--data", data)
    assert [line.split() for line in answer.lines] == [
        ["topic", "partition", "leader", "replicas", "isr", "first_offset", "last_stable_offset"],
        ["orders", "0", "1", "1", "1", "0", "0"],
        ["orders", "1", "1", "1", "1", "0", "0"],
        ["orders:", "retention.ms=5"],
    ]
    (described,) = rows(run, "topics", "describe", "orders", "--data", data)
    assert described["config"] == {"retention.ms": "5"}
    ends = [(row["last_stable_offset"], row["high_watermark"]) for row in described["partitions"]]
    assert ends == [(0, 0), (0, 3)]
    assert "high_watermark" in run("topics", "describe", "--data", data, "--format", "wide").lines[0]


def test_topics_are_created(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "new"
    create = ("topics", "create", "orders", "bills", "--partitions", 3, "--data", data)
    answer = run(*create, "--config", "retention.ms=7", "--config", "cleanup.policy=compact")
    assert answer == (0, "orders: created with 3 partitions\nbills: created with 3 partitions\n", "")
    again = run(*create)
    assert (again.status, again.stdout) == (2, "")
    assert [line.split(":")[2].strip() for line in again.stderr.splitlines()] == [
        "topic bills",
        "topic orders",
    ]
    assert run(*create, "more", "--if-not-exists") == (
        0, "more: created with 3 partitions\n",
        "txnkafka: note: orders exists\ntxnkafka: note: bills exists\n",
    )  # fmt: skip
    described = rows(run, "topics", "describe", "bills", "--data", data)
    assert described[0]["config"] == {"retention.ms": "7", "cleanup.policy": "compact"}


def test_a_creation_is_only_checked(run: Run, data: Path, tmp_path: Path) -> None:
    create = ("topics", "create", "more", "--dry-run")
    answer = run(*create, "--data", data)
    assert answer == (0, "more: would be created with 1 partition\n", "")
    refused = run(*create, "--data", data, "--config", "retention.ms=soon")
    assert (refused.status, refused.stdout) == (2, "")
    assert "INVALID_CONFIG" in refused.stderr
    assert len(rows(run, "topics", "list", "--data", data)) == 2
    assert run(*create, "--data", tmp_path / "gone").status == 2
    assert not (tmp_path / "gone").exists()


def test_topics_are_altered(run: Run, data: Path) -> None:
    alter = ("topics", "alter", "orders", "--data", data)
    changes = ("--partitions", 4, "--config", "segment.ms=9", "--delete-config", "retention.ms")
    assert run(*alter, *changes, "--dry-run") == (0, "orders: would be changed\n", "")
    (before,) = rows(run, "topics", "describe", "orders", "--data", data)
    assert (before["config"], len(before["partitions"])) == ({"retention.ms": "5"}, 2)
    assert run(*alter, *changes) == (0, "orders: changed\n", "")
    (after,) = rows(run, "topics", "describe", "orders", "--data", data)
    assert (after["config"], len(after["partitions"])) == ({"segment.ms": "9"}, 4)
    assert "nothing to change: give --partitions" in run(*alter).stderr
    assert run(*alter, "--partitions", 1).status == 2


def test_topics_are_deleted(run: Run, data: Path) -> None:
    assert run("topics", "delete", "orders", "--data", data) == (0, "orders: deleted\n", "")
    assert run("topics", "delete", "orders", "bills", "--if-exists", "--data", data) == (
        0,
        "bills: deleted\n",
        "",
    )
    assert rows(run, "topics", "list", "--data", data) == []


def test_a_cluster_must_be_chosen(run: Run, data: Path) -> None:
    for options in ((), ("--data", data, "--bootstrap", "127.0.0.1:1")):
        answer = run("topics", "list", *options)
        assert (answer.status, answer.stdout) == (2, "")
        assert "choose a cluster: --data DIR for a data directory, or --bootstrap HOST:PORT" in answer.stderr


def test_a_missing_directory_is_not_created(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "gone"
    answer = run("topics", "list", "--data", data)
    assert (answer.status, answer.stdout) == (2, "")
    assert f"{data} does not exist: 'txnkafka topics create --data {data} TOPIC' creates it" in answer.stderr
    assert not data.exists()


def test_a_directory_in_use(run: Run, data: Path) -> None:
    with broker_on(data):
        answer = run("topics", "list", "--data", data)
    assert (answer.status, answer.stdout) == (2, "")
    assert f"{data}" in answer.stderr


def test_settings_of_the_client(run: Run, data: Path) -> None:
    listing = ("topics", "list", "--data", data, "-X")
    assert run(*listing, "request.timeout.ms=500").status == 0
    wrong = run(*listing, "request.timeout=500")
    assert wrong.status == 2
    assert "-X: unknown setting 'request.timeout'; do you mean request.timeout.ms?" in wrong.stderr


def test_subcommands_have_hints_and_examples(run: Run) -> None:
    assert "No such command 'lst': did you mean list?" in run("topics", "lst").stderr
    assert run("topics") == (2, "", run("topics", "--help").stdout)
    help_text = run("topics", "alter", "--help").stdout
    assert "txnkafka topics alter orders --partitions 6" in help_text
    assert "txnkafka topics delete" not in help_text


def test_json_lines_are_one_object_each(run: Run, data: Path) -> None:
    lines = run("topics", "describe", "--data", data, "--format", "jsonl").lines
    assert [json.loads(line)["topic"] for line in lines] == ["bills", "orders"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list"], "nothing was changed"),
        (["delete", "orders"], "requests that were sent may still take effect"),
    ],
)
def test_an_interrupted_subcommand(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(topics.commands[arguments[0]], "callback", interrupted)
    answer = run("topics", *arguments, "--data", "/data")
    assert answer == (130, "", f"txnkafka: error: interrupted; {words}\n")
