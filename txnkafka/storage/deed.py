"""What opening a log had to put right, told as done or, by a rehearsal that writes nothing, as planned."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Deed"]


class Deed(NamedTuple):
    """``what`` is ``deed`` (a participle and what belongs to it) because of ``why``. Without a deed ``what``
    is a fact that somebody should know."""

    what: str
    deed: str = ""
    why: str = ""

    def __str__(self) -> str:
        return self._told("is")

    @property
    def planned(self) -> str:
        """The same before it is done."""
        return self._told("would be")

    def _told(self, verb: str) -> str:
        deed = f"{self.what} {verb} {self.deed}" if self.deed else self.what
        return f"{deed}: {self.why}" if self.why else deed
