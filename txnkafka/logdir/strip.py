"""Draws a range of a log as a strip of cells, from batch headers only: a cell covers a range of offsets, and
counts them by state.

The last stable offset begins a cell, so that every cell is entirely before or after it. A cell shows the
worst state in it, by the order of ``State``. Memory depends on the cells, not on the batches: an undecided
transaction takes one count per cell that it has batches in.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.logdir.header_pass import header_pass, segment_containing
from txnkafka.record.batch_header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_ABORT,
    CONTROL_COMMIT,
)

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex
    from txnkafka.logdir.header_pass import SegmentHeaders
    from txnkafka.logdir.log_view import LogView


class State(enum.StrEnum):
    """The state of an offset, worst first."""

    HANGING = "hanging"
    OPEN = "open"
    MISSING = "missing"
    UNDECIDED = "undecided"
    HELD_BACK = "held_back"
    ABORTED = "aborted"
    COMMITTED = "committed"
    MARKER = "marker"
    COMPACTED = "compacted"


class Cell(NamedTuple):
    """The offsets from ``first_offset`` to ``last_offset``, and their number in each state."""

    first_offset: int
    last_offset: int
    offsets: dict[State, int]

    @property
    def state(self) -> State:
        """The worst state."""
        return min(self.offsets, key=_RANK.__getitem__)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "state": self.state.value,
            "offsets": {state.value: count for state, count in self.offsets.items()},
        }


_RANK = {state: rank for rank, state in enumerate(State)}


class Strip(NamedTuple):
    """The cells of [start_offset, end_offset); the first ``stable`` cells are before the last stable
    offset."""

    start_offset: int
    end_offset: int
    last_stable_offset: int
    stable: int
    cells: list[Cell]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "start_offset": self.start_offset,
            "end_offset": self.end_offset,
            "cells": [cell.as_dict() for cell in self.cells],
        }


def strip_of(
    view: LogView, cells: int, *, hanging: Collection[int] = (), start_offset: int | None = None
) -> Strip:
    """Draw the log of a partition, or its end from ``start_offset`` on, in at most ``cells`` cells.
    ``hanging`` are the ids of producers with hanging transactions."""
    end, stable = view.log_end_offset, view.last_stable_offset
    start = max(view.log_start_offset, 0 if start_offset is None else start_offset)
    scale = _Scale(start, min(max(stable, start), end), end, cells)
    segments = view.segments if start < end else []
    first = segment_containing(segments, start)
    drawing = _Drawing(scale, segments[first].base_offset if segments else start)
    for headers in header_pass(segments, first, drawing):
        drawing.part_ends(headers)
    drawing.finish(frozenset(hanging))
    return Strip(start, end, stable, scale.stable_cells, list(drawing.cells()))


class _Scale:
    """Divides [start, end) into cells with about the same number of offsets; ``stable`` begins a cell."""

    def __init__(self, start: int, stable: int, end: int, cells: int) -> None:
        self.start, self.end = start, end
        self._stable = stable
        before, behind = stable - start, end - stable
        count = min(max(cells, 2), before + behind)
        if before and behind:
            self.stable_cells = min(max(round(count * before / (before + behind)), 1), count - 1)
        else:
            self.stable_cells = count if before else 0
        self.stable_cells = max(min(self.stable_cells, before), count - behind)
        self.count = count

    def bounds(self) -> list[int]:
        """Return the first offset of each cell, and the end."""
        before, behind = self.stable_cells, self.count - self.stable_cells
        return [
            *(_share(self.start, self._stable, i, before) for i in range(before)),
            *(_share(self._stable, self.end, i, behind) for i in range(behind)),
            self.end,
        ]

    def cell(self, offset: int) -> int:
        """Return the number of the cell of an offset."""
        if offset < self._stable:
            return (offset - self.start) * self.stable_cells // (self._stable - self.start)
        behind = self.count - self.stable_cells
        return self.stable_cells + (offset - self._stable) * behind // (self.end - self._stable)


def _share(first: int, end: int, i: int, count: int) -> int:
    return first + -(-(end - first) * i // count)


class _Open:
    """The batches so far of an open transaction: number of offsets by cell."""

    __slots__ = ("holes", "offsets")

    def __init__(self, holes: int) -> None:
        self.holes = holes  # before the transaction
        self.offsets: defaultdict[int, int] = defaultdict(int)


class _Drawing:
    """Counts offsets by cell and state while the headers are fed, from ``next_offset`` on, which may be below
    the first cell. Transactions end as in TransactionScan."""

    def __init__(self, scale: _Scale, next_offset: int) -> None:
        self.next_offset = next_offset
        self._scale = scale
        self._bounds = scale.bounds()
        self._counts = {state: [0] * scale.count for state in State}
        self._open: dict[int, _Open] = {}
        self._holes = 0  # number of places with lost markers
        self._gap = State.COMPACTED  # state of offsets that the next batch skips
        self._cell = 0  # cell of the last batch, usually also of the next one

    def hole(self) -> None:
        """Record that segments or markers are missing here."""
        self._gap = State.MISSING
        self._holes += 1

    def part_ends(self, headers: SegmentHeaders) -> None:
        """Count the offsets missing at the end of a segment, or of a part of a segment."""
        if headers.index.stop != "end":
            self._skip(min(headers.limit, self._scale.end), State.MISSING)
        if headers.misplaced and headers.misplaced[-1] == len(headers.index) - 1:
            self._gap = State.MISSING

    def feed(self, index: BatchIndex, start: int = 0, stop: int | None = None) -> None:
        """Count the batches [start, stop); the offsets of a misplaced batch, which was left out, are
        missing."""
        if start:
            self._gap = State.MISSING
        part = slice(start, stop)
        for base, last, count, attributes, producer_id, control, crc_wrong in zip(
            index.base_offset[part], index.last_offset[part], index.record_count[part],
            index.attributes[part], index.producer_id[part], index.control_type[part],
            index.crc_wrong[part], strict=True,
        ):  # fmt: skip
            if last < self.next_offset:
                continue  # these offsets were already counted
            if base > self.next_offset and count >= 0:  # else a wrapper, which has only its last offset
                self._skip(base, self._gap)
            self._gap = State.COMPACTED
            counts: list[int] | defaultdict[int, int] = self._counts[State.MARKER]
            if crc_wrong:
                self._holes += 1
            elif not attributes & ATTRIBUTE_CONTROL:
                counts = self._data(attributes, count, producer_id)
            self._add(counts, self.next_offset, last)
            self.next_offset = last + 1
            if attributes & ATTRIBUTE_CONTROL:
                self._end(producer_id, control)

    def _data(self, attributes: int, count: int, producer_id: int) -> list[int] | defaultdict[int, int]:
        """Return the counters for a data batch: a state's, or its transaction's."""
        if count == 0:
            return self._counts[State.COMPACTED]
        if not attributes & ATTRIBUTE_TRANSACTIONAL or producer_id < 0:
            return self._counts[State.COMMITTED]
        transaction = self._open.get(producer_id)
        if transaction is not None and transaction.holes < self._holes:
            self._decide(self._open.pop(producer_id), State.UNDECIDED)
            transaction = None
        if transaction is None:
            transaction = self._open[producer_id] = _Open(self._holes)
        return transaction.offsets

    def _end(self, producer_id: int, control: int) -> None:
        """End the transaction of a producer at a control batch, if it is an end marker."""
        if control not in (CONTROL_ABORT, CONTROL_COMMIT):
            return
        transaction = self._open.pop(producer_id, None)
        if transaction is not None:
            outcome = State.ABORTED if control == CONTROL_ABORT else State.COMMITTED
            lost = transaction.holes < self._holes
            self._decide(transaction, State.UNDECIDED if lost else outcome)

    def _decide(self, transaction: _Open, outcome: State) -> None:
        counts = self._counts[outcome]
        for cell, count in transaction.offsets.items():
            counts[cell] += count

    def _skip(self, offset: int, state: State) -> None:
        """Count the missing offsets below ``offset``."""
        self._add(self._counts[state], self.next_offset, offset - 1)
        self.next_offset = max(self.next_offset, offset)

    def _add(self, counts: list[int] | defaultdict[int, int], first: int, last: int) -> None:
        bounds, cell = self._bounds, self._cell
        if last >= self._scale.end:
            last = self._scale.end - 1
        if first < self._scale.start:
            first = self._scale.start
        if first > last:
            return
        if not bounds[cell] <= first < bounds[cell + 1]:
            cell = self._scale.cell(first)
        while last >= bounds[cell + 1]:
            counts[cell] += bounds[cell + 1] - first
            cell, first = cell + 1, bounds[cell + 1]
        counts[cell] += last - first + 1
        self._cell = cell

    def finish(self, hanging: frozenset[int]) -> None:
        """Count the open transactions, and the offsets after the last stable offset."""
        self._skip(self._scale.end, State.COMPACTED)
        for producer_id, transaction in self._open.items():
            self._decide(transaction, State.HANGING if producer_id in hanging else State.OPEN)
        held_back = self._counts[State.HELD_BACK]
        for state in (State.ABORTED, State.COMMITTED):
            counts = self._counts[state]
            for cell in range(self._scale.stable_cells, self._scale.count):
                held_back[cell] += counts[cell]
                counts[cell] = 0

    def cells(self) -> Iterator[Cell]:
        """Yield the cells."""
        for i in range(self._scale.count):
            offsets = {state: counts[i] for state, counts in self._counts.items() if counts[i]}
            yield Cell(self._bounds[i], self._bounds[i + 1] - 1, offsets)
