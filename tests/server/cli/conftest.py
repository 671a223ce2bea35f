"""The log directories of the command line's unit tests."""

from tests.unit.cli.conftest import cluster, log_dir, run

__all__ = ["cluster", "log_dir", "run"]
