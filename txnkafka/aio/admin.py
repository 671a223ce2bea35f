"""``Admin`` for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from txnkafka.aio.waiting import run, transport_of
from txnkafka.client.admin import Admin as BlockingAdmin
from txnkafka.client.admin.core import AdminCore

if TYPE_CHECKING:
    from types import TracebackType

    from txnkafka.embedded import Broker

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[AdminCore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Admin, P], Coroutine[Any, Any, T]]:
    """Return a method that awaits a coroutine of the core."""

    @wraps(method)
    async def call(self: Admin, /, *arguments: P.args, **options: P.kwargs) -> T:
        blocking = self._blocking
        return await run(blocking._reactor, method(blocking._core, *arguments, **options))

    return call


class Admin:
    """The calls of ``txnkafka.Admin``, as coroutines."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, *, broker: Broker | None = None, **more: Any
    ) -> None:
        self._blocking = BlockingAdmin(settings, transport=transport_of(broker), **more)

    create_topic = _awaited(AdminCore.create_topic)
    create_topics = _awaited(AdminCore.create_topics)
    delete_topics = _awaited(AdminCore.delete_topics)
    list_topics = _awaited(AdminCore.list_topics)
    describe_topics = _awaited(AdminCore.describe_topics)
    create_partitions = _awaited(AdminCore.create_partitions)

    list_offsets = _awaited(AdminCore.list_offsets)
    delete_records = _awaited(AdminCore.delete_records)

    describe_configs = _awaited(AdminCore.describe_configs)
    incremental_alter_configs = _awaited(AdminCore.incremental_alter_configs)

    list_groups = _awaited(AdminCore.list_groups)
    describe_groups = _awaited(AdminCore.describe_groups)
    delete_groups = _awaited(AdminCore.delete_groups)
    remove_members = _awaited(AdminCore.remove_members)
    list_group_offsets = _awaited(AdminCore.list_group_offsets)
    alter_group_offsets = _awaited(AdminCore.alter_group_offsets)
    delete_group_offsets = _awaited(AdminCore.delete_group_offsets)

    list_transactions = _awaited(AdminCore.list_transactions)
    describe_transactions = _awaited(AdminCore.describe_transactions)
    describe_producers = _awaited(AdminCore.describe_producers)
    find_hanging_transactions = _awaited(AdminCore.find_hanging_transactions)
    list_two_phase_transactions = _awaited(AdminCore.list_two_phase_transactions)
    complete_transaction = _awaited(AdminCore.complete_transaction)
    abort_transaction = _awaited(AdminCore.abort_transaction)
    fence_producers = _awaited(AdminCore.fence_producers)

    describe_cluster = _awaited(AdminCore.describe_cluster)
    describe_log_dirs = _awaited(AdminCore.describe_log_dirs)
    describe_features = _awaited(AdminCore.describe_features)
    update_features = _awaited(AdminCore.update_features)

    async def close(self) -> None:
        """Release the connections."""
        self._blocking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
