"""Checks that no linter has: sizes, layers of the compiled part, stubs, words. Prints every offender.

A rule is a function of a path and a text that yields (line, what is wrong), so that planted faults test it.
"""

from __future__ import annotations

import ast
import re
import statistics
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {".py", ".pyx", ".pxd", ".pyi"}
TEXTS = SOURCES | {".h", ".java", ".md", ".toml", ".sh", ".txt", ""}
FILE_LIMITS = {".py": 400, ".pyi": 400, ".pyx": 500, ".pxd": 500, ".h": 500}
FUNCTION_LIMIT, MEDIAN_LIMIT, LINE_LIMIT, POSITIONAL_LIMIT = 50, 10, 110, 5

Finding = tuple[int, str]
Rule = Callable[[PurePath, str], Iterator[Finding]]


# Sizes


def file_length(path: PurePath, text: str) -> Iterator[Finding]:
    lines, limit = text.count("\n"), FILE_LIMITS.get(path.suffix)
    if limit is not None and lines > limit:
        yield lines, f"{lines} lines, the limit is {limit}"


def line_length(path: PurePath, text: str) -> Iterator[Finding]:
    if path.suffix in SOURCES | {".h", ".java"}:
        for number, line in enumerate(text.splitlines(), start=1):
            if len(line) > LINE_LIMIT:
                yield number, f"{len(line)} columns, the limit is {LINE_LIMIT}"


def functions(path: PurePath, text: str) -> Iterator[tuple[int, str, int]]:
    """Yield line, name and length of each function; an inner one also counts for the outer one."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1
    elif path.suffix in (".pyx", ".pxd"):
        yield from cython_functions(text.splitlines())


CYTHON_FUNCTION = re.compile(
    r"( *)(?:cp?def|def)\b(?! +(?:class|enum|struct|union|packed|extern)\b)[^=]*?(\w+)\("
)


def cython_functions(lines: list[str]) -> Iterator[tuple[int, str, int]]:
    """Cython files have no ast, so a function is what is indented below its first line."""
    for number, line in enumerate(lines):
        if match := CYTHON_FUNCTION.match(line):
            indent = match[1]
            end = number
            for below in range(number + 1, len(lines)):
                if not lines[below].strip():
                    continue
                if not lines[below].startswith((indent + " ", indent + ")")):
                    break
                end = below
            yield number + 1, match[2], end - number + 1


def function_length(path: PurePath, text: str) -> Iterator[Finding]:
    for line, name, length in functions(path, text):
        if length > FUNCTION_LIMIT:
            yield line, f"{name} has {length} lines, the limit is {FUNCTION_LIMIT}"


def positional_parameters(path: PurePath, text: str) -> Iterator[Finding]:
    if path.suffix != ".py" or path.parts[0] != "txnkafka":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in node.args.posonlyargs + node.args.args]
            if len(names) - (names[:1] in (["self"], ["cls"])) > POSITIONAL_LIMIT:
                yield node.lineno, f"{node.name} takes more than {POSITIONAL_LIMIT} positional parameters"


# Layers


def layers() -> dict[str, int]:
    """Return the level of each package, from the list that import-linter uses."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (floors,) = (each["layers"] for each in contracts if each.get("containers") == ["txnkafka"])
    rooms = ((height, floor.split("|")) for height, floor in enumerate(reversed(floors)))
    return {room.strip(" ()"): height for height, names in rooms for room in names}


LAYERS = layers()
IMPORT = re.compile(r"\s*(?:from +(\.*[\w.]*) +c?import +(\w+)|c?import +([\w.]+))")


def imported_rooms(path: PurePath, line: str) -> str | None:
    """Return the package of txnkafka that a line imports from, relative imports included."""
    if not (match := IMPORT.match(line)):
        return None
    name = match[3] or match[1]
    if name.startswith("."):
        above = len(name) - len(name.lstrip("."))
        name = ".".join([*path.parts[:-above], name.lstrip(".")]).rstrip(".")
    parts = [*name.split("."), match[2] or ""]
    return parts[1] or None if parts[0] == "txnkafka" else None


def layer(path: PurePath, text: str) -> Iterator[Finding]:
    """Check imports of and by compiled modules, which import-linter does not see."""
    if path.suffix not in SOURCES or path.parts[0] != "txnkafka" or len(path.parts) == 2:
        return
    own = path.parts[1]
    for number, line in enumerate(text.splitlines(), start=1):
        room = imported_rooms(path, line)
        if room in LAYERS and room != own and LAYERS[room] >= LAYERS[own]:
            yield number, f"{own} may not import {room}, which is not below it"


def stub(path: PurePath, text: str) -> Iterator[Finding]:
    if path.suffix == ".pyx" and not (ROOT / path).with_suffix(".pyi").exists():
        yield 1, "has no .pyi beside it"


# Words


ABBREVIATIONS = re.compile(r"\b(?:pid|pids|tp|tps|mgr|coord|txnid)\b")
VAGUE_FILES = {"utils", "util", "helpers", "helper", "common", "misc", "info", "data", "tools"}
LOOSE_ENDS = {
    "an unfinished end": re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"),
    "a test that does not run": re.compile(r"pytest\.(?:mark\.)?(?:ski[p]|skipi[f]|xfai[l])\b"),
    "a swallowed error": re.compile(r"except(?: (?:Base)?Exceptio[n])?:\s*pas[s]"),
    "an ignore without its code": re.compile(r"# type: ignor[e](?!\[)|# noq[a](?!:)"),
    "a path of one machine": re.compile(r"(?<![\w./~-])/(?:roo[t]|hom[e]|wor[k]|User[s])/"),
}


def vague_name(path: PurePath, text: str) -> Iterator[Finding]:
    if path.suffix in SOURCES and path.stem in VAGUE_FILES:
        yield 1, f"'{path.stem}' says nothing; name the file after its one noun"


def abbreviation(path: PurePath, text: str) -> Iterator[Finding]:
    if path.suffix in SOURCES and path.parts[0] == "txnkafka":
        for number, line in enumerate(text.splitlines(), start=1):
            if match := ABBREVIATIONS.search(line):
                yield number, f"'{match[0]}' is an abbreviation, Kafka's noun is meant"


def loose_end(path: PurePath, text: str) -> Iterator[Finding]:
    for what, pattern in LOOSE_ENDS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, f"{what}: {match[0]!r}"


def builtin_open(path: PurePath, text: str) -> Iterator[Finding]:
    if path.suffix != ".py" or path.parts[:1] != ("txnkafka",) or path.parts[1] in ("env", "cli"):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield node.lineno, "open() outside txnkafka/env"


OWNER_OF_A_LOG = "partition_log.py"


def field_of_a_log(path: PurePath, text: str) -> Iterator[Finding]:
    """Only a log assigns its fields: ``log.x = …`` occurs nowhere else, nor a change of their contents."""
    if path.suffix != ".py" or path.parts[0] != "txnkafka" or path.name == OWNER_OF_A_LOG:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target: ast.expr = node
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute) and re.fullmatch(r"(.*\.)?_?log", ast.unparse(target.value)):
                yield node.lineno, f"{ast.unparse(target)} is assigned outside of the log"


def early_return(path: PurePath, text: str) -> Iterator[Finding]:
    """A test that returns before an assertion passes for rows that it does not check."""
    if path.suffix != ".py" or path.parts[:1] != ("tests",):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for line in first_returns(node.body):
                yield line, f"{node.name} returns here before it asserts anything: filter its parameters"


def first_returns(body: list[ast.stmt]) -> Iterator[int]:
    """Yield the lines of ``return`` statements that are first in their block."""
    if body and isinstance(body[0], ast.Return):
        yield body[0].lineno
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for block in ("body", "orelse", "finalbody"):
                yield from first_returns(getattr(statement, block, []))


# Facts of the batch header have one place in Python and one in compiled code.
FACT_HOMES = {
    "record/batch_header.py",
    "_core/batch_header.pxd",
    "_core/read_committed.pxd",
    "error_codes.py",  # has a code 61
    "wire/messages/apis.py",  # has a key 61
    "testing/simulation/log_files.py",  # shares no code with the engine
}
FACTS_AGAIN = {
    "a bit of the attributes as a number": re.compile(r"\battributes(?:\[\w+\])?\)? *& *~?\(?(?:0x)?\d"),
    "the size of a header as a number": re.compile(r"[-+*/<>=(\[:,] ?61\b"),
    "a name for a fact that has one": re.compile(
        r"^ *(?:#define +)?(?:\w+, )*_?(?:ATTRIBUTE_|CONTROL_)?(?:CODEC\w*|TRANSACTIONAL|CONTROL"
        r"|DELETE_HORIZON|ABORT|COMMIT|SKIP|WHOLE|BOUNDED|(?:BAD|UNKNOWN|NO_SUCH)_MAGIC|MAGIC_2|LOG_OVERHEAD"
        r"|MIN_FRAME)"
        r"(?:, \w+)*(?:: Final)? *=? *(?:0x)?\d",
        re.MULTILINE,
    ),
}


def header_fact(path: PurePath, text: str) -> Iterator[Finding]:
    if path.suffix not in SOURCES | {".h"} or path.parts[0] != "txnkafka":
        return
    if PurePath(*path.parts[1:]).as_posix() not in FACT_HOMES:
        for what, pattern in FACTS_AGAIN.items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.end()) + 1
                yield line, f"{what}: batch_header.py, batch_header.pxd and read_committed.pxd have it"


# Modules that the documentation imports from; all others are found through the names that they define.
PUBLIC_MODULES = {
    "log.py", "errors.py", "commands.py", "embedded.py", "version.py", "spark/functions.py",
    "record/arrow.py",
}  # fmt: skip


def listed_names(path: PurePath, text: str) -> Iterator[Finding]:
    """Packages and public modules have ``__all__``, private modules do not."""
    if path.suffix != ".py" or path.parts[0] != "txnkafka" or path.name == "__init__.py":
        return
    if PurePath(*path.parts[1:]).as_posix() not in PUBLIC_MODULES:
        for number, line in enumerate(text.splitlines(), start=1):
            if line.startswith("__all__"):
                yield number, "__all__ in a module that is not public"


RULES: list[Rule] = [
    file_length,
    line_length,
    function_length,
    positional_parameters,
    layer,
    stub,
    vague_name,
    abbreviation,
    loose_end,
    builtin_open,
    field_of_a_log,
    early_return,
    header_fact,
    listed_names,
]


def texts() -> dict[PurePath, str]:
    """Return every text file of the project, by its path from the top."""
    rooms = ("txnkafka", "tests", "bench", "ci", ".ci", "demo", "docs", "examples")
    paths = [*ROOT.glob("*"), *(path for room in rooms for path in (ROOT / room).rglob("*"))]
    return {
        PurePath(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in sorted(paths)
        if path.is_file() and path.suffix in TEXTS and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tidy(rule: Rule) -> None:
    found = ((path, *finding) for path, text in texts().items() for finding in rule(path, text))
    offenders = [f"{path}:{line}: {what}" for path, line, what in found]
    if offenders:
        pytest.fail("\n".join([f"{len(offenders)} offenders:", *offenders]), pytrace=False)


def test_functions_are_short_in_the_median() -> None:
    package = [(path, text) for path, text in texts().items() if path.parts[0] == "txnkafka"]
    lengths = [length for path, text in package for _, _, length in functions(path, text)]
    assert statistics.median(lengths) < MEDIAN_LIMIT


def test_every_directory_of_tests_is_run_by_a_step() -> None:
    scripts = "".join(text for path, text in texts().items() if path.parts[0] == "ci")
    rooms = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    assert "unit" in rooms
    assert [room for room in sorted(rooms) if f"tests/{room}" not in scripts] == []


PLANTED = [
    (file_length, "txnkafka/a.py", "x = 1\n" * 401, 401),
    (file_length, "txnkafka/_core/a.pyx", "x = 1\n" * 501, 501),
    (file_length, "txnkafka/_core/a.h", "int x;\n" * 501, 501),
    (line_length, "txnkafka/a.pxd", "\n" + "#" * 111, 2),
    (function_length, "tests/a.py", "class A:\n    def f(self):\n" + "        x = 1\n" * 50, 2),
    (function_length, "a/b.pyx", "cdef int f(\n    a,\n) nogil:\n" + "    a = 1\n\n" * 48 + "x = 1\n", 1),
    (function_length, "a/b.pyx", "cdef class A:\n    cdef T* f(self) nogil:\n" + "        pass\n" * 50, 2),
    (positional_parameters, "txnkafka/a.py", "\nclass A:\n    def f(self, a, b, c, d, e, f): ...\n", 3),
    (layer, "txnkafka/_core/a.pyx", "\nfrom txnkafka.record.batch cimport b\n", 2),
    (layer, "txnkafka/_core/a.pxd", "cimport txnkafka.storage.b\n", 1),
    (layer, "txnkafka/_core/a.pyx", "from ..wire import schema\n", 1),
    (layer, "txnkafka/_core/a.pyx", "from .. import wire\n", 1),
    (layer, "txnkafka/_core/a.pyx", "def f():\n    from txnkafka.env import LocalFileSystem\n", 2),
    (layer, "txnkafka/record/a.py", "from txnkafka import wire\n", 1),
    (stub, "txnkafka/_core/no_such_module.pyx", "", 1),
    (vague_name, "txnkafka/record/common.py", "", 1),
    (abbreviation, "txnkafka/a.py", "\n\ndef f(pid):\n", 3),
    (loose_end, "docs/a.md", "\nTO" + "DO: say more\n", 2),
    (loose_end, "tests/a.py", "@pytest.mark." + "skip\n", 1),
    (loose_end, "tests/a.py", "x = 1\ntry:\n    f()\nexcept Exception:\n    " + "pass\n", 4),
    (loose_end, "ci/a", "cd /" + "home/somebody\n", 1),
    (loose_end, "txnkafka/a.py", "x = f()  # type: " + "ignore\n", 1),
    (builtin_open, "txnkafka/storage/a.py", "with open('x') as f: ...\n", 1),
    (field_of_a_log, "txnkafka/storage/a.py", "\ndef f(log):\n    log.high_watermark = 1\n", 3),
    (field_of_a_log, "txnkafka/storage/a.py", "def f(self):\n    self._log.segments[1:] = []\n", 2),
    (field_of_a_log, "txnkafka/storage/a.py", "def f(log):\n    a, log.b = 1, 2\n", 2),
    (field_of_a_log, "txnkafka/storage/a.py", "def f(log):\n    log.recovery_point -= 1\n", 2),
    (field_of_a_log, "txnkafka/storage/a.py", "def f(log):\n    del log.segments[0]\n", 2),
    (early_return, "tests/a.py", "def test_a(b):\n    if b:\n        return\n    assert b\n", 3),
    (header_fact, "txnkafka/a.py", "\nx = batch.attributes & 0x20\n", 2),
    (header_fact, "txnkafka/a.py", "x = np.asarray(index.attributes) & 7\n", 1),
    (header_fact, "txnkafka/a.py", "x = 1\nTRANSACTIONAL, CONTROL = 0x10, 0x20\n", 2),
    (header_fact, "txnkafka/a.py", "_ABORT = 0\n", 1),
    (header_fact, "txnkafka/a.py", "NO_SUCH_MAGIC: Final = 127\n", 1),
    (header_fact, "txnkafka/a.py", "payload = batch[61:]\n", 1),
    (header_fact, "txnkafka/_core/a.pyx", "cdef enum:\n    SKIP = 0\n    FIRST = 1\n", 2),
    (header_fact, "txnkafka/_core/a.h", "#define ATTRIBUTE_CONTROL       0x20\n", 1),
    (listed_names, "txnkafka/storage/a.py", "x = 1\n__all__ = ['x']\n", 2),
]


@pytest.mark.parametrize(("rule", "path", "text", "line"), PLANTED)
def test_a_planted_fault_is_found(rule: Rule, path: str, text: str, line: int) -> None:
    assert [found for found, _ in rule(PurePath(path), text)] == [line]


ALLOWED = [
    (function_length, "a/b.pyx", "cdef int f():\n" + "    a += 1\n" * 49 + "cdef int g():\n    pass\n"),
    (function_length, "a/b.pyx", "cdef extern from 'a.h':\n" + "    int f(int a)\n" * 60),
    (positional_parameters, "txnkafka/a.py", "class A:\n    def f(self, a, b, c, d, e, *, f): ...\n"),
    (layer, "txnkafka/_core/a.pyx", "from txnkafka._core.b cimport c\nfrom libc.stdint cimport int8_t\n"),
    (layer, "txnkafka/record/a.py", "from txnkafka._core.scan import scan\nimport txnkafka.errors\n"),
    (builtin_open, "txnkafka/env/filesystem.py", "open('x')\n"),
    (field_of_a_log, "txnkafka/storage/log/partition_log.py", "def f(log):\n    log.a = 1\n"),
    (field_of_a_log, "txnkafka/a.py", "def f(self, log):\n    self.log = log\n    a = log.b\n    log.c()\n"),
    (early_return, "tests/a.py", "def test_a(b):\n    if b:\n        assert b\n        return\n    f(b)\n"),
    (early_return, "tests/a.py", "def test_a():\n    def f():\n        return 1\n    assert f()\n"),
    (header_fact, "txnkafka/a.py", "x = index.attributes & CONTROL != 0\n# 61 bytes\ny = kind == ABORT\n"),
    (header_fact, "txnkafka/record/batch_header.py", "MAGIC_2: Final = 2\n"),
    (header_fact, "tests/models/a.py", "HEADER_SIZE = 61\n"),
    (listed_names, "txnkafka/storage/__init__.py", "__all__ = ['x']\n"),
    (listed_names, "txnkafka/log.py", "__all__ = ['x']\n"),
    (loose_end, "docs/a.md", "https://example.org/home/page and ./work/x and except ValueError:\n    pass\n"),
]


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_what_is_allowed_is_not_reported(rule: Rule, path: str, text: str) -> None:
    assert list(rule(PurePath(path), text)) == []
