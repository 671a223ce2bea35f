"""A data directory goes from owner to owner, and each one must have all that the checklist names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.conformance.broker import KafkaBroker
from tests.conformance.hand_over import administration, members, records
from tests.conformance.hand_over.owners import Item, owned
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.handover.hand_over import hand_over
from txnkafka.handover.report import Owner

__all__ = ["SETTINGS", "groups_there_and_back", "records_there_and_back"]

SETTINGS = {**records.SETTINGS, **members.SETTINGS}
OWNERS = (Owner.TXNKAFKA, Owner.KAFKA)


def records_there_and_back(kafka: KafkaBroker, rounds: int) -> None:
    """Let records and transactions go from txnkafka to Kafka and back so many times.

    ``kafka`` is not running, and has the ``SETTINGS``.
    """
    written = records.Records()
    for turn in range(2 * rounds + 1):
        _turn(kafka, [written], records.TOPICS, records.SETTINGS, turn)
        written.hand_over(str(kafka.log_dir), turn, _next(turn))
    assert len(written.owners) > 5 * rounds


def groups_there_and_back(kafka: KafkaBroker, rounds: int) -> None:
    """Let groups, partitions and configs go from txnkafka to Kafka and back so many times.

    Not with the records: when Kafka 4.4.0 started with these 90 partitions, its group coordinator sometimes
    loaded twice, and the offsets of a decided transaction were still pending after a minute.
    """
    checklist = [members.Members(), administration.Administration()]
    topics = (*members.TOPICS, *administration.TOPICS)
    for turn in range(2 * rounds + 1):
        _turn(kafka, checklist, topics, SETTINGS, turn)
        path, now_ms = str(kafka.log_dir), SystemClock().now_ms()
        assert hand_over(LocalDataFiles(), path, _next(turn), now_ms=now_ms).is_ready


def _turn(
    kafka: KafkaBroker,
    checklist: Sequence[Item],
    topics: Sequence[str],
    settings: Mapping[str, str],
    turn: int,
) -> None:
    with owned(kafka, OWNERS[turn % 2], topics, settings) as serving:
        for item in checklist if turn else ():
            item.check(serving, turn)
        for item in checklist:
            item.leave(serving, turn)


def _next(turn: int) -> Owner:
    return OWNERS[(turn + 1) % 2]
