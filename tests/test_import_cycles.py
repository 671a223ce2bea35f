"""No module of the package imports itself through others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.import_cycles import cycles, graph_of, import_graph

ROOT = Path(__file__).resolve().parent.parent


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Imports for type checking and inside of functions count."""
    found = cycles(import_graph(ROOT))
    assert found == [], "\n".join(" <-> ".join(modules) for modules in found)


@pytest.mark.parametrize(
    "importing",
    [
        "from txnkafka.a.c import d\n",
        "import txnkafka.a.c\n",
        "from txnkafka.a import c\n",
        "if TYPE_CHECKING:\n    from txnkafka.a.c import D\n",
        "def f():\n    from txnkafka.a.c import d\n",
    ],
)
def test_a_planted_cycle_is_found(importing: str) -> None:
    others = {"txnkafka.a.c": "from txnkafka.d import e\n", "txnkafka.d": "import txnkafka.b\n"}
    texts = {"txnkafka.a": "", "txnkafka.b": importing, "txnkafka.e": "import txnkafka.b\n", **others}
    assert cycles(graph_of(texts)) == [["txnkafka.a.c", "txnkafka.b", "txnkafka.d"]]


def test_modules_without_a_cycle_are_not_reported() -> None:
    package = {"txnkafka.a": "from txnkafka.a.b import c\n", "txnkafka.a.b": "from txnkafka.a.d import e\n"}
    assert cycles(graph_of({**package, "txnkafka.a.d": "import json\n"})) == []
