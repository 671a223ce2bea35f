"""The class ``Admin``: its settings, its documentation, and its end."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.unit.client.admin.conftest import Cluster
from txnkafka.client.admin import Admin, AdminCore
from txnkafka.errors import ClosedError

METHODS = [name for name, _ in inspect.getmembers(Admin, inspect.isfunction) if not name.startswith("_")]
CALLS = sorted(set(METHODS) - {"close"})


def test_every_call_of_the_core_is_there() -> None:
    coroutines = inspect.getmembers(AdminCore, inspect.iscoroutinefunction)
    public = {name for name, _ in coroutines if not name.startswith("_")}
    assert public - {"outcomes", "results", "result", "nodes"} == set(CALLS)
    assert len(CALLS) > 25


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_the_documentation_and_signature_of_the_core(name: str) -> None:
    method, core = getattr(Admin, name), getattr(AdminCore, name)
    assert method.__doc__ == core.__doc__
    assert inspect.signature(method) == inspect.signature(core)
    assert (method.__doc__ or "").strip().split("\n")[0]


def test_settings_are_read() -> None:
    with Admin({"bootstrap.servers": "127.0.0.1:1"}, default_api_timeout_ms="5") as admin:
        assert admin.config.default_api_timeout_ms == 5
    with pytest.raises(ValueError, match=r"default\.api\.timeout\.m'.*do you mean default\.api\.timeout\.ms"):
        Admin({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.m": 5})
    with pytest.raises(ValueError, match=r"bootstrap\.servers is missing: the admin client needs"):
        Admin()


def test_many_threads_share_a_client(admin: Admin) -> None:
    names = [f"topic-{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(admin.create_topic, names))
    assert sorted(each.name for each in created) == sorted(names)
    assert {each.name for each in admin.list_topics()} == set(names)


def test_a_closed_client_refuses_calls(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    admin.close()
    admin.close()
    with pytest.raises(ClosedError):
        admin.list_topics()
    with Admin(transport=cluster.broker._transport) as another:
        assert [each.name for each in another.list_topics()] == ["orders"]
