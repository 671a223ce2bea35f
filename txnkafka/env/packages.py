"""Imports optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from txnkafka.errors import MissingPackageError


def import_package(package: str, purpose: str, extra: str) -> Any:
    """Import a package of an extra. Raises MissingPackageError with the purpose and the extra to install."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"{purpose} needs {package} ({error}): pip install 'txnkafka[{extra}]'"
        ) from None
