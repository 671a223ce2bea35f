"""``table=halves`` of the directory of a real broker, planned and read in this process, without Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.spark.half_directory import DECIDED_MS, PARTITIONS, STATES, write_halves
from tests.unit.logdir.logs import batch, write_log
from tests.unit.spark.test_tables import Row, rows
from txnkafka import Broker, CorruptRecordError
from txnkafka.checkback.half_topics import HALF_TOPIC, half_partition
from txnkafka.cli.main import main
from txnkafka.shown import iso_time
from txnkafka.testing.settings import SETTINGS

COLUMN_OF = {
    "transaction_id": "transactionId",
    "producer_group": "producerGroup",
    "state": "state",
    "born": "bornTimestamp",
    "asks": "asks",
    "last_asked": "lastAskedTimestamp",
    "outcome": "outcome",
    "decided_by": "decidedBy",
    "reason": "reason",
    "partition": "partition",
    "offset": "offset",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("halves") / "data"
    write_halves(directory)
    return directory


def listed(data: Path, capsys: pytest.CaptureFixture[str]) -> list[Row]:
    with pytest.raises(SystemExit):
        main(["halves", "list", "--data", str(data), "--format", "json"])
    found: list[Row] = json.loads(capsys.readouterr().out)
    return found


def by_id(found: list[Row]) -> dict[str, Row]:
    named = {row["transactionId"]: row for row in found}
    assert len(named) == len(found)
    return named


def shown(value: object) -> object:
    """The text of a timestamp as the command prints it."""
    return iso_time(round(value.timestamp() * 1000)) if hasattr(value, "timestamp") else value


def test_halves_that_are_not_done_are_those_of_the_command(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = by_id(rows("halves", data))
    expected = {row["transaction_id"]: row for row in listed(data, capsys)}
    assert {name for name, row in found.items() if row["state"] != "done"} == expected.keys()
    for name, row in expected.items():
        same = {each: shown(found[name][column]) for each, column in COLUMN_OF.items()}
        if row["state"] == "parked":  # the command does not search the log for the time of the half
            assert same["born"] is not None
            same["born"] = None
        assert same == row


def test_each_state_has_its_facts(data: Path) -> None:
    found = by_id(rows("halves", data))
    assert {name: row["state"] for name, row in found.items()} == STATES
    decisions = {name: (row["outcome"], row["decidedBy"]) for name, row in found.items()}
    assert decisions == {
        "asked": (None, None), "committed": ("commit", "producer"), "decided": ("commit", "check"),
        "parked": ("park", "policy"), "prepared": (None, None), "rolled back": ("rollback", "producer"),
    }  # fmt: skip
    assert {name: row["asks"] for name, row in found.items() if row["asks"]} == {"asked": 3, "parked": 1}
    times = {
        name: [row[f"{kind}Timestamp"] is not None for kind in ("born", "lastAsked", "decided", "ended")]
        for name, row in found.items()
    }
    assert times == {
        "asked": [True, True, False, False], "committed": [True, False, True, True],
        "decided": [True, False, True, False], "parked": [True, False, True, True],
        "prepared": [True, False, False, False], "rolled back": [True, False, True, True],
    }  # fmt: skip
    assert shown(found["decided"]["decidedTimestamp"]) == iso_time(DECIDED_MS)
    assert {name: row["partition"] for name, row in found.items()} == {
        name: half_partition(name, PARTITIONS) for name in STATES
    }


def test_targets_have_the_partitions_and_records_of_the_messages(data: Path) -> None:
    found = by_id(rows("halves", data))
    assert found["committed"]["targets"] == [
        {"topic": "orders", "partition": 0, "records": 1},
        {"topic": "orders", "partition": 1, "records": 2},
    ]
    assert {name: row["records"] for name, row in found.items()} == dict.fromkeys(STATES, 1) | {
        "committed": 3
    }


def test_a_directory_without_halves_gives_an_empty_table(tmp_path: Path) -> None:
    with Broker.open(tmp_path, **SETTINGS) as broker, broker.admin() as admin:
        admin.create_topic("orders", partitions=1)
    assert rows("halves", tmp_path) == []


def test_a_record_that_cannot_be_decoded_fails_the_task_or_is_left_out(tmp_path: Path) -> None:
    write_log(tmp_path, f"{HALF_TOPIC}-3", {0: [batch(0)]})
    with pytest.raises(CorruptRecordError) as caught:
        rows("halves", tmp_path)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == (HALF_TOPIC, 3, 0)
    assert f"{HALF_TOPIC}-3, offset 0" in str(caught.value)
    assert "failOnDataLoss=false" in str(caught.value)
    assert rows("halves", tmp_path, fail_on_data_loss=False) == []


def test_a_damaged_batch_fails_the_task_or_is_left_out(data: Path, tmp_path: Path) -> None:
    found = by_id(rows("halves", data))
    shutil.copytree(data, tmp_path / "copy")
    log = tmp_path / "copy" / f"{HALF_TOPIC}-{found['prepared']['partition']}" / f"{0:020}.log"
    damaged = bytearray(log.read_bytes())
    damaged[100] ^= 1  # a record of the first batch, which is not at the end of the log
    log.write_bytes(damaged)
    with pytest.raises(CorruptRecordError) as caught:
        rows("halves", tmp_path / "copy")
    assert (caught.value.topic, caught.value.position) == (HALF_TOPIC, 0)
    left = by_id(rows("halves", tmp_path / "copy", fail_on_data_loss=False))
    here = {name for name, row in found.items() if row["partition"] == found["prepared"]["partition"]}
    assert here - left.keys() == {"prepared"}
