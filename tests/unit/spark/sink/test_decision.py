"""The decision about a batch: the table row by row, and a model of crashes and replays."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.spark.sink.decision import TABLE, BatchId, Publication, Verdict, decide, refusal

Q, OTHER = "query", "another"
AFTER_5 = Publication(5, Q, ("old", "now"))
REFUSALS = (Verdict.REFUSE_OWNER, Verdict.REFUSE_RUN, Verdict.REFUSE_LOWER)


@pytest.mark.parametrize(
    ("recorded", "batch", "verdict"),
    [
        (None, BatchId(0, Q, "now"), Verdict.PUBLISH),
        (None, BatchId(7, Q, "now"), Verdict.PUBLISH),  # the batches before it were empty
        (AFTER_5, BatchId(6, Q, "now"), Verdict.PUBLISH),
        (AFTER_5, BatchId(9, Q, "now"), Verdict.PUBLISH),
        (AFTER_5, BatchId(6, Q, "new"), Verdict.PUBLISH),
        (AFTER_5, BatchId(5, Q, "now"), Verdict.SKIP),
        (AFTER_5, BatchId(5, Q, ""), Verdict.SKIP),  # the run is unknown
        (AFTER_5, BatchId(5, Q, "new"), Verdict.REGISTER),
        (AFTER_5, BatchId(4, Q, "now"), Verdict.REFUSE_LOWER),
        (AFTER_5, BatchId(0, Q, "new"), Verdict.REFUSE_LOWER),  # an older checkpoint
        (AFTER_5, BatchId(5, Q, "old"), Verdict.REFUSE_RUN),
        (AFTER_5, BatchId(6, Q, "old"), Verdict.REFUSE_RUN),  # the driver that was replaced goes on
        (AFTER_5, BatchId(4, Q, "old"), Verdict.REFUSE_RUN),
        (AFTER_5, BatchId(0, OTHER, "new"), Verdict.REFUSE_OWNER),  # a new checkpoint
        (AFTER_5, BatchId(5, OTHER, "new"), Verdict.REFUSE_OWNER),
        (AFTER_5, BatchId(6, "", ""), Verdict.REFUSE_OWNER),
        (Publication(5), BatchId(6), Verdict.PUBLISH),  # txnAppId and txnVersion
        (Publication(5), BatchId(5), Verdict.SKIP),
        (Publication(5), BatchId(4), Verdict.REFUSE_LOWER),
        (Publication(5), BatchId(6, Q, "new"), Verdict.REFUSE_OWNER),
    ],
)
def test_verdicts(recorded: Publication | None, batch: BatchId, verdict: Verdict) -> None:
    assert decide(recorded, batch) is verdict


@given(
    st.none() | st.builds(Publication, st.integers(0, 3), st.sampled_from([Q, ""]), st.just(("a", "b"))),
    st.builds(BatchId, st.integers(0, 3), st.sampled_from([Q, ""]), st.sampled_from(["", "a", "b", "c"])),
)
def test_the_table_has_a_row_for_every_case(recorded: Publication | None, batch: BatchId) -> None:
    assert decide(recorded, batch) in {case.verdict for case in TABLE}


@pytest.mark.parametrize("verdict", REFUSALS)
def test_a_refusal_names_the_next_step(verdict: Verdict) -> None:
    text = str(refusal("job", AFTER_5, BatchId(3, OTHER, "old"), verdict))
    steps = ("of its own", "Stop one of the two drivers", "restore the newest one")
    assert "batch 3 of transactional id job is refused" in text
    assert steps[REFUSALS.index(verdict)] in text


def test_the_metadata_of_an_offset_has_room_for_all_runs() -> None:
    publication = Publication(0, "0" * 36)
    for number in range(100):
        publication = publication.after(BatchId(number, "0" * 36, f"{number:036}"))
    assert Publication.of_text(publication.to_text()) == publication
    assert publication.runs[-1] == f"{99:036}"
    assert len(publication.to_text()) < 4096  # offset.metadata.max.bytes


@pytest.mark.parametrize("text", ["", "notes of a consumer", "5", "{}", json.dumps({"batch": 1})])
def test_metadata_of_another_program(text: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a batch"):
        Publication.of_text(text)


def test_a_run_that_comes_back_is_the_last_one() -> None:
    assert AFTER_5.after(BatchId(6, Q, "new")).runs == ("old", "now", "new")
    assert AFTER_5.after(BatchId(6, Q, "now")).runs == ("old", "now")
    assert AFTER_5.after(BatchId(6, Q)).runs == ("old", "now")


@dataclass
class Target:
    """A log with transactions, as the coordinator keeps it: rows and the publication change together."""

    rows: list[tuple[int, str]] = field(default_factory=list)
    recorded: Publication | None = None
    undecided: tuple[list[tuple[int, str]], Publication] | None = None

    def init(self) -> None:
        self.undecided = None  # aborted

    def commit(self) -> None:
        assert self.undecided is not None
        rows, self.recorded = self.undecided
        self.rows += rows
        self.undecided = None


@given(st.data())
def test_every_batch_is_there_once_whatever_crashes(data: st.DataObject) -> None:
    """Spark's rule: a start repeats the last batch unless Spark has noted its end. A crash may be anywhere;
    runs that were replaced may go on with the batch that they had."""
    target, done, stale = Target(), -1, list[BatchId]()
    for start in range(data.draw(st.integers(1, 12), "starts")):
        run = f"run {start}"
        for number in range(done + 1, done + 1 + data.draw(st.integers(1, 3), "batches")):
            batch = BatchId(number, Q, run)
            crash = data.draw(st.sampled_from(["", "", "", "before", "undecided", "decided"]), "crash")
            if not attempt(target, batch, crash):
                stale.append(batch)
                break
            done = number
        if stale and data.draw(st.booleans(), "a driver that was replaced goes on"):
            attempt(target, stale.pop(data.draw(st.integers(0, len(stale) - 1))), "")
    numbers = [number for number, _ in target.rows]
    assert numbers == sorted(set(numbers))
    assert set(range(done + 1)) <= set(numbers)


def attempt(target: Target, batch: BatchId, crash: str) -> bool:
    """Publish a batch as ``publish`` does; return whether Spark notes its end."""
    if crash == "before":
        return False
    target.init()
    verdict = decide(target.recorded, batch)
    if verdict in REFUSALS:
        return False
    if verdict is not Verdict.SKIP:
        rows = [(batch.number, batch.run)] if verdict is Verdict.PUBLISH else []
        before = target.recorded or Publication(batch.number)
        target.undecided = rows, before.after(batch)
        if crash == "undecided":
            return False
        target.commit()
    return crash != "decided"
