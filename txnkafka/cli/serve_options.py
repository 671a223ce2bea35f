"""The types of the options of ``serve``: addresses, settings, topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from txnkafka.cli.completion import beginning_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.shell_completion import CompletionItem


def _number(text: str, most_digits: int) -> int:
    """Parse digits; return -1 for other text and for more than ``most_digits`` digits: int limits their
    number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most_digits else -1


class Address(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """HOST:PORT, with brackets around an IPv6 address."""

    name = "HOST:PORT"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Parse an address."""
        if isinstance(value, tuple):
            return value
        from txnkafka.server.listeners import parse_address

        try:
            return parse_address(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Setting(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """KEY=VALUE."""

    name = "KEY=VALUE"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split a setting."""
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return name.strip(), text.strip()

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the name of a setting."""
        return beginning_with(incomplete, [f"{name}=" for name in sorted(self.names())])

    def names(self) -> Iterable[str]:
        """Return the names of a broker's settings."""
        from txnkafka.broker.config.broker_config import BrokerConfig
        from txnkafka.broker.config.config_names import TOPIC_SYNONYMS
        from txnkafka.config import config_defs
        from txnkafka.server.listeners import LISTENER_SETTINGS

        return {*config_defs(BrokerConfig), *TOPIC_SYNONYMS, *LISTENER_SETTINGS, "node.id"}


class NewTopic(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """NAME:PARTITIONS."""

    name = "NAME:PARTITIONS"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Parse a topic name and its number of partitions."""
        if isinstance(value, tuple):
            return value
        name, colon, count = value.rpartition(":")
        if not colon or not name or _number(count, 9) < 1:
            self.fail(f"{value!r} is not NAME:PARTITIONS", param, ctx)
        return name, int(count)
