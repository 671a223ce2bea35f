"""``Signal``: wakes the tasks that wait for the next change."""

from __future__ import annotations

from txnkafka.client.promise import Promise


class Signal:
    """``next`` is done at the next ``notify``."""

    def __init__(self) -> None:
        self.next = Promise[None]()

    def notify(self) -> None:
        """Wake all that wait now."""
        woken, self.next = self.next, Promise[None]()
        woken.set(None)
