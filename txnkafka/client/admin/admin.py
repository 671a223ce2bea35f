"""``Admin``: topics, settings, groups and transactions of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from txnkafka.client.admin.admin_config import AdminConfig
from txnkafka.client.admin.core import AdminCore
from txnkafka.client.client import Client

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AdminCore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Admin, P], T]:
    """Return a method that runs a coroutine of the core, and waits for its result."""

    @wraps(method)
    def call(self: Admin, /, *arguments: P.args, **options: P.kwargs) -> T:
        return self._reactor.run(method(self._core, *arguments, **options))

    return call


class Admin(Client[AdminConfig]):
    """A client for the administration of a cluster, with the calls of Java's ``Admin``.

        with Admin(bootstrap_servers="127.0.0.1:9092") as admin:
            admin.create_topic("orders", partitions=3)
            for found in admin.find_hanging_transactions():
                admin.abort_transaction(found.spec)

    A call waits for its result, and repeats what may pass (a broker that restarts, a leader that moves) for
    up to ``default.api.timeout.ms``. It raises a KafkaError that names the topic, partition, group or id; a
    call about several raises the first error, with the others as its notes, after it has done the rest. After
    ``close`` it raises ClosedError. Names of settings are in ``AdminConfig``; any thread may call."""

    kind = "admin client"
    config_class = AdminConfig

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._core = AdminCore(self._transport, self.config)

    create_topic = _blocking(AdminCore.create_topic)
    create_topics = _blocking(AdminCore.create_topics)
    delete_topics = _blocking(AdminCore.delete_topics)
    list_topics = _blocking(AdminCore.list_topics)
    describe_topics = _blocking(AdminCore.describe_topics)
    create_partitions = _blocking(AdminCore.create_partitions)

    list_offsets = _blocking(AdminCore.list_offsets)
    delete_records = _blocking(AdminCore.delete_records)

    describe_configs = _blocking(AdminCore.describe_configs)
    incremental_alter_configs = _blocking(AdminCore.incremental_alter_configs)

    list_groups = _blocking(AdminCore.list_groups)
    describe_groups = _blocking(AdminCore.describe_groups)
    delete_groups = _blocking(AdminCore.delete_groups)
    remove_members = _blocking(AdminCore.remove_members)
    list_group_offsets = _blocking(AdminCore.list_group_offsets)
    alter_group_offsets = _blocking(AdminCore.alter_group_offsets)
    delete_group_offsets = _blocking(AdminCore.delete_group_offsets)

    list_transactions = _blocking(AdminCore.list_transactions)
    describe_transactions = _blocking(AdminCore.describe_transactions)
    describe_producers = _blocking(AdminCore.describe_producers)
    find_hanging_transactions = _blocking(AdminCore.find_hanging_transactions)
    list_two_phase_transactions = _blocking(AdminCore.list_two_phase_transactions)
    complete_transaction = _blocking(AdminCore.complete_transaction)
    abort_transaction = _blocking(AdminCore.abort_transaction)
    fence_producers = _blocking(AdminCore.fence_producers)

    describe_cluster = _blocking(AdminCore.describe_cluster)
    describe_log_dirs = _blocking(AdminCore.describe_log_dirs)
    describe_features = _blocking(AdminCore.describe_features)
    update_features = _blocking(AdminCore.update_features)
    describe_quorum = _blocking(AdminCore.describe_quorum)
