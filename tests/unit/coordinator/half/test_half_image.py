"""The image of halves: which record decides, under any order of records, and after compaction."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.models.half_log import compacted, standing
from tests.unit.coordinator.half.half_world import (
    GROUP,
    World,
    decide_record,
    folded,
    half_record,
    standings,
)
from txnkafka.coordinator.half import half_image
from txnkafka.coordinator.half.half_image import HalfImage, HalfState
from txnkafka.wire.records.half_records import (
    AskedRecord,
    DecidedBy,
    EndRecord,
    HalfRecordType,
    HalfTombstone,
    Outcome,
)

COMMIT, ROLLBACK, PARK, RESUME = Outcome
IDS = ("a", "b")


def test_the_first_decision_in_the_order_of_offsets_counts() -> None:
    image = folded([(0, half_record("a")), (1, decide_record("a", ROLLBACK, 1))])
    image.replay(2, *decide_record("a", COMMIT, 2).encode())
    half = image.get("a")
    assert half is not None
    assert (half.state, half.outcome, list(image.decided)) == (HalfState.DECIDED, ROLLBACK, ["a"])
    assert list(image.strays) == [HalfTombstone(HalfRecordType.DECIDE, "a", 2)]


def test_a_second_half_with_the_same_id_is_ignored() -> None:
    image = folded([(0, half_record("a", 1)), (1, half_record("a", 2))])
    half = image.get("a")
    assert half is not None
    assert (half.nonce, half.offset, len(image)) == (1, 0, 1)
    assert list(image.strays) == [HalfTombstone(HalfRecordType.HALF, "a", 2)]


def test_a_half_that_was_done_is_not_begun_again() -> None:
    world = World()
    world.append(half_record("a", 1))
    world.append(decide_record("a", COMMIT, 2))
    world.settle(crashes=False)
    world.append(half_record("a", 3))
    world.append(decide_record("a", COMMIT, 4))
    world.settle(crashes=False)
    assert (len(world.visible), world.image.state_of("a")) == (1, HalfState.DONE)


def test_a_decision_of_another_group_is_ignored() -> None:
    image = folded([(0, half_record("a")), (1, decide_record("a", COMMIT, 1, group="other"))])
    assert (image.state_of("a"), list(image.decided)) == (HalfState.PREPARED, [])
    assert list(image.strays) == [HalfTombstone(HalfRecordType.DECIDE, "a", 1)]


def test_a_decision_about_an_unknown_half_is_ignored() -> None:
    image = folded([(0, decide_record("a", COMMIT, 1)), (1, half_record("a"))])
    assert image.state_of("a") is HalfState.PREPARED


def test_a_prepared_half_cannot_be_resumed() -> None:
    image = folded([(0, half_record("a")), (1, decide_record("a", RESUME, 1))])
    assert (image.state_of("a"), list(image.resuming)) == (HalfState.PREPARED, [])


def test_a_parked_half_takes_no_decision_until_it_is_resumed() -> None:
    world = World()
    world.append(half_record("a", 1))
    world.append(decide_record("a", PARK, 2, by=DecidedBy.ADMIN))
    world.settle(crashes=False)
    assert world.parked["a"].reason == "parked by an administrator"
    world.append(decide_record("a", COMMIT, 3))
    world.settle(crashes=False)
    assert (world.image.state_of("a"), world.visible) == (HalfState.PARKED, [])
    world.append(decide_record("a", RESUME, 4))
    world.settle(crashes=False)
    assert (world.image.state_of("a"), world.parked) == (HalfState.PREPARED, {})
    world.append(decide_record("a", COMMIT, 5))
    world.settle(crashes=False)
    assert world.visible == [half_record("a", 1).batches[0].records]


def test_confirmed_checks_are_counted_until_the_half_is_parked() -> None:
    image = folded([(0, half_record("a")), (1, AskedRecord("a", 3, 5_000, "me"))])
    half = image.get("a")
    assert half is not None
    assert (half.asks, half.last_ms) == (3, 5_000)
    image.replay(2, *EndRecord("a", GROUP, PARK, DecidedBy.POLICY, 6_000, 3).encode())
    image.replay(3, *AskedRecord("a", 4, 7_000, "me").encode())
    parked = image.get("a")
    assert parked is not None
    assert parked.asks == 3
    assert HalfTombstone(HalfRecordType.ASKED, "a") in image.strays


def test_a_check_that_was_confirmed_during_the_settlement_leaves_nothing_behind() -> None:
    image = folded([(0, half_record("a")), (1, decide_record("a", COMMIT, 1))])
    image.replay(2, *AskedRecord("a", 1, 5_000, "me").encode())
    image.replay(3, *EndRecord("a", GROUP, COMMIT, DecidedBy.PRODUCER, 6_000).encode())
    assert list(image.strays) == [HalfTombstone(HalfRecordType.ASKED, "a")]
    image.replay(4, *HalfTombstone(HalfRecordType.ASKED, "a").encode())
    assert not image.strays


def test_payloads_beyond_the_budget_stay_in_the_log() -> None:
    log: Any = [(n, half_record(f"id{n}", size=100)) for n in range(10)]
    image = folded(log, payload_budget=350)
    assert [half.batches is not None for half in image] == [True] * 3 + [False] * 7
    assert all(half.payload_bytes == 100 for half in image)
    world = World()
    world.image = image
    image.replay(10, *EndRecord("id0", GROUP, COMMIT, DecidedBy.ADMIN, 1).encode())
    image.replay(11, *half_record("new", size=100).encode())
    new = image.get("new")
    assert new is not None
    assert new.batches is not None


def test_records_that_cannot_be_decoded_are_counted_and_left_out() -> None:
    image = HalfImage()
    key, value = half_record("a").encode()
    bad_outcome = bytearray(decide_record("a", COMMIT, 1).encode()[1])
    bad_outcome[2 + len(GROUP) + 1] = 9
    for row in [(None, value), (b"\0\x63", value), (key[:-1], value), (key, value[:-1]), (key, b"\0")]:
        assert image.replay(0, *row) is None
    image.replay(0, decide_record("a", COMMIT, 1).encode()[0], bytes(bad_outcome))
    assert (image.unreadable, len(image)) == (6, 0)


def test_outcomes_expire_by_age_and_by_number(monkeypatch: Any) -> None:
    ends = [EndRecord(f"id{n}", GROUP, COMMIT, DecidedBy.ADMIN, n * 1_000) for n in range(5)]
    image = folded(list(enumerate(ends)))
    assert image.expired(2_000, 100) == ["id0", "id1"]
    assert image.expired(2_000, 1) == ["id0"]
    monkeypatch.setattr(half_image, "MOST_ENDED", 2)
    assert image.expired(0, 100) == ["id0", "id1", "id2"]


# The model


_OUTCOMES = st.sampled_from([COMMIT, ROLLBACK, PARK, RESUME])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("half"), st.sampled_from(IDS)),
        st.tuples(st.just("decide"), st.sampled_from(IDS), _OUTCOMES, st.sampled_from([GROUP, GROUP, "x"])),
        st.tuples(st.just("asked"), st.sampled_from(IDS), st.integers(1, 3)),
        st.tuples(st.just("settle"), st.booleans()),
        st.tuples(st.just("expire")),
        st.tuples(st.just("restart")),
    ),
    max_size=30,
)


def _run(steps: list[tuple[Any, ...]]) -> tuple[World, list[int]]:
    """Return the world after some steps, and the ends of its appends and transactions."""
    world, ends = World(), [0]
    for step in steps:
        match step:
            case ("half", name):
                world.append(half_record(name, next(world.nonces)))
            case ("decide", name, outcome, group):
                world.append(decide_record(name, outcome, next(world.nonces), group))
            case ("asked", name, asks):
                world.append(AskedRecord(name, asks, 5_000, "me"))
            case ("settle", crashes):
                world.settle(crashes=crashes)
            case ("expire",):
                world.expire()
            case ("restart",):
                world.image = folded(world.log, 64)
        ends.append(len(world.log))
    return world, ends


@given(STEPS)
def test_the_image_agrees_with_the_definition(steps: list[tuple[Any, ...]]) -> None:
    world, _ = _run(steps)
    wanted = {name: found for name in IDS if (found := standing(world.log, name)) is not None}
    assert standings(world.image) == wanted


@given(STEPS)
def test_a_log_gives_the_same_image_twice(steps: list[tuple[Any, ...]]) -> None:
    world, _ = _run(steps)
    again = folded(world.log)
    assert standings(again) == standings(world.image)
    assert again.strays == world.image.strays
    assert list(again.decided) == list(world.image.decided)


@given(STEPS, st.data())
def test_a_compacted_log_gives_the_same_image(steps: list[tuple[Any, ...]], data: st.DataObject) -> None:
    world, ends = _run(steps)
    stop = data.draw(st.sampled_from(ends))
    first = compacted(world.log, stop, drops_tombstones=data.draw(st.booleans()))
    second = compacted(
        first, data.draw(st.integers(0, len(first))), drops_tombstones=data.draw(st.booleans())
    )
    for log in (first, second):
        image = folded(log)
        assert standings(image) == standings(world.image)
        assert image.strays == world.image.strays
        assert list(image.decided) == list(world.image.decided)


@given(STEPS)
def test_a_payload_is_visible_once_and_only_after_a_commit(steps: list[tuple[Any, ...]]) -> None:
    world, _ = _run(steps)
    world.settle(crashes=False)
    assert len(set(world.visible)) == len(world.visible)
    committed = [
        record.transaction_id
        for _, record in world.log
        if isinstance(record, EndRecord) and record.outcome is COMMIT
    ]
    assert sorted(payload.decode().partition("/")[0] for payload in world.visible) == sorted(committed)
    assert {half.transaction_id for half in world.image if half.state is HalfState.PARKED} == set(
        world.parked
    )


def test_the_first_decision_wins_although_the_log_is_compacted_while_the_owner_is_down() -> None:
    log: Any = [
        (0, half_record("a", 1)),
        (1, decide_record("a", COMMIT, 2)),
        (2, decide_record("a", ROLLBACK, 3)),
    ]
    image = folded(compacted(log, len(log), drops_tombstones=True))
    half = image.get("a")
    assert half is not None
    assert half.outcome is COMMIT
