"""``ship`` when Spark refuses to run jobs; the other tests need executors and are in tests/spark."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from pyspark.errors import PySparkException

ask = import_module("txnkafka.spark.ship")._ask  # this attribute of the package is the function


class Refusing:
    """A SparkContext whose jobs fail."""

    defaultParallelism = 2  # noqa: N815

    def __init__(self, message: str) -> None:
        self._message = message

    def parallelize(self, *_: Any) -> Refusing:
        return self

    def mapPartitions(self, _: Any) -> Refusing:  # noqa: N802
        return self

    def collect(self) -> None:
        raise PySparkException(self._message)


def test_another_minor_version_of_python() -> None:
    said = (
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
        "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
    )
    with pytest.raises(RuntimeError) as caught:
        ask(Refusing(f"Traceback\n{said}\n"), None)
    assert str(caught.value) == (
        "Python in worker has different version: 3.12 than that in driver: 3.11; "
        "let PYSPARK_PYTHON name an interpreter of the same minor version on every node"
    )


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(PySparkException, match="no space left"):
        ask(Refusing("no space left"), None)
