"""A request for records of a partition.

A request selects records; their delivery (columns, unit size, decoder) is not part of the request. It is
checked once, at its creation, and does not depend on a log: ``PartitionView`` applies it to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Unpack, get_args

from txnkafka.model import IsolationLevel, IsolationLevelName, check_integers, check_milliseconds
from txnkafka.record.predicate import ANY, And, Comparison, Or, Predicate
from txnkafka.record.predicate_text import parse_predicate
from txnkafka.shown import nearest

if TYPE_CHECKING:
    from txnkafka.errors import CorruptRecordError
    from txnkafka.record.chunk import OnCorrupt

End = Literal["log-end", "high-watermark"]
DamageAction = Literal["stop", "skip"]
Method = TypeVar("Method", bound=Callable[..., object])
_DEFAULT_TEXTS = {"isolation_level": "read_committed", "where": "true"}  # defaults that are objects


class Selection(TypedDict, total=False):
    """The keywords that select records, as ``help()`` shows them; see ReadRequest."""

    isolation_level: Literal["read_committed", "read_uncommitted"] | IsolationLevel
    start_offset: int | None
    end_offset: int | None
    start_time: int | None
    end_time: int | None
    up_to: Literal["log-end", "high-watermark"]
    on_corrupt: Literal["stop", "skip"] | OnCorrupt
    where: str | Predicate


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRequest:
    """Selects the records of [start_offset, end_offset) that a reader of ``isolation_level`` gets. None means
    the log start, or the end for that reader. A negative start counts back from the end: -10 selects the last
    ten offsets, including markers and hidden records.

    ``where`` is a predicate, or its text as in ``"offset >= 10 and key = 'a'"`` (``predicate_text``); only
    records that fulfil it are selected. ``start_time`` and ``end_time`` (milliseconds) mean the offset of the
    first record at or after the time. ``up_to="high-watermark"`` also stops at the high watermark in the
    broker's checkpoint. At a damaged batch, reading stops with CorruptRecordError; with
    ``on_corrupt="skip"``, or a function that takes the error, the batch is left out.

    Raises ValueError for an unknown isolation level or word, a predicate that cannot be parsed, a negative
    end, a time that looks like seconds and a bound given twice, TypeError for an offset or time that is not
    an int."""

    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED
    start_offset: int | None = None
    end_offset: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    up_to: End = "log-end"
    on_corrupt: DamageAction | OnCorrupt = "stop"
    where: Predicate = ANY

    def __post_init__(self) -> None:
        check_integers(
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            start_time=self.start_time,
            end_time=self.end_time,
        )
        check_milliseconds(start_time=self.start_time, end_time=self.end_time)
        check_end_offset(self.end_offset)
        object.__setattr__(self, "isolation_level", IsolationLevel.of(self.isolation_level))
        object.__setattr__(self, "where", _predicate(self.where))
        if self.up_to not in get_args(End):
            raise ValueError(f"up_to must be log-end or high-watermark, not {self.up_to!r}")
        if not callable(self.on_corrupt) and self.on_corrupt not in get_args(DamageAction):
            raise ValueError(f"on_corrupt must be stop or skip, not {self.on_corrupt!r}")
        if None not in (self.start_offset, self.start_time):
            raise ValueError("start_offset and start_time exclude each other")
        if None not in (self.end_offset, self.end_time):
            raise ValueError("end_offset and end_time exclude each other")

    @classmethod
    def of(
        cls,
        isolation_level: IsolationLevelName | IsolationLevel,
        start_offset: int | None = None,
        end_offset: int | None = None,
        up_to: End = "log-end",
        *,
        on_corrupt: DamageAction | OnCorrupt = "stop",
    ) -> ReadRequest:
        """Build a request from the arguments of ``PartitionView``'s methods."""
        return cls(
            isolation_level=IsolationLevel.of(isolation_level),
            start_offset=start_offset,
            end_offset=end_offset,
            up_to=up_to,
            on_corrupt=on_corrupt,
        )

    @property
    def read_committed(self) -> bool:
        """True if aborted and undecided records are left out."""
        return self.isolation_level is IsolationLevel.READ_COMMITTED

    @property
    def damage_handler(self) -> OnCorrupt | None:
        """The function that receives the error of each batch left out; None if reading stops at damage."""
        if callable(self.on_corrupt):
            return self.on_corrupt
        return _ignore if self.on_corrupt == "skip" else None


def request_of(**selection: Unpack[Selection]) -> ReadRequest:
    """Build a request from keywords. Raises TypeError for an unknown keyword, and the errors of
    ReadRequest."""
    names = [field.name for field in fields(ReadRequest)]
    for name in selection:
        if name not in names:
            raise TypeError(f"unknown keyword {name}: {nearest(name, names)}")
    return ReadRequest(**selection)  # type: ignore[arg-type]  # __post_init__ converts words


def takes_selection(method: Method) -> Method:
    """Give a method with ``**selection: Unpack[Selection]`` a signature with every keyword, for ``help()``
    and notebooks."""
    shown = signature(method)
    own = [each for each in shown.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    defaults = {each.name: each.default for each in fields(ReadRequest)} | _DEFAULT_TEXTS
    selecting = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hint.__forward_arg__)
        for name, hint in Selection.__annotations__.items()
    ]
    method.__signature__ = shown.replace(parameters=own + selecting)  # type: ignore[attr-defined]
    return method


def check_end_offset(end_offset: int | None) -> None:
    """Raise ValueError for a negative end: it would silently select nothing."""
    if end_offset is not None and end_offset < 0:
        raise ValueError(f"end_offset must be at least 0, not {end_offset}: only a start counts from the end")


def _predicate(where: object) -> Predicate:
    if isinstance(where, str):
        return parse_predicate(where)
    if isinstance(where, Comparison | And | Or):
        return where
    raise TypeError(f'where must be the text of a predicate such as "offset >= 10", not {where!r}')


def _ignore(error: CorruptRecordError) -> None:
    """Handle on_corrupt="skip": drop the error."""
