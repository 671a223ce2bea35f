"""Messages that a client gives up do not swallow later ones."""

from __future__ import annotations

from pathlib import Path

from tests.server.answer_eater import AnswerEater
from tests.server.given_up import BEFORE, write_after_giving_up
from tests.server.serving import Serving


def test_a_sequence_that_was_given_up_is_refused(tmp_path: Path) -> None:
    """The answer to its batch would say that the new message is in the log, and it would never be."""
    with Serving(tmp_path / "data", "--create-topic", "orders:1") as broker:
        with AnswerEater(broker.address) as eater:
            told = write_after_giving_up(eater, "orders")
        assert (told.offset, told.is_committed, told.seen) == (None, False, [BEFORE])
        assert broker.stop() == 0
        assert "error" not in broker.log()
