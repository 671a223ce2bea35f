"""The rules for where a log ends: a broker's, and an owner's."""

from __future__ import annotations

import pytest

from tests.unit.logdir.logs import batch
from txnkafka._core.scan import scan
from txnkafka.storage.formats.log_end import (
    BROKER,
    OWNER,
    EndRule,
    decide_end,
    fault_of,
    first_bad,
    first_unsettled,
)

SIZE = len(batch(0))


def log(*, magic_of: int | None = None, crc_of: int | None = None) -> bytes:
    """Encode four batches of two records; one can get another magic, and one a wrong CRC."""
    data = bytearray(b"".join(batch(2 * number) for number in range(4)))
    if magic_of is not None:
        data[magic_of * SIZE + 16] = 7
    if crc_of is not None:
        data[crc_of * SIZE + 17] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("clean", "recovery_point", "number"),
    [(True, 0, 2), (False, None, 2), (False, 0, 0), (False, 9, 0), (False, 10, 1), (False, 99, 2)],
)
def test_a_log_may_end_from_the_segment_of_the_recovery_point_on(
    clean: bool, recovery_point: int | None, number: int
) -> None:
    found = first_unsettled([4, 10, 20], clean_shutdown=clean, recovery_point=recovery_point)
    assert found == number


@pytest.mark.parametrize(
    ("magic_of", "crc_of", "rule", "bad"),
    [
        (None, None, OWNER, 4),
        (None, 2, OWNER, 2),
        (None, 2, BROKER, 2),
        (1, 2, OWNER, 1),
        (1, 2, BROKER, 2),  # a broker reads any magic above 2 as 2
        (1, None, BROKER, 4),
    ],
)
def test_the_first_bad_batch(magic_of: int | None, crc_of: int | None, rule: EndRule, bad: int) -> None:
    data = memoryview(log(magic_of=magic_of, crc_of=crc_of))
    index = scan(data)
    assert first_bad(index, data, 0, rule) == bad
    if bad < 4:
        assert ("magic" in fault_of(index, bad)) == (bad == magic_of)


@pytest.mark.parametrize(
    ("stop", "is_last", "broker", "owner"),
    [
        ("end", True, False, False),
        ("end", False, False, False),
        ("crc", False, True, True),
        ("torn", True, True, True),
        ("torn", False, False, True),
        ("zeros", False, False, True),
    ],
)
def test_what_ends_a_log(stop: str, is_last: bool, broker: bool, owner: bool) -> None:
    assert BROKER.ends_log(stop, is_last=is_last) == broker
    assert OWNER.ends_log(stop, is_last=is_last) == owner


@pytest.mark.parametrize(
    ("offsets", "limit", "broker", "owner"),
    [
        ([0, 2, 4], 6, (3, 6, 3), (3, 6, 3)),
        ([0, 2, 2], 6, (3, 4, 3), (3, 4, 3)),  # a repeated batch is no damage
        ([0, 66, 4, 6], 8, (4, 8, 4), (1, 2, 1)),
        ([0, 2, 4], 5, (3, 4, 2), (2, 4, 2)),
        ([0, 2, 1], 6, (3, 4, 2), (2, 4, 2)),
        ([], 5, (0, 0, 0), (0, 0, 0)),
    ],
)
def test_the_end_by_offsets(
    offsets: list[int], limit: int, broker: tuple[int, int, int], owner: tuple[int, int, int]
) -> None:
    index = scan(b"".join(batch(offset) for offset in offsets))
    assert decide_end(index, 0, limit, rule=BROKER) == broker
    assert decide_end(index, 0, limit, rule=OWNER) == owner
