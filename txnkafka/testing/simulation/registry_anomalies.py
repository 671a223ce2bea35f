"""Checks the final settings of topics and the final log starts against the clients' responses, independent of
the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnkafka.testing.simulation.history import History


def wrong_settings(history: History) -> Iterator[str]:
    """Yield topics whose settings differ from their creation and later changes."""
    for topic, found in history.final_settings.items():
        if found not in history.settings[topic]:
            yield f"{topic} has {found}, not one of {history.settings[topic]}"


def wrong_deletion(history: History) -> Iterator[str]:
    """Yield partitions with deleted records, or without records that were not to be deleted."""
    for (topic, number), (deleted, asked) in history.deletions.items():
        start = history.log_starts.get((topic, number), deleted)
        if start < deleted:
            yield f"the records of {topic}-{number} below {deleted} were deleted, and it begins at {start}"
        if start > asked:
            yield f"{topic}-{number} begins at {start}, and records below {asked} at most were to be deleted"


REGISTRY_CHECKS: dict[str, Callable[[History], Iterator[str]]] = {
    "wrong-settings": wrong_settings,
    "wrong-deletion": wrong_deletion,
}
