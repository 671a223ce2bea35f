"""The limit on file descriptors, and the connections that it leaves room for."""

from __future__ import annotations

import resource

import pytest

from txnkafka.server.descriptors import most_connections, raise_limit


@pytest.mark.parametrize(
    ("soft", "most"), [(64, 21), (1024, 341), (100_000, 99_000), (resource.RLIM_INFINITY, 1 << 62)]
)
def test_connections_leave_descriptors(monkeypatch: pytest.MonkeyPatch, soft: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert most_connections() == most


@pytest.mark.parametrize("is_refused", [False, True])
def test_the_limit_is_raised_if_it_may_be(monkeypatch: pytest.MonkeyPatch, is_refused: bool) -> None:
    asked: list[tuple[int, int]] = []

    def setrlimit(_: int, limits: tuple[int, int]) -> None:
        asked.append(limits)
        if is_refused:
            raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 4096))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    raise_limit()
    assert asked == [(4096, 4096)]
