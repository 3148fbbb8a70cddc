"""Every command that the pages show: in blocks of a shell, and in running text."""

import re
from pathlib import Path

from tests.programs import ROOT

GENERATED = {"api.md", "command-line.md", "commands.md", "flags.md", "metrics.md", "resources.md"}
"""Made of the code: their commands are names."""

PAGES = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in GENERATED),
    ROOT / "policies" / "README.md",
    ROOT / "manifests" / "helm" / "waddle" / "README.md",
    ROOT / "loadtest" / "README.md",
    ROOT / "CONTRIBUTING.md",
]

BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELL = {"", "console", "sh", "bash"}
PROGRAMS = ("waddle", "kubectl", "helm", "curl", "pip", "pipx", "uv")
INLINE = re.compile(rf"`((?:{'|'.join(PROGRAMS)}) [^`\n]+)`")
PLACEHOLDER = re.compile(r"(?<![-\w])[A-Z]+\b|<\w+>|\.\.\.|…|\w\\?\|\w")
"""A word that stands for the reader's own: such a text is a form, no command."""

MENTIONED = re.compile(r"[a-z]+( [a-z][a-z-]*)*( -k)?")
"""The name of a command or of a subcommand, in a sentence about it."""


def commands() -> dict[str, list[str]]:
    """The pages that show each command."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for command in dict.fromkeys([*in_blocks(page), *in_sentences(page)]):
            found.setdefault(command, []).append(str(page.relative_to(ROOT)))
    return found


def in_blocks(page: Path) -> list[str]:
    """Returns the commands in a page's blocks: after ``$``, or all lines without any ``$``."""
    found = []
    for language, block in BLOCK.findall(page.read_text()):
        if language not in SHELL:
            continue
        text = re.sub(r" *\\\n\s*", " ", block)
        for line in map(str.strip, text.splitlines()):
            if line.startswith("$ "):
                found.append(_without_comment(line.removeprefix("$ ")))
            elif language != "console" and line.split(" ")[0] in PROGRAMS and "──" not in line:
                found.append(_without_comment(line))
    return found


def in_sentences(page: Path) -> list[str]:
    """Returns the commands in a page's sentences and tables, without placeholders and names."""
    text = BLOCK.sub("", page.read_text())
    return [
        command
        for command in INLINE.findall(text)
        if not PLACEHOLDER.search(command) and not MENTIONED.fullmatch(command)
    ]


def _without_comment(line: str) -> str:
    return re.sub(r"\s+# .*$", "", line).strip()
