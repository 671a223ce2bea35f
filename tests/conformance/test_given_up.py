"""What Apache Kafka does with a message that gets the sequence of one that its producer has given up."""

from __future__ import annotations

from tests.conformance.broker import KafkaBroker
from tests.conformance.clients import Clients
from tests.server.answer_eater import AnswerEater
from tests.server.given_up import BEFORE, write_after_giving_up


def test_kafka_loses_it(kafka: KafkaBroker) -> None:
    """Ours refuses it (DIVERGENCES.md): tests/server/test_given_up.py."""
    Clients(kafka).create("given-up", 1)
    with AnswerEater(kafka.bootstrap_servers) as eater:
        told = write_after_giving_up(eater, "given-up")
    assert told.is_committed
    assert told.offset == 2, "of the message that was given up"
    assert told.seen == [BEFORE]
