"""``txnkafka txns`` and ``txnkafka groups`` compared with what the coordinators of a real Kafka said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden.cases import Case
from tests.golden.test_lso import COORDINATED, GROUPED
from txnkafka.cli.main import cli

Json = Any


def rows(command: str, case: Case, *options: str) -> list[Json]:
    arguments = [command, str(case.answered), "--now", str(case.recorded_at_ms), "--format", "json", *options]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    found: list[Json] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("case", COORDINATED, ids=lambda case: case.name)
def test_transactions(case: Case) -> None:
    found = {row["transactional_id"]: row for row in rows("txns", case)}
    listed = {each["transactional_id"]: each for each in case.cluster["list_transactions"]}
    assert found.keys() == listed.keys()
    for name, row in found.items():
        assert row["producer_id"] == listed[name]["producer_id"]
        assert row["transaction_state"] == listed[name]["state"]
    for name, told in case.cluster["describe_transactions"].items():
        if "error" not in told:
            row = found[name]
            assert row["current_transaction_start_time_ms"] == told["transaction_start_time_ms"]
            for field in ("producer_epoch", "transaction_timeout_ms"):
                assert row[field] == told[field]
            assert row["topic_partitions"] == sorted(told["topic_partitions"])


@pytest.mark.parametrize("case", GROUPED, ids=lambda case: case.name)
def test_offsets_of_groups(case: Case) -> None:
    found = rows("groups", case)
    ends = {str(partition): case.facts(partition) for partition in case.partitions()}
    for group, told in case.cluster["groups"]["offsets"].items():
        ours = {f"{row['topic']}-{row['partition']}": row for row in found if row["group"] == group}
        offsets = told["not_require_stable"]["offsets"]
        assert {
            name: row["current_offset"] for name, row in ours.items() if row["current_offset"] is not None
        } == {name: each["offset"] for name, each in offsets.items()}
        stable = told["require_stable"]["offsets"] if "require_stable" in told else None
        for name, row in ours.items():
            if stable is not None:
                assert bool(row["pending_offsets"]) == (name not in stable)
            if name in ends:
                assert row["log_end_offset"] == ends[name]["high_watermark"]
                assert row["last_stable_offset"] == ends[name]["lso"]
                blocked = ends[name]["lso"] < ends[name]["high_watermark"]
                reached = row["current_offset"] is not None and row["current_offset"] >= ends[name]["lso"]
                behind_end = row["lag"] is not None and row["lag"] > 0
                assert (row["waits_behind"] is not None) == (blocked and reached and behind_end)


DESCRIBED = [
    each
    for each in GROUPED
    if any(group.get("members") for group in each.cluster["groups"]["describe"].values())
]


@pytest.mark.parametrize("case", DESCRIBED, ids=lambda case: case.name)
def test_members_of_groups(case: Case) -> None:
    """The directory was copied after the groups were described and stopped: some of them have left since."""
    described = {
        (name, partition): (member["member_id"], member["client_id"])
        for name, group in case.cluster["groups"]["describe"].items()
        for member in group.get("members", ())
        for partition in member["assignment"]
    }
    found = {
        (row["group"], f"{row['topic']}-{row['partition']}"): (row["consumer_id"], row["client_id"])
        for row in rows("groups", case)
        if row["consumer_id"] is not None
    }
    assert found
    assert found == described
