"""The documentation as pages: what README leads to, built strictly. ``python -m tests.site FOLDER``.

Files are put beside each other as they are in the repository, so that a link that works there works
here. Run by an environment with MkDocs (`make site`); what is in the pages is checked after.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = ROOT / "docs" / "site.yaml"
SCRIPT = ROOT / "docs" / "iframe-worker.js"
"""Of pages that are opened as files; the configuration names it."""

_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
_OUTSIDE = re.compile(r"^(https?:)?//")
_URL = re.compile(rb"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)")
_PRE = re.compile(r"<pre.*?</pre>", re.DOTALL)
_MARK = re.compile(r"\n(\d+\. |[-*] |\| )[^\n]{0,60}|```")
LOADS = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("object", "data"),
    ("form", "action"),
}
"""Attributes that a browser loads by itself, and targets of forms; a `link` counts by its `rel`."""

_HARMLESS_RELATIONS = {"canonical", "next", "prev", "author", "license"}


class BrokenPagesError(Exception):
    """The pages are not as they should be; the message says what is wrong."""


def stage(folder: Path) -> None:
    """Put every page, and all that pages lead to, where it is in the repository."""
    waiting = [SCRIPT, ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copy(file, target)
            continue
        text = file.read_text(encoding="utf-8")
        led = partial(_led, folder=file.parent)
        target.write_text(_LINK.sub(led, text), encoding="utf-8")
        waiting += linked(file, text)


def linked(file: Path, text: str) -> Iterator[Path]:
    """The files of the repository that a page leads to."""
    for link in _LINK.finditer(text):
        path = (file.parent / link[1]).resolve()
        if path.is_dir():
            path = path / "README.md"
        if path.is_file() and path.is_relative_to(ROOT):
            yield path


def _led(link: re.Match[str], folder: Path) -> str:
    """A link to a folder leads to its page."""
    path, rest = link[1], link[2] or ""
    if _OUTSIDE.match(path) or not (folder / path / "README.md").is_file():
        return link[0]
    return f"]({path.rstrip('/')}/README.md{rest})"


def build(folder: Path) -> None:
    """Build the pages into a folder. Raises BrokenPagesError."""
    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary)
        stage(staged / "pages")
        shutil.copy(CONFIGURATION, staged / "mkdocs.yml")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--quiet"),
                *("--config-file", staged / "mkdocs.yml", "--site-dir", folder.resolve()),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise BrokenPagesError(done.stdout + done.stderr)


class _Loaded(HTMLParser):
    """Collects the addresses of other hosts that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        relations = set((named.get("rel") or "").split())
        for name, value in attrs:
            is_loaded = (tag, name) in LOADS or name in ("srcset", "poster", "background")
            if tag == "link" and name == "href":
                is_loaded = not relations & _HARMLESS_RELATIONS
            if is_loaded and value and _OUTSIDE.match(value):
                self.found.append(f"<{tag} {name}={value}>")


def foreign(folder: Path) -> list[str]:
    """Returns the pages and styles that load from other hosts."""
    found = []
    for page in sorted(folder.rglob("*.html")):
        parser = _Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        found += [f"{page.relative_to(folder)}: {problem}" for problem in parser.found]
    for style in sorted(folder.rglob("*.css")):
        urls = _URL.findall(style.read_bytes())
        found += [f"{style.relative_to(folder)}: {url.decode()}" for url in urls]
    return found


def unread(folder: Path) -> list[str]:
    """Returns the pages that show Markdown's marks: a list or a block that was not recognised."""
    found = []
    for page in sorted(folder.rglob("*.html")):
        _, _, article = page.read_text(encoding="utf-8").partition("<article")
        shown = _PRE.sub("", article.partition("</article")[0])
        found += [
            f"{page.relative_to(folder)}: {mark[0].strip()}" for mark in _MARK.finditer(shown)
        ]
    return found


def main(folder: Path) -> int:
    """Build, look, and say what is wrong."""
    try:
        build(folder)
    except BrokenPagesError as error:
        print(error, file=sys.stderr)
        return 1
    found = foreign(folder)
    for line in found:
        print(f"asks another host: {line}", file=sys.stderr)
    marks = unread(folder)
    for line in marks:
        print(f"is not read as it is meant: {line}", file=sys.stderr)
    if not found and not marks:
        print(f"{folder}: {sum(1 for _ in folder.rglob('*.html'))} pages; open index.html")
    return 1 if found or marks else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
