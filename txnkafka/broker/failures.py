"""A deferred call may raise: then the request that caused it is answered with an error, and the rest goes on.

The host sets ``owner`` while it hands a request to the broker; whatever the broker calls later for that
request belongs to it, and so does what that asks for.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Failures", "Owner"]

LOG = logging.getLogger("txnkafka.broker")

if TYPE_CHECKING:
    Owner = Callable[[Exception], None]


class Failures:
    """``owner`` gets the exception of a call that belongs to it; None for what the broker does by
    itself."""

    __slots__ = ("owner",)

    def __init__(self) -> None:
        self.owner: Owner | None = None

    def owned(self, call: Callable[..., object]) -> Callable[..., None]:
        """Return what makes a call later for the owner of this moment. Who keeps the owner beside the call
        needs only ``run``."""
        return partial(self.run, self.owner, call)

    def run(self, owner: Owner | None, call: Callable[..., object], *arguments: Any) -> None:
        """Call for ``owner``. An exception is logged."""
        before, self.owner = self.owner, owner
        try:
            call(*arguments)
        except Exception as error:
            LOG.exception("a call of the broker failed; it goes on")
            if owner is not None:
                owner(error)
        finally:
            self.owner = before
