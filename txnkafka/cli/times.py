"""Parses and prints times: epoch milliseconds or ISO 8601 in, ISO 8601 in UTC out."""

from __future__ import annotations

import click

__all__ = ["Timestamp", "iso_time"]


class Timestamp(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """Epoch milliseconds, or a date and time in ISO 8601 (UTC unless it says otherwise)."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            return int(text)
        except ValueError:
            return self._of_iso(text, param, ctx)

    def _of_iso(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from datetime import UTC, datetime, timedelta

        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                f"{text!r} is neither epoch milliseconds nor ISO 8601 (2026-01-31T12:00:00Z)", param, ctx
            )
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def iso_time(timestamp_ms: int | None) -> str:
    """Return ISO 8601 in UTC with milliseconds; ``-`` for no time, the number for times outside of the
    calendar."""
    from datetime import datetime, timedelta

    if timestamp_ms is None or timestamp_ms == -1:
        return "-"
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment.isoformat(timespec='milliseconds')}Z"
