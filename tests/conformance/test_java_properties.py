"""Files in Java's properties format are read as ``java.util.Properties`` reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random
from typing import Final

from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.java_properties import parse_properties

PROGRAM: Final = Path(__file__).parent / "java" / "LoadProperties.java"
WRITTEN: Final = (
    b"",
    b"a=b",
    b"a = b\r\nc : d\re\tf\n",
    b"# a comment \\\na=1\n! another\n",
    b"a=1\\\n   2\\\n\t3\nb=2",
    b"a=1\\\n\nb=2",
    b"\\\n\na=1",
    b"\\\n#a=1\n",
    b"\\\n  \\\n a=1\n",
    b"a\\ b\\=c\\:d=e=f\n",
    b"a=1\na=2\n",
    b"a=\\u0041\\u00e9\\ud83d\\ude00\\t\\n\\q",
    b"a=\\u00",
    b"a=\\uXXXX\nb=1",
    b"a=b\\",
    b"a==b\nc =: d\n",
    b"=a\n:b\n",
    b"log.dirs=C:\\\\kafka\n",
    b"\xe9=\xff\n",
)
PIECES: Final = (
    *(b" ", b"\t", b"\f", b"\r", b"\n", b"\r\n", b"\\", b"=", b":", b"#", b"!", b"a", b"b", b"u", b"0"),
    *(b"\\u0041", b"\\u004", b"\\\n", b"\\\\", b"\xe9", b"\0", b"\\\r\n  ", b"\x0b", b"\xa0"),
)


def test_the_same_entries_as_java() -> None:
    random = Random(1)
    cases = [*WRITTEN, *(b"".join(random.choices(PIECES, k=random.randrange(12))) for _ in range(20_000))]
    done = subprocess.run(
        ["java", "-Xmx256m", str(PROGRAM)], input="\n".join(each.hex() for each in cases) + "\n",
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    answers = done.stdout.splitlines()
    assert len(answers) == len(cases)
    different = [
        (case, answer, _loaded(case))
        for case, answer in zip(cases, answers, strict=True)
        if answer != _loaded(case) and not _ends_with_a_lone_backslash(case)
    ]
    assert different == []
    assert 0 < answers.count("refused") < len(cases) / 2


def _loaded(content: bytes) -> str:
    try:
        entries = {_hex(each.key): _hex(each.value) for each in parse_properties(content)}
    except CorruptFileError:
        return "refused"
    return "{" + ", ".join(f"{key}={entries[key]}" for key in sorted(entries)) + "}"


def _ends_with_a_lone_backslash(content: bytes) -> bool:
    """Return True for a last line that is one backslash: Java reads it as an entry without name and value."""
    lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n").split(b"\n")
    return lines[-1].strip(b" \t\f") == b"\\"


def _hex(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()
