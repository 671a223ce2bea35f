"""Decides whether a batch is published: by its id, its owner, and the last publication of its transactional
id.

The publication is the metadata of an offset of the group that is named after the transactional id. It is
committed in the transaction that has the rows, so it is there exactly if they are.
"""

from __future__ import annotations

import enum
import json
from typing import Final, NamedTuple

from txnkafka.errors import KafkaError

_RUNS: Final = 16  # remembered, so that the metadata of an offset (at most 4 KiB) has room for them


class BatchRefusedError(KafkaError):
    """A batch must not be published, because another one of its transactional id was."""


class BatchId(NamedTuple):
    """A batch of a transactional id. ``owner`` is the id of the streaming query, "" without one; ``run`` the
    id of the start of the query, "" if unknown."""

    number: int
    owner: str = ""
    run: str = ""


class Publication(NamedTuple):
    """The last batch that was published, and the runs that published, the last one at the end."""

    number: int
    owner: str = ""
    runs: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return the metadata of the offset."""
        return json.dumps({"batch": self.number, "query": self.owner, "runs": self.runs})

    @classmethod
    def of_text(cls, text: str) -> Publication:
        """Parse the metadata of an offset. Raises ValueError for other text."""
        try:
            found = json.loads(text)
            return cls(int(found["batch"]), str(found["query"]), tuple(map(str, found["runs"])))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{text!r:.100} is not the id of a batch") from None

    def after(self, batch: BatchId) -> Publication:
        """Return the publication to record with the batch."""
        others = [run for run in self.runs if run != batch.run]
        runs = [*others, batch.run] if batch.run else others
        return Publication(batch.number, batch.owner, tuple(runs[-_RUNS:]))


class Verdict(enum.Enum):
    """``REGISTER``: the rows are there, but the run is new, and fences the runs before it."""

    PUBLISH = "publish"
    SKIP = "skip"
    REGISTER = "register"
    REFUSE_OWNER = "refuse: another query"
    REFUSE_RUN = "refuse: a later run"
    REFUSE_LOWER = "refuse: a lower batch"


class Case(NamedTuple):
    """A row of the table. None in a field matches any value."""

    is_recorded: bool
    is_owner: bool | None
    run: str | None  # current, new, superseded
    order: str | None  # lower, equal, higher than the recorded batch
    verdict: Verdict


TABLE: Final = (
    Case(False, None, None, None, Verdict.PUBLISH),
    Case(True, False, None, None, Verdict.REFUSE_OWNER),
    Case(True, True, "superseded", None, Verdict.REFUSE_RUN),
    Case(True, True, None, "lower", Verdict.REFUSE_LOWER),
    Case(True, True, "current", "equal", Verdict.SKIP),
    Case(True, True, "new", "equal", Verdict.REGISTER),
    Case(True, True, None, "higher", Verdict.PUBLISH),
)
"""The first row that fits counts."""


def decide(recorded: Publication | None, batch: BatchId) -> Verdict:
    """Return the verdict about a batch that is about to be published."""
    if recorded is None:
        found: tuple[bool, bool, str, str] = (False, True, "new", "higher")
    else:
        found = (True, recorded.owner == batch.owner, _run(recorded, batch), _order(recorded, batch))
    return next(
        case.verdict
        for case in TABLE
        if all(want is None or want == have for want, have in zip(case[:-1], found, strict=True))
    )


def refusal(name: str, recorded: Publication, batch: BatchId, verdict: Verdict) -> BatchRefusedError:
    """Return the error of a verdict that refuses a batch of the transactional id ``name``, with the next
    step."""
    what = f"batch {batch.number} of transactional id {name} is refused"
    if verdict is Verdict.REFUSE_OWNER:
        return BatchRefusedError(
            f"{what}: batch {recorded.number} was published by {_query(recorded.owner)}, and this one is by "
            f"{_query(batch.owner)}. Restart with the checkpoint of that query, or give this one an option "
            "transactionalId of its own, which writes its batches from 0 on again"
        )
    if verdict is Verdict.REFUSE_RUN:
        return BatchRefusedError(
            f"{what}: a later start of the same query (run {recorded.runs[-1]}) has published batch "
            f"{recorded.number}, and fences this run {batch.run}. Stop one of the two drivers"
        )
    return BatchRefusedError(
        f"{what}: batch {recorded.number} was published, so its rows may be there already. If the "
        "checkpoint was restored from an older copy, restore the newest one; to write the rows again, use "
        "another transactionalId or txnAppId"
    )


def _run(recorded: Publication, batch: BatchId) -> str:
    if not batch.run or recorded.runs[-1:] == (batch.run,):
        return "current"
    return "superseded" if batch.run in recorded.runs else "new"


def _order(recorded: Publication, batch: BatchId) -> str:
    if batch.number == recorded.number:
        return "equal"
    return "lower" if batch.number < recorded.number else "higher"


def _query(owner: str) -> str:
    return f"query {owner}" if owner else "a batch write"
