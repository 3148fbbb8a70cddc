"""The prose of pages, as ``make lint`` checks it: ``python -m tests.prose``.

Rules about length: no sentence is longer than 40 words, half of a page's sentences have at most 14,
and a decision record fits one page. And a vocabulary: phrases that a reader in a hurry has to read twice, each with what to
write instead. Code, links' addresses and pages that are made from code are not prose. The texts of
the program itself have the same vocabulary, and a line of its log is a sentence of at most 25 words.
Docstrings of tests and load tests do not begin with a word that leaves their subject open.
"""

from __future__ import annotations

import ast
import itertools
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
LOG_WORDS_MAX: Final = 25

DECISION_WORDS_MAX: Final = 500
"""Of a decision record, outside of tables: one page of print."""

PHRASES: Final = {
    r"\b(?P<twice>(?:the|a|an|of|to|is|are|that|limit|provider|set|log) (?:\w+ )?)(?P=twice)": "once",
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


OPEN_BEGINNINGS: Final = {"What", "Who", "Whose", "Those"}
"""First words of a docstring that do not name its subject."""

LOG_LEVELS: Final = {"debug", "info", "warning", "error", "fault"}

OF_GATEKEEPER: Final = {
    'map[X], wanted ""',
    'no language driver is installed that handles this constraint template: available drivers: map[X], wanted ""',
}
"""Texts that users of Gatekeeper know word for word."""

COUNTED: Final = re.compile(
    r" (?:\w+ )?(?:cases|constraints|decisions|errors|files|kinds|lines|mutators|namespaces|objects"
    r"|policies|records|replicas|reports|requests|resources|samples|suites|templates|tests"
    r"|violations)\b"
)
"""Matches a counted plural; a single object needs the singular."""

WORDS_OF_OTHERS: Final = frozenset(
    {
        *("cel/errors", "conftest/output/azuredevops", "conftest/output/github", "rego/errors"),
        *("policies/assertion", "policies/rego_files", "policies/suite_runner"),
        # One line that is drawn again and again, a ratio, and what is never one.
        *("cli/audit/progress", "cli/check/report", "cli/simulate/command"),
        *("controllers/status/conditions", "library", "server/validation", "app/greeting"),
        "console/visibility",
    }
)
"""Modules whose plurals are OPA's, conftest's and gator's, or right as they stand."""

_NO_VERB: Final = re.compile(r"(?<!is )(?<!are )(?<!was )(?<!were )(?<!be )\bnot \w+(?:ed|en)\b")
"""``object not written``: nobody can say whether it was, is or will be."""


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
    """Returns the number of words in a sentence."""
    return len(re.findall(r"[\w'’-]+", text))


def faults(page: str) -> Iterator[Fault]:
    """Yields the faults of a page's prose."""
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
    """Yields a fault if a decision record is longer than a page; tables do not count."""
    without_tables = re.sub(r"^\|.*$", "", page, flags=re.MULTILINE)
    words = sum(count_words(sentence) for _, sentence in sentences(without_tables))
    if words > DECISION_WORDS_MAX:
        yield Fault(1, f"{words} words outside of tables, at most {DECISION_WORDS_MAX}")


def faults_of(path: Path) -> Iterator[Fault]:
    """Yields the faults in the prose of a file."""
    page = path.read_text()
    yield from faults(page)
    if path.parent.name == "adr":
        yield from length_faults(page)


def messages(source: str) -> Iterator[tuple[int, str, bool]]:
    """Each text of a module but its docstrings: its line, and whether it is an event of the log."""
    tree = ast.parse(source)
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr | ast.JoinedStr)
        for part in ast.iter_child_nodes(node)
    }
    events = {
        id(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LOG_LEVELS
        and "log" in ast.unparse(node.func.value).lower()
        and node.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (one.value if isinstance(one, ast.Constant) else "X" for one in node.values)
            yield node.lineno, "".join(map(str, parts)), id(node) in events
        elif isinstance(node, ast.Constant) and type(node.value) is str and id(node) not in within:
            yield node.lineno, node.value, id(node) in events


def plural_faults(source: str) -> Iterator[Fault]:
    """Numbers before a plural that would be ``1 objects``: :func:`webhook.printable.quantity`."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for number, after in itertools.pairwise(node.values):
            if not isinstance(number, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            shown, text = ast.unparse(number.value), str(after.value)
            if COUNTED.match(text) and not re.search("[A-Z]_MAX|^[A-Z_]+$", shown):
                yield Fault(node.lineno, f"{{{shown}}}{text}: its plural is always one")


def message_faults(source: str) -> Iterator[Fault]:
    """Yields the faults in the texts of a module; Go's own words and patterns are no prose."""
    for line, text, is_event in messages(source):
        if is_event and (words := count_words(text)) > LOG_WORDS_MAX:
            yield Fault(line, f"{words} words, at most {LOG_WORDS_MAX}: {text}")
        if is_event and (match := _NO_VERB.search(text)):
            yield Fault(line, f"“{match[0]}” (is, was, cannot be …): {text}")
        for pattern, instead in PHRASES.items():
            if " " not in text or pattern.startswith("^") or text in OF_GATEKEEPER:
                continue
            if match := re.search(pattern, text, re.IGNORECASE):
                yield Fault(line, f"“{match[0]}” ({instead}): {text}")


def docstring_faults(source: str) -> Iterator[Fault]:
    """Yields the docstrings that begin with one of ``OPEN_BEGINNINGS``.

    Docstrings of modules, classes, functions and fields count. A module's docstring is left out if
    the module prints it as its help.
    """
    tree = ast.parse(source)
    is_help = any(isinstance(node, ast.Name) and node.id == "__doc__" for node in ast.walk(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        text = str(node.value.value).strip()
        first = re.match(r"\w*", text)
        if first and first[0] in OPEN_BEGINNINGS and not (is_help and node is tree.body[0]):
            summary = text.partition("\n")[0]
            yield Fault(node.lineno, f"“{first[0]}” (name the noun, or Returns …): {summary}")


def pages() -> list[Path]:
    """Every page; what code writes is mended there."""
    folders = (ROOT / "docs", ROOT / "policies", ROOT / "loadtest", ROOT / "manifests" / "helm")
    found = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    return sorted(found)


def faults_of_module(path: Path) -> Iterator[Fault]:
    """Yields the faults in a module's texts."""
    source = path.read_text("utf-8")
    yield from message_faults(source)
    if str(path.relative_to(ROOT / "webhook").with_suffix("")) not in WORDS_OF_OTHERS:
        yield from plural_faults(source)


def modules() -> list[Path]:
    """Every module of the program."""
    return sorted((ROOT / "webhook").rglob("*.py"))


def modules_of_tests() -> list[Path]:
    """Every module of the tests and the load tests."""
    return sorted(path for name in ("tests", "loadtest") for path in (ROOT / name).rglob("*.py"))


def main() -> int:
    """Print each fault as ``page:line: what``."""
    count = 0
    for path in pages():
        for fault in faults_of(path):
            print(f"{path.relative_to(ROOT)}:{fault.line}: {fault.text}")
            count += 1
    for path in modules():
        for fault in faults_of_module(path):
            print(f"{path.relative_to(ROOT)}:{fault.line}: {fault.text}")
            count += 1
    for path in modules_of_tests():
        for fault in docstring_faults(path.read_text("utf-8")):
            print(f"{path.relative_to(ROOT)}:{fault.line}: {fault.text}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
