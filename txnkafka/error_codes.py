"""``ErrorCode``: the error codes of Apache Kafka 4.4.0, with the reaction that each requires of a client.

Source: ``org.apache.kafka.common.protocol.Errors``; families are the base classes of its exceptions
(KIP-1050). tests/conformance compares every row with Kafka's own classes.
"""

from __future__ import annotations

import enum
from typing import Final


class Family(enum.Enum):
    """The base class of a code's exception, which determines the reaction of a client."""

    PLAIN = "ApiException"
    RETRIABLE = "RetriableException"
    REFRESH = "RefreshRetriableException"
    """Retriable after a new lookup of metadata or coordinator."""
    ABORTABLE = "TransactionAbortableException"
    RECOVERABLE = "ApplicationRecoverableException"
    """The application closes the client and continues with a new one."""
    CONFIGURATION = "InvalidConfigurationException"


class Outcome(enum.Enum):
    """The consequence of an answer with the code for the transaction of its request.

    It is the outcome of Produce, as in ``TransactionManager.maybeTransitionToErrorState``, for the codes that
    brokers send to a producer. ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, GROUP_AUTHORIZATION_FAILED,
    OPERATION_NOT_ATTEMPTED and FENCED_INSTANCE_ID are answers to AddPartitionsToTxn, AddOffsetsToTxn and
    TxnOffsetCommit; TRANSACTION_COORDINATOR_FENCED is an answer to a coordinator that has sent a marker.
    UNKNOWN_SERVER_ERROR has no outcome, because exceptions without a code of Kafka also have it. Some codes
    have another consequence in other requests: INVALID_PRODUCER_EPOCH is fatal in EndTxn."""

    NONE = enum.auto()
    ABORTS = enum.auto()
    """The transaction must be aborted; its producer can continue."""
    FATAL = enum.auto()
    """The sender must stop sending."""


class ErrorCode(enum.IntEnum):
    """A code with its ``name``, ``family`` and ``outcome``."""

    family: Family
    outcome: Outcome

    def __new__(cls, code: int, family: Family = Family.PLAIN, outcome: Outcome = Outcome.NONE) -> ErrorCode:
        self = int.__new__(cls, code)
        self._value_ = code
        self.family, self.outcome = family, outcome
        return self

    @classmethod
    def of(cls, code: int) -> ErrorCode:
        """Return the member for a code; UNKNOWN_SERVER_ERROR for a code of a later Kafka, like
        ``Errors.forCode``."""
        return _ROWS.get(code, cls.UNKNOWN_SERVER_ERROR)

    @property
    def retriable(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.family in (Family.RETRIABLE, Family.REFRESH)

    @property
    def abortable(self) -> bool:
        """Return whether the transaction of the request must be aborted, after which its producer can
        continue."""
        return self.outcome is Outcome.ABORTS

    @property
    def fatal(self) -> bool:
        """Return whether the sender of the request must stop sending."""
        return self.outcome is Outcome.FATAL

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2, Family.RETRIABLE
    UNKNOWN_TOPIC_OR_PARTITION = 3, Family.REFRESH
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5, Family.REFRESH
    NOT_LEADER_OR_FOLLOWER = 6, Family.REFRESH
    REQUEST_TIMED_OUT = 7, Family.RETRIABLE
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9, Family.REFRESH
    MESSAGE_TOO_LARGE = 10, Family.PLAIN, Outcome.ABORTS
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13, Family.REFRESH
    COORDINATOR_LOAD_IN_PROGRESS = 14, Family.RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, Family.REFRESH
    NOT_COORDINATOR = 16, Family.REFRESH
    INVALID_TOPIC_EXCEPTION = 17, Family.CONFIGURATION, Outcome.ABORTS
    RECORD_LIST_TOO_LARGE = 18, Family.CONFIGURATION, Outcome.ABORTS
    NOT_ENOUGH_REPLICAS = 19, Family.RETRIABLE
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, Family.RETRIABLE
    INVALID_REQUIRED_ACKS = 21, Family.CONFIGURATION, Outcome.ABORTS
    ILLEGAL_GENERATION = 22, Family.RECOVERABLE, Outcome.ABORTS
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25, Family.RECOVERABLE, Outcome.ABORTS
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29, Family.CONFIGURATION, Outcome.ABORTS
    GROUP_AUTHORIZATION_FAILED = 30, Family.CONFIGURATION, Outcome.ABORTS
    CLUSTER_AUTHORIZATION_FAILED = 31, Family.CONFIGURATION, Outcome.FATAL
    INVALID_TIMESTAMP = 32, Family.PLAIN, Outcome.ABORTS
    UNSUPPORTED_SASL_MECHANISM = 33, Family.CONFIGURATION
    ILLEGAL_SASL_STATE = 34, Family.CONFIGURATION
    UNSUPPORTED_VERSION = 35, Family.CONFIGURATION, Outcome.FATAL
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38, Family.CONFIGURATION
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40, Family.CONFIGURATION
    NOT_CONTROLLER = 41, Family.RETRIABLE
    INVALID_REQUEST = 42, Family.PLAIN, Outcome.ABORTS
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, Family.CONFIGURATION, Outcome.ABORTS
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, Family.PLAIN, Outcome.ABORTS
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47, Family.RECOVERABLE, Outcome.ABORTS
    INVALID_TXN_STATE = 48, Family.PLAIN, Outcome.ABORTS
    INVALID_PRODUCER_ID_MAPPING = 49, Family.RECOVERABLE, Outcome.FATAL
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51, Family.RETRIABLE
    TRANSACTION_COORDINATOR_FENCED = 52, Family.PLAIN, Outcome.FATAL
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, Family.CONFIGURATION, Outcome.FATAL
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55, Family.PLAIN, Outcome.ABORTS
    KAFKA_STORAGE_ERROR = 56, Family.REFRESH
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58, Family.CONFIGURATION
    UNKNOWN_PRODUCER_ID = 59, Family.PLAIN, Outcome.ABORTS
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, Family.CONFIGURATION
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70, Family.RETRIABLE
    INVALID_FETCH_SESSION_EPOCH = 71, Family.RETRIABLE
    LISTENER_NOT_FOUND = 72, Family.REFRESH
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74, Family.REFRESH
    UNKNOWN_LEADER_EPOCH = 75, Family.RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = 76, Family.PLAIN, Outcome.ABORTS
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78, Family.RETRIABLE
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80, Family.REFRESH
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82, Family.RECOVERABLE, Outcome.ABORTS
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, Family.REFRESH
    ELECTION_NOT_NEEDED = 84, Family.REFRESH
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87, Family.CONFIGURATION, Outcome.ABORTS
    UNSTABLE_OFFSET_COMMIT = 88, Family.RETRIABLE
    THROTTLING_QUOTA_EXCEEDED = 89, Family.RETRIABLE
    PRODUCER_FENCED = 90, Family.RECOVERABLE, Outcome.FATAL
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100, Family.REFRESH
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103, Family.REFRESH
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106, Family.RETRIABLE
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120, Family.ABORTABLE, Outcome.ABORTS
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122, Family.RETRIABLE
    INVALID_SHARE_SESSION_EPOCH = 123, Family.RETRIABLE
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133, Family.RETRIABLE
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136


_ROWS: Final = {int(row): row for row in ErrorCode}
