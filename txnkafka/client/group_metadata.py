"""``ConsumerGroupMetadata``: the membership of a consumer, for ``send_offsets_to_transaction`` (KIP-447)."""

from __future__ import annotations

from typing import NamedTuple


class ConsumerGroupMetadata(NamedTuple):
    """A member of a group as ``consumer.group_metadata()`` returns it.

    The broker refuses offsets of a member that the group has replaced. ``generation_id`` is the generation of
    the classic protocol, or the member epoch (KIP-848); -1 and "" of a consumer without membership are not
    checked."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
