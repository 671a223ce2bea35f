"""What opening a log had to put right, in the words of a thing done or, for a dry run, of a thing planned."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["RepairStep"]


class RepairStep(NamedTuple):
    """``what`` is ``action`` (a participle and what belongs to it) because of ``why``. Without an action
    ``what`` is a fact that somebody should know."""

    what: str
    action: str = ""
    why: str = ""

    def __str__(self) -> str:
        return self._sentence("is")

    @property
    def planned(self) -> str:
        """The same before it is done."""
        return self._sentence("would be")

    def _sentence(self, verb: str) -> str:
        sentence = f"{self.what} {verb} {self.action}" if self.action else self.what
        return f"{sentence}: {self.why}" if self.why else sentence
