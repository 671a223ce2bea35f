"""What a package index shows: README.md, with links that lead somewhere without the files beside it."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest

from tests.pages import ROOT

REPOSITORY = "https://github.com/txnkafka/txnkafka"
LINK = re.compile(r"(!?)\[[^]]*\]\(([^)]*)\)")


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments that setup.py gives to setuptools; nothing is compiled."""
    given: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)  # and back: setup.py goes there
    monkeypatch.setattr("setuptools.setup", given.update)
    monkeypatch.setattr("Cython.Build.cythonize", lambda *_, **__: [])
    runpy.run_path(str(ROOT / "setup.py"))
    return given


def test_links_are_absolute_and_lead_to_files_of_the_repository(metadata: dict[str, Any]) -> None:
    before = LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    links = LINK.findall(metadata["long_description"])
    assert len(links) == len(before) > 20
    for (image, link), (_, relative) in zip(links, before, strict=True):
        place, _, path = link.partition("/main/")
        assert place == f"{REPOSITORY}/{'raw' if image else 'blob'}"
        assert path == relative
        assert (ROOT / path.partition("#")[0]).is_file()


def test_only_links_are_changed(metadata: dict[str, Any]) -> None:
    text = re.sub(rf"\({REPOSITORY}/(blob|raw)/main/", "(", metadata["long_description"])
    assert text == (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata["long_description_content_type"] == "text/markdown"
