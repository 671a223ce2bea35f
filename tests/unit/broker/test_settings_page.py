"""docs/settings.md is generated from the table of settings: ``TXNKAFKA_REWRITE=1`` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill

from tests.expected_text import same_text
from txnkafka.broker.config.broker_config import BROKER_DEFS, DYNAMIC, TOPIC_DEFS
from txnkafka.broker.config.client_metrics import SUBSCRIPTION_DEFS
from txnkafka.broker.config.config_names import TOPIC_SYNONYMS, WITHOUT_EFFECT
from txnkafka.broker.config.group_settings import GROUP_DEFS
from txnkafka.config import INT32_MAX, INT64_MAX, ConfigDef

PAGE = Path(__file__).resolve().parents[3] / "docs" / "settings.md"
HEAD = """# All settings

A test generates this page from the table of settings in the source code. The names are Apache Kafka's;
times are in milliseconds and sizes in bytes unless a name ends with another unit.
[serve.md](serve.md#settings) explains where to write them, and which one counts.

"""
OF_TOPICS = """
## Topics

You give these to CreateTopics, or change them with `kafka-configs --alter --entity-type topics`. A topic
without a value has that of the broker, which has the setting under the name in the column "broker".
`segment.bytes` must be at least 1048576, or Apache Kafka 4 does not start; tests may use
`internal.segment.bytes`.

"""
OF_BROKERS = """## Broker

You give these to `txnkafka serve` with `--config` or `--config-file`. Those that are marked as dynamic can
also be changed with `kafka-configs --alter --entity-type brokers` while the broker runs. The broker's names
of topic settings are under [Topics](#topics); of several names for one setting, the first one wins, and
only it is dynamic.

"""
OF_GROUPS = """
## Groups

You change these with `kafka-configs --alter --entity-type groups`. Only configs of consumer groups have an
effect; their bounds are settings of the broker, `group.consumer.min.` and `group.consumer.max.`.

"""
OF_CLIENTS = """
## Subscriptions to client metrics

You change these with `kafka-configs --alter --entity-type client-metrics`. They are stored, and no client
is asked for metrics.

"""
NOT_HERE = """
## Without effect on one node

`txnkafka serve` accepts these settings of Apache Kafka, and lists in one line on stderr which of them you
have set:

"""
POWERS = {INT32_MAX: "2³¹-1", INT64_MAX: "2⁶³-1", -(2**63): "-2⁶³"}


def shown(number: object) -> str:
    return POWERS.get(number, str(number)) if isinstance(number, int) else str(number)


def bounds(spec: ConfigDef) -> str:
    if spec.allowed:
        return ", ".join(f"`{word}`" for word in spec.allowed)
    return "" if spec.low is None else f"{shown(spec.low)} to {shown(spec.high)}"


def default(spec: ConfigDef) -> str:
    if not spec.default:
        return ""
    is_number = spec.kind in ("int", "long")
    return shown(int(spec.default)) if is_number else f"`{spec.default}`"


def table(specs: Iterable[ConfigDef], last: str) -> Iterator[str]:
    yield f"| name | type | default | values | {last} | meaning |\n{'|---' * 6}|\n"
    for spec in sorted(specs):
        if not spec.is_internal:
            names = ", ".join(f"`{name}`" for name in spec.broker)
            extra = "yes" * spec.is_dynamic if last == "dynamic" else names
            cells = f"`{spec.name}`", spec.kind, default(spec), bounds(spec), extra, spec.doc
            yield f"| {' | '.join(cells)} |\n"


def page() -> str:
    of_topics = {name for spec in TOPIC_DEFS.values() for name in spec.broker}
    of_brokers = [spec for name, spec in BROKER_DEFS.items() if name not in of_topics]
    parts = [HEAD, OF_BROKERS, *table(of_brokers, "dynamic")]
    parts += [OF_TOPICS, *table(TOPIC_DEFS.values(), "broker")]
    parts += [OF_GROUPS, *table(GROUP_DEFS.values(), "broker")]
    parts += [OF_CLIENTS, *table(SUBSCRIPTION_DEFS.values(), "broker")]
    names = ", ".join(f"`{name}`" for name in sorted(WITHOUT_EFFECT))
    unused = fill(names, 140, break_long_words=False, break_on_hyphens=False)
    return "".join([*parts, NOT_HERE, unused, "\n"])


def test_the_page_is_that_of_the_table() -> None:
    same_text(PAGE, page())


def test_each_row_explains_itself() -> None:
    rows = [*BROKER_DEFS.values(), *TOPIC_DEFS.values(), *GROUP_DEFS.values(), *SUBSCRIPTION_DEFS.values()]
    assert [spec.name for spec in rows if not spec.doc and spec.default is not None] == []
    assert {name for name in TOPIC_SYNONYMS if name not in DYNAMIC} == {
        "log.roll.hours", "log.roll.jitter.hours", "log.retention.minutes", "log.retention.hours",
        "log.flush.scheduler.interval.ms",
    }  # fmt: skip
