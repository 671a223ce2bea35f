"""The pictures in docs/pictures are what commands print now about ``demo/payments``; ``TXNKAFKA_REWRITE=1``
draws them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.expected_text import same_text
from tests.pages import ROOT
from tests.pictures import picture
from tests.unit.cli.terminals import as_terminal
from txnkafka.cli.main import main

PICTURES = ROOT / "docs" / "pictures"
DRAWN = {
    "show": (60, 80, 120),
    "lso": (80, 120),
    "txns": (80, 120),
    "groups": (80, 120),
    "verify": (80,),
}  # commands, and the widths at which they differ
COMMANDS = {"show": "show demo/payments --topic payments"}  # others only have the directory
PAGES = ("README.md", "docs/cli.md", "docs/lso.md")
LINK = re.compile(r"!\[[^]]+\]\(([^)]+)\)")


@pytest.mark.parametrize(
    ("command", "columns"), [(command, columns) for command, widths in DRAWN.items() for columns in widths]
)
def test_a_picture_is_what_the_command_prints(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    columns: int,
) -> None:
    # the files are as old as the copy, as in a clone
    shutil.copytree(ROOT / "demo", tmp_path / "demo", copy_function=shutil.copyfile)
    monkeypatch.chdir(tmp_path)
    as_terminal(monkeypatch, columns, colours=True)
    shown = COMMANDS.get(command, f"{command} demo/payments")
    with pytest.raises(SystemExit):
        main(shown.split())
    captured = capsys.readouterr()
    assert "txnkafka:" not in captured.err, "it would be on the terminal, too"
    text = picture(f"txnkafka {shown}", captured.out, columns)
    same_text(PICTURES / f"{command}-{columns}.svg", text)


def test_every_picture_is_on_a_page_and_every_link_leads_to_one() -> None:
    linked = {
        (ROOT / page).parent / link
        for page in PAGES
        for link in LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    }
    assert linked == set(PICTURES.glob("*"))
    assert {path.stem for path in linked} == {f"{name}-{width}" for name in DRAWN for width in DRAWN[name]}


def test_pictures_load_nothing() -> None:
    for path in PICTURES.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        ElementTree.fromstring(text)
        assert set(re.findall(r"https?:[^\"]+", text)) == {"http://www.w3.org/2000/svg"}
        assert "url(" not in text
        assert "href" not in text


def test_a_terminal_in_a_picture() -> None:
    """Lines are cut at its width, styles go on there, and what XML would read is escaped."""
    drawn = picture("a <b>", "\x1b[31mabcdef\x1b[0m  <&\n\n\x1b[1mHEAD\x1b[0m", 5)
    texts = ["".join(row.itertext()) for row in ElementTree.fromstring(drawn).findall(".//{*}text")]
    assert texts == ["$a <", "b>", "abcde", "f<&", "HEAD"]
    assert drawn.count('fill="#ff7b72"') == 2
    assert drawn.count('font-weight="bold"') == 1
