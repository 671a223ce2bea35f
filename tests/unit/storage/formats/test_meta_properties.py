"""meta.properties in all versions, with everything that Java's properties format allows."""

from __future__ import annotations

import pytest

from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats import parse_meta_properties

KRAFT = (
    b"#\n#Sat Nov 21 10:41:21 UTC 2026\ncluster.id=bhDGh5xtTyzEvcYk2A_VxQ\n"
    b"directory.id=A586XXD2QWyHjtn-hGjYOw\nnode.id=1\nversion=1\n"
)
ZOOKEEPER = b"#\n#Sat Nov 21 10:41:21 UTC 2026\nbroker.id=7\nversion=0\ncluster.id=i4O0WDqrRj-J-dQqlcHPPw\n"


def test_kraft() -> None:
    assert parse_meta_properties(KRAFT) == (1, "bhDGh5xtTyzEvcYk2A_VxQ", 1, "A586XXD2QWyHjtn-hGjYOw")


def test_kraft_before_directory_ids() -> None:
    assert parse_meta_properties(b"version=1\nnode.id=3\ncluster.id=c").directory_id is None


def test_zookeeper() -> None:
    assert parse_meta_properties(ZOOKEEPER) == (0, "i4O0WDqrRj-J-dQqlcHPPw", 7, None)
    assert parse_meta_properties(b"broker.id=7\n") == (0, None, 7, None)


@pytest.mark.parametrize(
    "data",
    [
        b"broker.id=7\ncluster.id=a=b",
        b"  broker.id : 7\r\n! remark\r\n\tcluster.id   a=b",
        b"broker.id 7\rcluster.id=a\\=b\n\n",
        b"broker.id=7\ncluster.id=\\\n   a=\\\n  b",
        b"broker.id=7\ncluster.i\\u0064=a\\u003db",
        b"broker.id=1\ncluster.id=a=b\nbroker.id=7",
        b"broker.id=7\ncluster.id=a=b\nback\\\\=slash\\\\",
    ],
)
def test_spellings_of_the_same(data: bytes) -> None:
    assert parse_meta_properties(data) == (0, "a=b", 7, None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it has neither 'version' nor 'broker.id'"),
        (b"cluster.id=c\nnode.id=1\n", "it has neither 'version' nor 'broker.id'"),
        (b"version=0\ncluster.id=c\n", "'broker.id' is missing, which version 0 requires"),
        (b"version=2\n", "line 1: version 2"),
        (b"#\nversion=x\n", "line 2: 'version' must be a number"),
        (b"version=1\nnode.id=1\n", "'cluster.id' is missing"),
        (b"version=1\ncluster.id=c\n", "'node.id' is missing"),
        (b"version=1\ncluster.id=c\nnode.id=2147483648\n", "line 3: 'node.id' must be a number"),
        (b"version=1\ncluster.id=c\nnode.id=-2147483649\n", "line 3: 'node.id' must be a number"),
        (b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=x\n", "line 4: not an id"),
        (b"broker.id=\\u00zz\n", "line 1: cannot read"),
    ],
)
def test_malformed(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        parse_meta_properties(data)


def test_many_continued_lines_take_no_quadratic_time() -> None:
    data = b"broker.id=1\ncluster.id=" + b"a\\\n" * 200_000
    assert parse_meta_properties(data).cluster_id == "a" * 200_000


@pytest.mark.parametrize(
    "line", [b"a" + b" " * 100_000 + b"\\u", b"a" * 100_000 + b"\\u", b"\\:" * 50_000 + b"\\u"]
)
def test_a_bad_escape_at_the_end_takes_no_quadratic_time(line: bytes) -> None:
    """Testing every division into key, separator and value would not finish."""
    with pytest.raises(CorruptFileError, match="line 2: cannot read"):
        parse_meta_properties(b"version=1\n" + line)
