"""Prints the requirements in pyproject.toml for building and running, and the extras named as arguments, one
per line."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from build_backend import REQUIREMENTS

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
extras = project["project"]["optional-dependencies"]
requirements = REQUIREMENTS + project["project"]["dependencies"]
print(*dict.fromkeys(requirements + [line for extra in sys.argv[1:] for line in extras[extra]]), sep="\n")
