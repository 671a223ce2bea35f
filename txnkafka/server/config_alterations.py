"""What AlterConfigs and IncrementalAlterConfigs have in common: many resources, each for itself.

Source: ``ConfigAdminManager.preprocess``.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.config_alteration import Alteration, ConfigOp, alter_configs
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.broker.broker import Broker

__all__ = ["Altered", "alter_all"]

_TOPIC, _BROKER = 2, 4  # ConfigResource.Type
_NOT_HERE: Final = {
    8: "this broker has no loggers whose levels can be changed",
    16: "metrics of clients are not collected here",
    32: "groups have no settings here",
}


class Altered(NamedTuple):
    """What became of the changes of one resource."""

    resource_type: int
    resource_name: str
    error: ErrorCode
    message: str | None


def alter_all(
    broker: Broker,
    wanted: Sequence[Alteration],
    reply: Callable[[list[Altered]], None],
    *,
    validate_only: bool,
    now_ms: int,
) -> None:
    """Change the configs of resources; one that is named twice is not changed."""
    counts = Counter((each.resource_type, each.resource_name) for each in wanted)
    results: dict[int, Altered] = {}

    def done(i: int, error: ErrorCode, message: str | None = None) -> None:
        results[i] = Altered(wanted[i].resource_type, wanted[i].resource_name, error, message)
        if len(results) == len(wanted):
            reply([results[i] for i in range(len(wanted))])

    if not wanted:
        reply([])
    for i, each in enumerate(wanted):
        if counts[each.resource_type, each.resource_name] > 1:
            refused: str | None = "Each resource must appear at most once."
        else:
            refused = _refusal(each)
        if refused is None:
            alter_configs(broker, each, partial(done, i), validate_only=validate_only, now_ms=now_ms)
        else:
            done(i, ErrorCode.INVALID_REQUEST, refused)


def _refusal(wanted: Alteration) -> str | None:
    """What is wrong with the request itself; None if nothing is."""
    if max(Counter(change.name for change in wanted.changes).values(), default=0) > 1:
        return "Error due to duplicate config keys"
    needing = [change for change in wanted.changes if change.op != ConfigOp.DELETE]
    nulls = [change.name for change in needing if change.value is None]
    if nulls:
        return f"Null value not supported for : {', '.join(nulls)}"
    kind = wanted.resource_type
    if kind in (_TOPIC, _BROKER):
        return None
    return _NOT_HERE.get(kind, f"Unknown resource type {kind}")
