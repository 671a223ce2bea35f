"""Which lines of the package the fuzz targets reach, on a build that counts them:  ci/fuzz-coverage

gcc counts lines of the compiled modules (.pyx, .pxd and .h), coverage.py those of the Python modules that
parse foreign bytes. What no target reaches is what fuzzing says nothing of.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from coverage import Coverage

from tests.fuzz.campaign import TARGETS, corpus_of
from tests.fuzz.engine import Limits, fuzz

__all__ = ["Lines", "compiled_lines", "main", "table"]

BUILD = Path(__file__).resolve().parents[2] / "build" / "coverage"
ROOMS = ("record", "wire", "storage", "logdir")  # Python that sees foreign bytes
SEED = 1
Lines = dict[str, dict[int, bool]]  # file -> line -> whether it was reached


def compiled_lines(build: Path) -> Lines:
    """Lines of every compiled module below ``build``, as gcov counts them."""
    found: Lines = defaultdict(dict)
    counted = sorted(build.rglob("*.gcda"))
    if not counted:
        raise RuntimeError(f"no counts below {build}: ci/fuzz-coverage makes the build that counts")
    command = ["gcov", "--json-format", "--stdout", *map(str, counted)]
    done = subprocess.run(command, cwd=build.parents[1], capture_output=True, check=True)
    for line in done.stdout.splitlines():
        for file in json.loads(line)["files"]:
            if "txnkafka/_core" in file["file"] and not file["file"].endswith(".c"):
                lines = found[Path(file["file"]).name]
                for each in file["lines"]:
                    number = each["line_number"]
                    lines[number] = lines.get(number, False) or each["count"] > 0
    return dict(found)


def python_lines(coverage: Coverage) -> Lines:
    """Lines of the Python modules that coverage.py has watched."""
    found: Lines = {}
    for path in coverage.get_data().measured_files():
        _, statements, _, missing, _ = coverage.analysis2(path)
        name = "/".join(Path(path).parts[Path(path).parts.index("txnkafka") + 1 :])
        found[name] = {number: number not in missing for number in statements}
    return found


def table(lines: Lines) -> list[str]:
    """One line a file, the least reached first."""
    counts = {name: (sum(each.values()), len(each)) for name, each in lines.items() if each}
    ordered = sorted(counts.items(), key=lambda item: (item[1][0] / item[1][1], item[0]))
    return [f"{hit:6,} of {total:5,} {hit / total:5.0%}  {name}" for name, (hit, total) in ordered]


def _run_targets() -> None:
    for target in TARGETS.values():
        report = fuzz(target, corpus_of(target), SEED, Limits(target.iterations))
        if report.failure is not None:
            sys.exit(f"{target.name} fails, run ci/fuzz first:\n{report.failure.text}")


def main() -> int:
    """``run`` is the child whose lines are counted: gcc writes its counts when a process ends."""
    if sys.argv[1:] == ["run"]:
        _run_targets()
        return 0
    for path in BUILD.rglob("*.gcda"):
        path.unlink()
    data = BUILD / "python-lines"
    packages = [f"txnkafka.{room}" for room in ROOMS]
    watched = ["-m", "coverage", "run", f"--data-file={data}", f"--source={','.join(packages)}"]
    subprocess.run([sys.executable, *watched, "-m", "tests.fuzz.reached", "run"], check=True)
    coverage = Coverage(data_file=data, source=packages)
    coverage.load()
    print("lines of the compiled core that the fuzz targets reach", *table(compiled_lines(BUILD)), sep="\n")
    print("lines of the Python modules that they reach", *table(python_lines(coverage)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
