"""``PreparedTxnState``: the identity of a prepared transaction, to be stored in a database (KIP-939)."""

from __future__ import annotations

from dataclasses import dataclass

from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_LARGEST_ID, _LARGEST_EPOCH = 2**63 - 1, 2**15 - 1


@dataclass(frozen=True, slots=True)
class PreparedTxnState:
    """The producer id and epoch of a prepared transaction; -1 without one.

    ``str`` returns "producer_id:epoch", or an empty text without a transaction, as Java's class of this name
    does; ``parse`` reads it."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH

    @classmethod
    def parse(cls, text: str) -> PreparedTxnState:
        """Return the state from the text of ``str``. Raises ValueError for any other text."""
        if not text:
            return cls()
        producer_id, colon, epoch = text.partition(":")
        are_numbers = all(each.isascii() and each.isdigit() for each in (producer_id, epoch))
        if not colon or not are_numbers or len(producer_id) > 19 or len(epoch) > 5:
            raise ValueError(f"{text[:60]!r} is not the state of a prepared transaction, PRODUCER_ID:EPOCH")
        state = cls(int(producer_id), int(epoch))
        if state.producer_id > _LARGEST_ID or state.epoch > _LARGEST_EPOCH:
            raise ValueError(f"{text!r} has a producer id or epoch that does not exist")
        return state

    @property
    def has_transaction(self) -> bool:
        """Return whether this names a transaction."""
        return self.producer_id != NO_PRODUCER_ID

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}" if self.has_transaction else ""


def prepared_state(state: PreparedTxnState | str) -> PreparedTxnState:
    """Return a state that may be given as text. Raises ValueError for a wrong text."""
    return PreparedTxnState.parse(state) if isinstance(state, str) else state
