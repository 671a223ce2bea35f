"""What AlterConfigs and IncrementalAlterConfigs have in common: many resources, each for itself.

Source: ``ConfigAdminManager.preprocess``, ``RuntimeLoggerManager``.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.broker.config_alteration import Alteration, ConfigOp, alter_configs
from txnkafka.error_codes import ErrorCode
from txnkafka.server.config_resources import BROKER, GROUP, LOGGER, METRICS, TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.broker.broker import Broker

__all__ = ["Altered", "alter_all"]


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
            done(i, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            continue
        refused = _refusal(each) or (_of_loggers(broker, each) if each.resource_type == LOGGER else None)
        if refused is None:
            alter_configs(broker, each, partial(done, i), validate_only=validate_only)
        else:
            done(i, *refused)


def _refusal(wanted: Alteration) -> tuple[ErrorCode, str] | None:
    """What is wrong with the request itself; None if nothing is."""
    if max(Counter(change.name for change in wanted.changes).values(), default=0) > 1:
        return ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys"
    needing = [change for change in wanted.changes if change.op != ConfigOp.DELETE]
    nulls = [change.name for change in needing if change.value is None]
    if nulls:
        return ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}"
    kind = wanted.resource_type
    if kind in (TOPIC, BROKER, METRICS, GROUP) or (kind == LOGGER and not wanted.is_whole):
        return None
    return ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}"


def _of_loggers(broker: Broker, wanted: Alteration) -> tuple[ErrorCode, str | None]:
    """This broker has no loggers whose levels can be changed: none of those named exists."""
    if wanted.resource_name != str(broker.node_id):
        text = f"Unexpected node id. Expected {broker.node_id}, but received {wanted.resource_name}"
        return ErrorCode.INVALID_REQUEST, text
    for name, op, _ in wanted.changes:
        if op not in (ConfigOp.SET, ConfigOp.DELETE):
            text = f"{op.name} operation is not allowed for the BROKER_LOGGER resource"
            return ErrorCode.INVALID_REQUEST, text
        return ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!"
    return ErrorCode.NONE, None
