"""Records of ``__cluster_metadata``, the log of KRaft controllers (``MetadataRecordSerde``, tables of 4.4).

The record's key is null; its value begins with three varints: frame version (always 1), api key, record
version.  All versions are flexible.  Api keys 6, 13 and 16 are not used.
"""

from __future__ import annotations

from typing import Final

from txnkafka.wire.records.log_record import UNKNOWN_TYPE, LogRecord, read_fields
from txnkafka.wire.scalars import read_uvarint, write_uvarint
from txnkafka.wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Field,
    Message,
    SchemaError,
)
from txnkafka.wire.writer import write_message

FRAME_VERSION = 1


def decode_metadata(value: bytes | None) -> LogRecord:
    """Decode the value of a record of ``__cluster_metadata``; never raises, see ``LogRecord.error``."""
    if value is None:
        return LogRecord(UNKNOWN_TYPE, error="the value is null")
    try:
        frame_version, position = read_uvarint(value, 0, len(value))
        api_key, position = read_uvarint(value, position, len(value))
        version, position = read_uvarint(value, position, len(value))
    except SchemaError as error:
        return LogRecord(UNKNOWN_TYPE, error=f"frame: {error}", raw_value=value)
    if frame_version != FRAME_VERSION:
        return LogRecord(UNKNOWN_TYPE, error=f"frame version {frame_version} is not known", raw_value=value)
    message = RECORDS.get(api_key)
    if message is None:
        unknown = f"api key {api_key} is not known"
        return LogRecord(UNKNOWN_TYPE, api_key, value_version=version, error=unknown, raw_value=value)
    fields, wrong = read_fields(message, version, value, position)
    raw_value = value if wrong else None
    return LogRecord(message.name, api_key, None, version, fields, wrong, raw_value=raw_value)


def encode_metadata(record: LogRecord) -> bytes:
    """Return the value of a record of ``__cluster_metadata``, the inverse of ``decode_metadata``. Raises
    SchemaError for fields that do not follow the tables, and for a record that could not be decoded."""
    message = None if record.key_version is None else RECORDS.get(record.key_version)
    if message is None or record.key_version is None or record.type != message.name:
        raise SchemaError(f"{record.type!r} is not the record of api key {record.key_version}")
    if record.error is not None or record.value is None or record.value_version is None:
        raise SchemaError(f"the {record.type} could not be decoded: {record.error or 'it has no value'}")
    data = write_message(message, record.value_version, record.value)
    frame = bytearray()
    for number in (FRAME_VERSION, record.key_version, record.value_version):
        write_uvarint(frame, number)
    return bytes(frame) + data


_ENDPOINTS: Final = Array.of(
    Field("name", STRING),
    Field("host", STRING),
    Field("port", UINT16),
    Field("security_protocol", INT16),
)

_FEATURES: Final = Array.of(
    Field("name", STRING),
    Field("min_supported_version", INT16),
    Field("max_supported_version", INT16),
)

_ENTITY: Final = Array.of(
    Field("entity_type", STRING),
    Field("entity_name", STRING, nullable="0+"),
)

RECORDS: Final = {
    0: Message("register_broker_record", "0-4", flexible="0+").of(
        Field("broker_id", INT32),
        Field("is_migrating_zk_broker", BOOL, "2+"),
        Field("incarnation_id", UUID),
        Field("broker_epoch", INT64),
        Field("end_points", _ENDPOINTS),
        Field("features", _FEATURES),
        Field("rack", STRING, nullable="0+"),
        Field("fenced", BOOL, default=True),
        Field("in_controlled_shutdown", BOOL, "1+"),
        Field("log_dirs", Array(UUID), "3+", tag=0),
        Field("cordoned_log_dirs", Array(UUID), "4+", tag=1, nullable="0+", default=None),
    ),
    1: Message("unregister_broker_record", "0", flexible="0+").of(
        Field("broker_id", INT32),
        Field("broker_epoch", INT64),
    ),
    2: Message("topic_record", "0", flexible="0+").of(
        Field("name", STRING),
        Field("topic_id", UUID),
    ),
    3: Message("partition_record", "0-2", flexible="0+").of(
        Field("partition_id", INT32, default=-1),
        Field("topic_id", UUID),
        Field("replicas", Array(INT32)),
        Field("isr", Array(INT32)),
        Field("removing_replicas", Array(INT32)),
        Field("adding_replicas", Array(INT32)),
        Field("leader", INT32, default=-1),
        Field("leader_recovery_state", INT8, tag=0),
        Field("leader_epoch", INT32, default=-1),
        Field("partition_epoch", INT32, default=-1),
        Field("directories", Array(UUID), "1+"),
        Field("eligible_leader_replicas", Array(INT32), "2+", tag=1, nullable="0+", default=None),
        Field("last_known_elr", Array(INT32), "2+", tag=2, nullable="0+", default=None),
    ),
    4: Message("config_record", "0", flexible="0+").of(
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("name", STRING),
        Field("value", STRING, nullable="0+"),
    ),
    5: Message("partition_change_record", "0-2", flexible="0+").of(
        Field("partition_id", INT32, default=-1),
        Field("topic_id", UUID),
        Field("isr", Array(INT32), tag=0, nullable="0+", default=None),
        Field("leader", INT32, tag=1, default=-2),
        Field("replicas", Array(INT32), tag=2, nullable="0+", default=None),
        Field("removing_replicas", Array(INT32), tag=3, nullable="0+", default=None),
        Field("adding_replicas", Array(INT32), tag=4, nullable="0+", default=None),
        Field("leader_recovery_state", INT8, tag=5, default=-1),
        Field("directories", Array(UUID), "1+", tag=8, nullable="0+", default=None),
        Field("eligible_leader_replicas", Array(INT32), "2+", tag=6, nullable="0+", default=None),
        Field("last_known_elr", Array(INT32), "2+", tag=7, nullable="0+", default=None),
    ),
    7: Message("fence_broker_record", "0", flexible="0+").of(
        Field("id", INT32),
        Field("epoch", INT64),
    ),
    8: Message("unfence_broker_record", "0", flexible="0+").of(
        Field("id", INT32),
        Field("epoch", INT64),
    ),
    9: Message("remove_topic_record", "0", flexible="0+").of(
        Field("topic_id", UUID),
    ),
    10: Message("delegation_token_record", "0", flexible="0+").of(
        Field("owner", STRING),
        Field("requester", STRING),
        Field("renewers", Array(STRING)),
        Field("issue_timestamp", INT64),
        Field("max_timestamp", INT64),
        Field("expiration_timestamp", INT64),
        Field("token_id", STRING),
    ),
    11: Message("user_scram_credential_record", "0", flexible="0+").of(
        Field("name", STRING),
        Field("mechanism", INT8),
        Field("salt", BYTES),
        Field("stored_key", BYTES),
        Field("server_key", BYTES),
        Field("iterations", INT32),
    ),
    12: Message("feature_level_record", "0", flexible="0+").of(
        Field("name", STRING),
        Field("feature_level", INT16),
    ),
    14: Message("client_quota_record", "0", flexible="0+").of(
        Field("entity", _ENTITY),
        Field("key", STRING),
        Field("value", FLOAT64),
        Field("remove", BOOL),
    ),
    15: Message("producer_ids_record", "0", flexible="0+").of(
        Field("broker_id", INT32),
        Field("broker_epoch", INT64, default=-1),
        Field("next_producer_id", INT64),
    ),
    17: Message("broker_registration_change_record", "0-3", flexible="0+").of(
        Field("broker_id", INT32),
        Field("broker_epoch", INT64),
        Field("fenced", INT8, tag=0),
        Field("in_controlled_shutdown", INT8, "1+", tag=1),
        Field("log_dirs", Array(UUID), "2+", tag=2),
        Field("cordoned_log_dirs", Array(UUID), "3+", tag=3, nullable="0+", default=None),
    ),
    18: Message("access_control_entry_record", "0", flexible="0+").of(
        Field("id", UUID),
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("pattern_type", INT8),
        Field("principal", STRING),
        Field("host", STRING),
        Field("operation", INT8),
        Field("permission_type", INT8),
    ),
    19: Message("remove_access_control_entry_record", "0", flexible="0+").of(
        Field("id", UUID),
    ),
    20: Message("no_op_record", "0", flexible="0+").of(),
    21: Message("zk_migration_state_record", "0", flexible="0+").of(
        Field("zk_migration_state", INT8),
    ),
    22: Message("remove_user_scram_credential_record", "0", flexible="0+").of(
        Field("name", STRING),
        Field("mechanism", INT8),
    ),
    23: Message("begin_transaction_record", "0", flexible="0+").of(
        Field("name", STRING, tag=0, nullable="0+", default=None),
    ),
    24: Message("end_transaction_record", "0", flexible="0+").of(),
    25: Message("abort_transaction_record", "0", flexible="0+").of(
        Field("reason", STRING, tag=0, nullable="0+", default=None),
    ),
    26: Message("remove_delegation_token_record", "0", flexible="0+").of(
        Field("token_id", STRING),
    ),
    27: Message("register_controller_record", "0", flexible="0+").of(
        Field("controller_id", INT32),
        Field("incarnation_id", UUID),
        Field("zk_migration_ready", BOOL),
        Field("end_points", _ENDPOINTS),
        Field("features", _FEATURES),
    ),
    28: Message("clear_elr_record", "0", flexible="0+").of(
        Field("topic_name", STRING),
    ),
    29: Message("unregister_controller_record", "0", flexible="0+").of(
        Field("controller_id", INT32),
    ),
}
