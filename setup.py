"""Builds the compiled core: each txnkafka/_core/*.pyx is one extension; a failure fails the installation.

Switches (environment variables, off when unset or "0"), each combination in its own directory under build/:
    TXNKAFKA_DEBUG     bounds checks, no optimisation, debug symbols, line tracing for coverage and profilers
    TXNKAFKA_SANITIZE  address and undefined-behaviour sanitizers (ci/fuzz shows how to run such a build)
    TXNKAFKA_COVERAGE  counts executed lines of .pyx and .h files with gcc's gcov (see ci/fuzz-coverage)
    TXNKAFKA_ANNOTATE  an HTML page beside each generated C file shows where Python objects are touched
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
os.chdir(ROOT)
BACKEND = runpy.run_path("ci/build_backend.py")
BACKEND["check_python"]()


# an sdist and the metadata are made without a compiler
if {"build_ext", "bdist_wheel", "editable_wheel", "install", "develop"} & set(sys.argv):
    BACKEND["check_tools"]()


def switch(name: str) -> bool:
    return os.environ.get(f"TXNKAFKA_{name}", "0") not in ("", "0")


DEBUG, SANITIZE, COVERAGE, ANNOTATE = map(switch, ("DEBUG", "SANITIZE", "COVERAGE", "ANNOTATE"))
FLAVOURS = ("debug", "sanitize", "coverage", "annotate")
FLAVOUR = "-".join(name for name in FLAVOURS if switch(name.upper())) or "release"
BUILD = Path("build", FLAVOUR)

LINK = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if SANITIZE else []
LINK += ["--coverage"] if COVERAGE else []
TRACEABLE = ["-g", "-fno-omit-frame-pointer", "-O0" if DEBUG or COVERAGE else "-O1"]
COMPILE = [*LINK, *TRACEABLE] if DEBUG or SANITIZE or COVERAGE else ["-O3", "-g0"]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    # Not declared "freethreading_compatible": the core has never been run without the interpreter's lock, so
    # a free-threaded Python enables the lock when it imports the core.
    "linetrace": DEBUG,
}


def extension(source: Path) -> Extension:
    return Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[str(source.parent)],
        depends=[str(header) for header in sorted(source.parent.glob("*.h"))],
        define_macros=[("CYTHON_TRACE_NOGIL", "1")] if DEBUG else [],
        extra_compile_args=COMPILE,
        extra_link_args=LINK,
        # dlopen, before glibc 2.34
        libraries=["dl"] if sys.platform == "linux" and source.stem == "codec_functions" else [],
    )


class BuildExtensions(build_ext):
    """One compilation serves build_ext --inplace and pip install -e; the copies follow the switches."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()
        if self.inplace:
            self.build_lib = str(BUILD / "lib")

    def copy_extensions_to_source(self) -> None:
        self.force = True
        super().copy_extensions_to_source()


def long_description() -> str:
    """Return README.md with links to the repository, as an index has none of the files beside it."""
    import tomllib  # not in versions of Python that check_python refuses

    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]

    def absolute(link: re.Match[str]) -> str:
        return f"{link[1]}({repository}/{'raw' if link[1].startswith('!') else 'blob'}/main/{link[2]})"

    text = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?\[[^]]*\])\((?![a-z]+:|#)([^)\s]+)\)", absolute, text)


setup(
    long_description=long_description(),
    long_description_content_type="text/markdown",
    ext_modules=cythonize(
        [extension(source) for source in sorted(Path("txnkafka", "_core").glob("*.pyx"))],
        build_dir=str(BUILD / "cython"),
        compiler_directives=DIRECTIVES,
        annotate=ANNOTATE,
        emit_linenums=COVERAGE,
    ),
    cmdclass={"build_ext": BuildExtensions},
    options={"build": {"build_base": str(BUILD)}},
)
