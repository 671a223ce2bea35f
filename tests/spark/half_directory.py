"""A directory of a broker with a half in each state."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from txnkafka import Broker
from txnkafka.checkback import (
    CheckBackAdmin,
    LocalTransactionState,
    Message,
    TransactionListener,
    TransactionMQProducer,
)
from txnkafka.checkback.half_topics import HALF_TOPIC, half_partition
from txnkafka.testing.settings import SETTINGS
from txnkafka.wire.records.half_records import AskedRecord, DecidedBy, DecideRecord, Outcome

PARTITIONS: Final = 2
STATES: Final = {
    "asked": "prepared", "committed": "done", "decided": "decided", "parked": "parked",
    "prepared": "prepared", "rolled back": "done",
}  # fmt: skip
RULES: Final[dict[str, Any]] = {
    "transaction_timeout": 0,
    "transaction_check_interval": 20,
    "transaction_check_max": 1,
}
AN_HOUR: Final = 3600
SECONDS: Final = 60
DECIDED_MS: Final = 1_800_000_000_000


class _Unknown(TransactionListener):
    def execute_local_transaction(self, msg: Any, arg: Any) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, msg: Any) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


def write_halves(directory: Path) -> None:
    """Write the halves of STATES, whose ids are the keys. The broker is stopped afterwards."""
    with Broker.open(directory, **SETTINGS) as broker:
        with broker.admin() as admin:
            admin.create_topic("orders", partitions=2)
            admin.create_topic(HALF_TOPIC, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
        with (
            TransactionMQProducer("shop", broker, transaction_listener=_Unknown(), **RULES) as producer,
            CheckBackAdmin(broker) as halves,
        ):
            for name in ("prepared", "asked", "decided", "rolled back"):
                producer.send_message_in_transaction(
                    Message("orders", name, transaction_id=name, check_immunity_time_in_seconds=AN_HOUR)
                )
            producer.send_message_in_transaction(Message("orders", b"parked", transaction_id="parked"))
            half = producer.half("orders", b"1", partition=0, transaction_id="committed")
            with half.send("orders", b"2", partition=1).send("orders", b"3", partition=1):
                pass
            half.wait_until_done()
            producer.rollback("rolled back")
            producer.wait_until_done("rolled back")
            _wait_until_parked(halves)
    # this broker has no resolver: the decision is not carried out
    with Broker.open(directory, **SETTINGS) as broker, broker.producer() as plain:
        decision = DecideRecord("decided", 7, "shop", Outcome.COMMIT, DecidedBy.CHECK, DECIDED_MS, ask_no=1)
        for record in (decision, AskedRecord("asked", 3, DECIDED_MS + 1, "listener")):
            key, value = record.encode()
            partition = half_partition(record.transaction_id, PARTITIONS)
            plain.send(HALF_TOPIC, key=key, value=value, partition=partition)


def _wait_until_parked(admin: CheckBackAdmin) -> None:
    end = time.monotonic() + SECONDS
    while not any(each.state == "parked" for each in admin.list_half_messages()):
        assert time.monotonic() < end
        time.sleep(0.02)
