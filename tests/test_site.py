"""The documentation as pages: what is staged, what is found to ask other hosts, and the build itself."""

import re
import subprocess
from pathlib import Path

import pytest

from tests import site
from tests.browser import Browser, required
from tests.drawings import DRAWINGS, PICTURES, svg
from tests.programs import ROOT

MKDOCS = ROOT / ".venv-site" / "bin" / "python"


def test_every_page_and_picture_that_pages_lead_to_is_staged(tmp_path: Path) -> None:
    site.stage(tmp_path)
    assert (tmp_path / "README.md").is_file()
    assert (tmp_path / "docs" / "pictures" / "console-overview.png").is_file()
    assert (tmp_path / "policies" / "README.md").is_file()
    assert "(adr/README.md)" in (tmp_path / "docs" / "README.md").read_text()


def test_what_pages_show_is_shown_on_the_site_too(tmp_path: Path) -> None:
    """The site's Markdown knows no diagrams in code, and ends a list at less indented text."""
    site.stage(tmp_path)
    wrong = [
        f"{page.relative_to(tmp_path)}:{number}: {line}"
        for page in sorted(tmp_path.rglob("*.md"))
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if re.match(r" {1,3}(```|!\[)|\s*```mermaid", line)
    ]
    assert wrong == []


def test_the_drawn_pictures_are_as_they_are_drawn() -> None:
    """`python -m tests.drawings` draws them anew."""
    for name, drawing in DRAWINGS.items():
        assert (PICTURES / name).read_text() == svg(drawing), name


@pytest.mark.parametrize(
    "loaded",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="https://badge.example/x.svg">',
    ],
)
def test_what_would_be_asked_of_another_host_is_found(loaded: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<html><head></head><body>{loaded}</body></html>")
    assert len(site.foreign(tmp_path)) == 1
    page.write_text('<a href="https://example">a link</a><img src="own.png">')
    assert site.foreign(tmp_path) == []
    (tmp_path / "style.css").write_text("@font-face { src: url('https://fonts.example/a.woff') }")
    assert len(site.foreign(tmp_path)) == 1


def test_a_list_that_was_not_read_as_one_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<article><p>One.\n2. <strong>Two</strong></p></article>")
    assert site.unread(tmp_path) == ["page.html: 2. <strong>Two</strong></p>"]
    page.write_text("<article><pre>\n- a\n```</pre><ol>\n<li>Two</li></ol></article>\n- a")
    assert site.unread(tmp_path) == []


def build(folder: Path) -> None:
    """Build the pages into ``site`` of a folder."""
    command = [str(MKDOCS), "-m", "tests.site", str(folder / "site")]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not MKDOCS.exists(), reason="no MkDocs here: make site")
def test_the_pages_are_built_strictly_can_be_searched_and_ask_nobody(tmp_path: Path) -> None:
    build(tmp_path)
    assert "constrainttemplate" in (tmp_path / "site/search/search_index.json").read_text().lower()
    assert (tmp_path / "site" / "docs" / "first-policy.html").is_file()


@pytest.mark.skipif(not MKDOCS.exists(), reason="no MkDocs here: make site")
@pytest.mark.usefixtures("program")
def test_pages_that_are_opened_as_files_are_searched(tmp_path: Path) -> None:
    """A browser starts no worker of a file, and reads no other file by a script's request."""
    build(tmp_path)
    with Browser(*required(), tmp_path / "profile") as browser:
        browser.go((tmp_path / "site" / "docs" / "first-policy.html").as_uri())
        browser.press("/")
        browser.until("return document.activeElement.name === 'query'")
        browser.write("input[name=query]", "rollout")
        browser.until("return document.querySelector('.md-search-result__item a') !== null")
        assert "operating.html" in browser.run(
            "return [...document.querySelectorAll('.md-search-result__item a')].map(a => a.href).join()"
        )
        assert browser.complaints("file:") == []
