"""The version of this package, as in pyproject.toml: reading it from the installed metadata takes 20 ms."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0.dev0"
