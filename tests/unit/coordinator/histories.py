"""Random histories of ``__consumer_offsets``, as events of tests/models/committed_offsets.py."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.models.committed_offsets import Commit, End, Tombstone
from tests.models.coordinator_log import offset_commit_key, offset_commit_value

KEYS = [("g", "t", 0), ("g", "t", 1), ("h", "t", 0)]

_keys, _producers = st.integers(0, len(KEYS) - 1), st.integers(0, 2)
EVENTS = st.one_of(
    st.builds(Commit, _keys, st.integers(0, 99), st.just(-1)),
    st.builds(Commit, _keys, st.integers(0, 99), _producers),
    st.builds(Tombstone, _keys),
    st.builds(End, _producers, st.booleans()),
)


def commit(key: int, offset: int) -> tuple[bytes, bytes]:
    """Key and value of the record that commits ``offset`` for a key of KEYS."""
    return offset_commit_key(*KEYS[key]), offset_commit_value(offset)
