"""Records of the metadata log that this broker does not use, but Apache Kafka needs when it opens the
directory.

These are registrations, quotas, ACLs, SCRAM credentials and delegation tokens. The last record of each object
is kept for snapshots.

Source: ``ClusterDelta``, ``ClientQuotasDelta``, ``AclsDelta``, ``ScramDelta``, ``DelegationTokenDelta``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from txnkafka.wire.records import LogRecord

_BROKER: Final = "register_broker_record"
_IDENTITIES: Final = {
    _BROKER: ("broker_id",),
    "register_controller_record": ("controller_id",),
    "access_control_entry_record": ("id",),
    "user_scram_credential_record": ("name", "mechanism"),
    "delegation_token_record": ("token_id",),
}
_REMOVALS: Final = {
    "unregister_broker_record": _BROKER,
    "unregister_controller_record": "register_controller_record",
    "remove_access_control_entry_record": "access_control_entry_record",
    "remove_user_scram_credential_record": "user_scram_credential_record",
    "remove_delegation_token_record": "delegation_token_record",
}
_QUOTA: Final = "client_quota_record"


class KeptRecords:
    """The records by type and by the identity of their objects."""

    def __init__(self) -> None:
        self._records: dict[str, dict[Hashable, LogRecord]] = {}

    def replay(self, record: LogRecord) -> None:
        """Keep, replace or remove a record; other types are ignored."""
        kind, value = record.type, record.value or {}
        if kind in _IDENTITIES:
            self._of(kind)[_identity(kind, value)] = record
        elif kind in _REMOVALS:
            removed = _REMOVALS[kind]
            self._of(removed).pop(_identity(removed, value), None)
        elif kind == _QUOTA:
            self._quota(record, value)
        elif kind == "broker_registration_change_record":
            self._change_broker(value["broker_id"], _changes(value))
        elif kind in ("fence_broker_record", "unfence_broker_record"):
            self._change_broker(value["id"], {"fenced": kind == "fence_broker_record"})

    def of(self, kind: str) -> Iterator[LogRecord]:
        """Yield the records of a type."""
        yield from self._records.get(kind, {}).values()

    def _of(self, kind: str) -> dict[Hashable, LogRecord]:
        return self._records.setdefault(kind, {})

    def _quota(self, record: LogRecord, value: dict[str, Any]) -> None:
        entity = frozenset((part["entity_type"], part["entity_name"]) for part in value["entity"])
        if value["remove"]:
            self._of(_QUOTA).pop((entity, value["key"]), None)
        else:
            self._of(_QUOTA)[entity, value["key"]] = record

    def _change_broker(self, broker_id: int, changes: dict[str, Any]) -> None:
        brokers = self._of(_BROKER)
        known = brokers.get((broker_id,))
        if known is not None:
            brokers[broker_id,] = replace(known, value={**(known.value or {}), **changes})


def _identity(kind: str, value: dict[str, Any]) -> tuple[Hashable, ...]:
    return tuple(value[name] for name in _IDENTITIES[kind])


def _changes(value: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of a BrokerRegistrationChange: 1 sets a flag, -1 clears it; 0 and an absent list
    change nothing."""
    changes: dict[str, Any] = {}
    if value["fenced"]:
        changes["fenced"] = value["fenced"] > 0
    if value.get("in_controlled_shutdown"):
        changes["in_controlled_shutdown"] = True
    if value.get("log_dirs"):
        changes["log_dirs"] = value["log_dirs"]
    if value.get("cordoned_log_dirs") is not None:
        changes["cordoned_log_dirs"] = value["cordoned_log_dirs"]
    return changes
