"""The build backend that pyproject.toml names: setuptools, after a check for Python, compiler and headers.

pip asks ``get_requires_*`` before it downloads anything, so an old Python or a missing compiler is reported
at once and in one line. Old versions of Python must understand this file and the beginning of setup.py.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig

REQUIREMENTS = ["setuptools>=77", "cython>=3.1"]


def check_python():
    """Exit with one line if this version of Python or this system is not supported."""
    if sys.version_info < (3, 11):  # noqa: UP036
        version = ".".join(map(str, sys.version_info[:3]))
        raise SystemExit(
            f"txnkafka needs Python 3.11 or newer; this is {version} ({sys.executable}). Install a newer "
            "one, and use its pip: python3.11 -m pip install ..."
        )
    if sys.platform == "win32":
        raise SystemExit("txnkafka does not support Windows: use Linux, macOS, or Linux under WSL 2.")


def check_tools():
    """Exit with one line if the compiler or Python's headers are missing."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    missing = []
    if shutil.which(compiler) is None:
        missing.append(
            f"a C compiler ({compiler}; CC names another one). Debian, Ubuntu: apt install build-essential; "
            "Fedora: dnf install gcc; macOS: xcode-select --install"
        )
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        missing.append(
            f"the headers of Python {sys.version_info[0]}.{sys.version_info[1]} (Python.h). "
            "Debian, Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel"
        )
    if missing:
        raise SystemExit("\n".join(f"txnkafka cannot be compiled without {each}" for each in missing))


def get_requires_for_build_wheel(config_settings=None):
    """Return the packages that build a wheel (PEP 517)."""
    check_python()
    check_tools()
    return REQUIREMENTS


get_requires_for_build_editable = get_requires_for_build_wheel  # PEP 660


def get_requires_for_build_sdist(config_settings=None):
    """Return the packages that build an sdist (PEP 517), which needs no compiler."""
    check_python()
    return REQUIREMENTS


def _of_setuptools(name):
    def hook(*arguments, **settings):
        check_python()  # pip does not ask for requirements with --no-build-isolation
        from setuptools import build_meta

        return getattr(build_meta, name)(*arguments, **settings)

    return hook


prepare_metadata_for_build_wheel = _of_setuptools("prepare_metadata_for_build_wheel")
prepare_metadata_for_build_editable = _of_setuptools("prepare_metadata_for_build_editable")
build_wheel = _of_setuptools("build_wheel")
build_editable = _of_setuptools("build_editable")
build_sdist = _of_setuptools("build_sdist")
