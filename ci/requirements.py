"""Prints the requirements in pyproject.toml for building and running, and the extras named as arguments, one
per line."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
extras = project["project"]["optional-dependencies"]
requirements = project["build-system"]["requires"] + project["project"]["dependencies"]
print(*dict.fromkeys(requirements + [line for extra in sys.argv[1:] for line in extras[extra]]), sep="\n")
