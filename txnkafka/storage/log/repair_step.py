"""Describes a repair made while a log is opened: as done or, for a dry run, as planned."""

from __future__ import annotations

from typing import NamedTuple


class RepairStep(NamedTuple):
    """``what`` is ``action`` (a participle with its complements) because of ``why``. Without an action,
    ``what`` states a fact for the operator. ``bytes_cut`` is the number of log bytes removed."""

    what: str
    action: str = ""
    why: str = ""
    bytes_cut: int = 0

    def __str__(self) -> str:
        return self._sentence("is")

    @property
    def planned(self) -> str:
        """The sentence for a planned repair."""
        return self._sentence("would be")

    def _sentence(self, verb: str) -> str:
        sentence = f"{self.what} {verb} {self.action}" if self.action else self.what
        return f"{sentence}: {self.why}" if self.why else sentence
