"""Parses times: epoch milliseconds, ISO 8601 or ``now``."""

from __future__ import annotations

import click

NOW = "now"
LEAST_MS = 10**11  # in March 1973: a smaller number is a time in seconds
FORMS = "epoch milliseconds, ISO 8601 (2026-01-31T12:00:00Z) or now"


class Timestamp(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """Epoch milliseconds, a date and time in ISO 8601 (UTC unless it names another zone), or ``now``: the
    time of this machine's clock. Numbers below 10^11 are refused, because ``date +%s`` prints seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        if text == NOW:
            from txnkafka.env import SystemClock

            return SystemClock().now_ms()
        try:
            number = int(text)
        except ValueError:
            return self._of_iso(text, param, ctx)
        if number < LEAST_MS:
            self.fail(f"{text}: this looks like seconds; a time is {FORMS}", param, ctx)
        return number

    def _of_iso(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from datetime import UTC, datetime, timedelta

        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is not a time; a time is {FORMS}", param, ctx)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
