"""Relative links of the pages lead to files that exist, and their anchors to headings."""

from __future__ import annotations

import re

import pytest

from tests.pages import ROOT

FOLDERS = "*.md", "docs/*.md", "docs/internals/*.md", "bench/README.md"
PAGES = sorted(str(page.relative_to(ROOT)) for folder in FOLDERS for page in ROOT.glob(folder))
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def text_of(page: str) -> str:
    return CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(page: str, text: str) -> list[str]:
    found = []
    for path, wanted in LINK.findall(text):
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists():
            found.append(path)
        elif wanted and wanted not in map(anchor, HEADING.findall(text_of(str(target)))):
            found.append(f"{path}#{wanted}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert broken_links(page, text_of(page)) == []


def test_a_broken_link_would_be_found() -> None:
    sound = "[a](#more) [b](docs/cli.md#ls) [c](https://nowhere.invalid)"
    broken = "[d](nowhere.md) [e](README.md#nowhere)"
    assert broken_links("README.md", sound + broken) == ["nowhere.md", "README.md#nowhere"]
