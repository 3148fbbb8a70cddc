"""The prose of pages, as ``make lint`` checks it: ``python -m tests.prose``.

Rules about length: no sentence is longer than 40 words, half of a page's sentences have at most 14,
and a decision record fits one page. And a vocabulary: phrases that a reader in a hurry has to read twice, each with what to
write instead. Code, links' addresses and pages that are made from code are not prose.
"""

from __future__ import annotations

import re
import statistics
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.programs import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORDS_MAX: Final = 40
MEDIAN_MAX: Final = 14
DECISION_WORDS_MAX: Final = 500
"""Of a decision record, outside of tables: one page of print."""

PHRASES: Final = {
    r"\bin nothing\b": "say what is empty",
    r"\bfor (?:test suites|somebody|nobody) (?:are|is|has)\b": "because …",
    r"\bof whose\b": "make two sentences",
    r"\bthe one that is the one\b": "name it",
    r"\ball the same\b": "still",
    r"\bas it were\b": "leave it out",
    r"\bsuch as it is\b": "leave it out",
    r"\b(?:utilize|leverage)s?\b": "use",
    r"\bin order to\b": "to",
    r"\b(?:simply|easily|obviously)\b": "leave it out",
    r"\btold\b": "say how: reported, shown, logged, printed, delivered",
    r"\bwanted\b": "asked for, needed, configured",
    r"\b(?:that|which|what) there (?:is|are) not\b": "unknown, missing",
    r"\b(?:that|which|what) (?:is|are) none\b": "invalid, not a …",
    r"\bas ever\b": "as before, or leave it out",
    r"^who(?:ever)? [^?]+$": "name the role: a user, an operator, an attacker, a client, a right",
    r"\b(?:to|by|for) who(?:ever)? (?:may|can|is|has|asks|makes|sends|wants)\b": "name the role",
}
"""A pattern and what to write instead."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A sentence, or a whole page, that is hard to read."""

    line: int
    text: str


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """Each sentence of a page in Markdown with the line at which its paragraph begins."""
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731  # lines keep their numbers
    page = re.sub(r"\A---\n.*?\n---\n", blank, page, flags=re.DOTALL)
    page = re.sub(r"^( *)(```|~~~).*?^\1\2", blank, page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"<!--.*?-->", blank, page, flags=re.DOTALL)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ))", page):
        start = line + block.count("\n", 0, len(block) - len(block.lstrip()))
        line += block.count("\n")
        text = block.strip()
        if not text or text.startswith("#"):
            continue
        for cell in text.split("|") if text.startswith("|") else [text]:
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", cell)
            plain = re.sub(r"``?[^`]+`?`", "X", plain)
            plain = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", plain)
            plain = re.sub(r"[*_]{1,2}", "", plain)
            for sentence in re.split(r"(?<=[.!?])\s+|(?<=[:;])\s+(?=[A-Z])", plain):
                if sentence.strip():
                    yield start, " ".join(sentence.split())


def count_words(text: str) -> int:
    """How many words a sentence has."""
    return len(re.findall(r"[\w'’-]+", text))


def faults(page: str) -> Iterator[Fault]:
    """What is wrong with a page's prose."""
    lengths = []
    for line, sentence in sentences(page):
        words = count_words(sentence)
        if words > 2:
            lengths.append(words)
        if words > WORDS_MAX:
            yield Fault(line, f"{words} words, at most {WORDS_MAX}: {sentence}")
        for pattern, instead in PHRASES.items():
            if match := re.search(pattern, sentence, re.IGNORECASE):
                yield Fault(line, f"“{match[0]}” ({instead}): {sentence}")
    if lengths and (median := statistics.median(lengths)) > MEDIAN_MAX:
        yield Fault(1, f"half of the sentences have {median:g} words or more, at most {MEDIAN_MAX}")


def length_faults(page: str) -> Iterator[Fault]:
    """That a decision record is longer than a page; a table may be a register, and does not count."""
    without_tables = re.sub(r"^\|.*$", "", page, flags=re.MULTILINE)
    words = sum(count_words(sentence) for _, sentence in sentences(without_tables))
    if words > DECISION_WORDS_MAX:
        yield Fault(1, f"{words} words outside of tables, at most {DECISION_WORDS_MAX}")


def faults_of(path: Path) -> Iterator[Fault]:
    """What is wrong with the prose of a file."""
    page = path.read_text()
    yield from faults(page)
    if path.parent.name == "adr":
        yield from length_faults(page)


def pages() -> list[Path]:
    """Every page; what code writes is mended there."""
    folders = (ROOT / "docs", ROOT / "policies", ROOT / "loadtest")
    found = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    return sorted(found)


def main() -> int:
    """Print each fault as ``page:line: what``."""
    count = 0
    for path in pages():
        for fault in faults_of(path):
            print(f"{path.relative_to(ROOT)}:{fault.line}: {fault.text}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
