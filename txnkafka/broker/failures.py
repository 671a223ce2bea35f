"""Route an exception in a deferred call to the request that scheduled it; the broker keeps running.

The host sets ``owner`` while it hands a request to the broker. Calls that the broker makes later for this
request belong to the same owner, and so do calls that these schedule.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger("txnkafka.broker")

if TYPE_CHECKING:
    Owner = Callable[[Exception], None]


class Failures:
    """Router of exceptions. ``owner`` gets the exception of a call that belongs to it; None means work of
    the broker itself."""

    __slots__ = ("owner",)

    def __init__(self) -> None:
        self.owner: Owner | None = None

    def owned(self, call: Callable[..., object]) -> Callable[..., None]:
        """Return a function that makes a call later for the current owner. Callers that store the owner
        themselves need only ``run``."""
        return partial(self.run, self.owner, call)

    def run(self, owner: Owner | None, call: Callable[..., object], *arguments: Any) -> None:
        """Call on behalf of ``owner``. An exception is logged, and passed to the owner."""
        before, self.owner = self.owner, owner
        try:
            call(*arguments)
        except Exception as error:
            LOG.exception("a deferred call failed; the broker keeps running")
            if owner is not None:
                owner(error)
        finally:
            self.owner = before
