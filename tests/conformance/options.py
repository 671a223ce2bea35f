"""Options that both sources have, with values that must give the same rows, or a refusal, in both."""

from __future__ import annotations

import json
from typing import NamedTuple

from tests.conformance.topics import BEGAN, PARTITIONS
from txnkafka.spark.source_options import OPTION_NAMES

__all__ = ["LEFT_OUT", "SAME", "STRICTER", "Case"]


class Case(NamedTuple):
    """Options; ``refused`` where there is no answer. ``rows``: how many, where that can be told.
    ``needs``: the option without which ours cannot mean the same."""

    options: dict[str, str]
    refused: bool = False
    rows: int | None = None
    needs: str | None = None

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.options.items())


def _plain(*values: int) -> str:
    return json.dumps({"plain": {str(partition): value for partition, value in enumerate(values)}})


def _time(number: int) -> str:
    """Of the record with this number in each partition of ``plain``."""
    return str(BEGAN + 1000 * number)


def _times(*numbers: int) -> str:
    return _plain(*(int(_time(number)) for number in numbers))


PLAIN = {"subscribe": "plain"}
ALL = {"subscribe": ",".join(PARTITIONS)}
LATE = 10_000  # no record is as young
CASES = [
    Case({"assign": '{"plain": [0, 2], "codecs": [4]}'}, rows=1600),
    Case({"subscribe": "plain,shapes"}),
    Case({"subscribe": "plain,none-such"}, refused=True),
    Case({"subscribePattern": "p.*|shap.s"}),
    Case({"subscribePattern": "^(plain|orders)$"}),
    Case({"subscribePattern": "codecs|_offsets"}, rows=1000),
    Case({**PLAIN, "startingOffsets": "earliest", "endingOffsets": "latest"}, rows=2100),
    Case({**PLAIN, "startingOffsets": "latest"}, refused=True),
    Case({**PLAIN, "endingOffsets": "earliest"}, refused=True),
    Case({**PLAIN, "startingOffsets": _plain(23, -2, 690)}, rows=677 + 700 + 10),
    Case({**PLAIN, "startingOffsets": _plain(-1, -2, -2)}, refused=True),
    Case({**PLAIN, "startingOffsets": _plain(23, 23)}, refused=True),
    Case({**PLAIN, "endingOffsets": _plain(23, -1, 0)}, rows=23 + 700),
    Case({**PLAIN, "endingOffsets": _plain(23, -2, 0)}, refused=True),
    Case({**PLAIN, "startingOffsets": _plain(10, 10, 10), "endingOffsets": _plain(20, 10, 11)}, rows=11),
    Case({**PLAIN, "startingOffsets": _plain(0, 0, 700)}, rows=1400),
    Case({**PLAIN, "startingOffsets": _plain(0, 0, 701)}, refused=True),
    Case({"subscribe": "deleted", "startingOffsets": '{"deleted": {"0": 3, "1": -2}}'}, refused=True),
    Case({**PLAIN, "startingTimestamp": _time(300)}),
    Case({**PLAIN, "startingTimestamp": _time(-1)}, rows=2100),
    Case({**PLAIN, "endingTimestamp": _time(300)}),
    Case({**PLAIN, "endingTimestamp": _time(LATE)}, rows=2100),
    Case({**PLAIN, "startingTimestamp": _time(100), "endingTimestamp": _time(300)}),
    Case({**PLAIN, "startingTimestamp": _time(LATE)}, True, needs="startingOffsetsByTimestampStrategy"),
    Case({"subscribe": "orders", "startingTimestamp": _time(15)}),
    Case({"subscribe": "compacted", "startingTimestamp": _time(149)}),
    Case({"subscribe": "deleted", "endingTimestamp": _time(500)}),
    Case({"subscribe": "append-time", "startingTimestamp": _time(LATE)}, rows=200),
    Case({**PLAIN, "startingOffsetsByTimestamp": _times(5, 300, 699)}),
    Case({**PLAIN, "startingOffsetsByTimestamp": _times(5, 300)}, refused=True),
    Case({**PLAIN, "startingOffsetsByTimestamp": _times(5, 300, LATE)}, refused=True),
    Case({**PLAIN, "endingOffsetsByTimestamp": _times(5, 300, LATE)}),
    Case({**PLAIN, "startingTimestamp": _time(LATE), "startingOffsetsByTimestampStrategy": "error"}, True),
    Case({**PLAIN, "startingTimestamp": _time(LATE), "startingOffsetsByTimestampStrategy": "latest"}, rows=0),
    Case({**ALL, "minPartitions": "40"}),
    Case({**PLAIN, "maxRecordsPerPartition": "100"}, rows=2100),
    Case({**PLAIN, "maxRecordsPerPartition": "0"}, refused=True),
    Case({**PLAIN, "minPartitions": "0"}, refused=True),
]
# Spark's source reads what there is, if only nothing; ours says that something is not there.
STRICTER = [Case({"assign": '{"plain": [0, 3]}'}, rows=700), Case({"subscribePattern": "none-such"}, rows=0)]


def _lacking(case: Case) -> list[str]:
    return [name for name in (*case.options, *filter(None, [case.needs])) if name not in OPTION_NAMES]


SAME = [case for case in CASES if not _lacking(case)]
LEFT_OUT = {str(case): f"txnkafka has no option {name}" for case in CASES for name in _lacking(case)}
