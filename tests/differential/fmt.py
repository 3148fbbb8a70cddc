"""Rego files as `waddle rego fmt` lays them out beside OPA's own layout, byte by byte.

    python -m tests.differential.fmt [--mutants COUNT] [--seed SEED] FOLDER...

Each .rego file below a folder, and each module of OPA's cases and of templates in YAML, is laid out as
v1, as v0, and from v0 for both; refusals must have the same text. What is laid out must be read to the
same tree, and be laid out to itself, as far as OPA's is. `--mutants` also tries so many files with
comments, line breaks and spaces put between tokens by chance.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.differential.oracle import Oracle
from tests.programs import build
from webhook.rego.builtins.module_json import module_value
from webhook.rego.errors import RegoErrors
from webhook.rego.format.module import Unformattable, error_text, formatted, lost
from webhook.rego.format.options import Target
from webhook.rego.syntax.ast import RegoVersion
from webhook.rego.syntax.parser import parse_module

MODES: tuple[tuple[RegoVersion, Target], ...] = (("v1", "v1"), ("v0", "v0"), ("v0", "v0v1"))
"""Pairs of versions for reading and for the layout: default, v0-compatible, and --v0-v1."""

TOKEN = re.compile(
    r'\s+|#[^\n]*|[A-Za-z_]\w*|\d+|"(?:[^"\\\n]|\\.)*"|`[^`]*`|[:=!<>]=|.', re.DOTALL
)
FILE = "test-0.rego"

Texts = tuple[str, str]
"""The formatted text of a file and the error; one of them is empty."""


def ours(source: str, version: RegoVersion, target: Target) -> Texts:
    """Our layout."""
    try:
        return formatted(source, FILE, version, target), ""
    except RegoErrors as errors:
        return "", error_text(errors)
    except Unformattable as fault:
        return "", str(fault)


def theirs(opa: Oracle, source: str, version: RegoVersion, target: Target) -> Texts:
    """OPA's layout."""
    found = opa.ask(op="format", version=version, target=target, modules=[source])
    text = found.get("text", "")
    return ("", text) if found.get("stage") else (text, "")


def first(errors: str) -> str:
    """The first error of a refusal: OPA's parser goes on in other ways than ours."""
    lines = errors.split("\n")
    return lines[1] if len(lines) > 1 and lines[0].endswith("errors occurred:") else lines[0]


def sources(folders: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Names and texts of all modules below folders."""
    for folder in folders:
        for file in sorted(folder.rglob("*.rego")):
            with file.open(encoding="utf-8", errors="replace", newline="") as stream:
                yield str(file), stream.read()
        for file in sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")]):
            text = file.read_text("utf-8", "replace")
            if "package " in text:
                for number, module in enumerate(_modules(text)):
                    yield f"{file} ({number})", module


def _modules(text: str) -> Iterator[str]:
    try:
        documents = [*yaml.load_all(text, yaml.CSafeLoader)]
    except (yaml.YAMLError, ValueError):
        return
    todo = list(documents)
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
        elif isinstance(one, str) and re.search(r"^\s*package\s", one, re.MULTILINE):
            yield one


def mutant(source: str, chance: random.Random) -> str:
    """The source with comments, line breaks and spaces between tokens, or fewer of them."""
    tokens = TOKEN.findall(source)
    for _ in range(chance.choice((1, 1, 2, 3, 5, 8))):
        at = chance.randrange(len(tokens) + 1)
        kind = chance.randrange(8)
        if kind < 3:
            tokens.insert(at, f" # {chance.choice('abc')}\n")
        elif kind < 5:
            tokens.insert(at, "\n" * chance.choice((1, 1, 2)))
        elif kind == 5:
            tokens.insert(at, " ")
        elif at < len(tokens) and tokens[at].isspace():
            tokens[at] = "" if kind == 6 else " "
        elif at < len(tokens) and tokens[at].isidentifier():
            tokens[at] = f"({tokens[at]})"
    return "".join(tokens)


@dataclass(slots=True)
class Count:
    """Counts of equal layouts and refusals, with the differences."""

    counts: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def compare(self, opa: Oracle, name: str, source: str, *, words: bool = True) -> None:
        """Lay a file out in each mode on both sides; ``words`` compares those of refusals, too."""
        for version, target in MODES:
            mine, real = ours(source, version, target), theirs(opa, source, version, target)
            if mine[0] != real[0] or (words and first(mine[1]) != first(real[1])):
                self.counts["differing"] += 1
                self.differing.append(f"{name} {version} {target}\n{_difference(mine, real)}")
                continue
            self.counts["refused" if mine[1] else "laid out"] += 1
            if not mine[1]:
                self._judge(opa, name, source, mine[0], version, target)

    def _judge(
        self, opa: Oracle, name: str, source: str, text: str, version: RegoVersion, target: Target
    ) -> None:
        """Whether the result means the same, and is laid out to itself."""
        again: RegoVersion = "v1" if target == "v1" else "v0"
        second = ours(text, again, target)
        if second != (text, ""):
            as_opa = second == theirs(opa, text, again, target)
            self.counts["not to itself, as OPA's" if as_opa else "differing"] += 1
            if not as_opa:
                self.differing.append(f"{name} {version} {target}: a second time")
            return
        if gone := lost(source, text, version, target):
            self.counts["something lost, as OPA loses it"] += 1
            self.lost.append(f"{name} {version} {target}: {', '.join(gone)}")
        elif target != "v0v1" and tree(source, version) != tree(text, again):
            self.counts["to another tree, as OPA's"] += 1


def tree(source: str, version: RegoVersion) -> str:
    """The tree of a module as text, without places, comments and the order of imports."""
    module = parse_module(source, FILE, version)
    document = module_value(module)
    document.pop("comments", None)
    document["imports"] = sorted(map(json.dumps, document.get("imports", [])))
    return json.dumps(document, sort_keys=True)


def _difference(mine: Texts, real: Texts) -> str:
    return f"--- OPA's\n{real[0] or real[1]}\n--- ours\n{mine[0] or mine[1]}"


def main() -> int:
    """Compare; say how many, and show what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = Count()
    files = [*sources(options.folders)]
    with Oracle(build("tests/oracles/opa")) as opa:
        for name, source in files:
            found.compare(opa, name, source)
        print(f"{len(files)} modules: {dict(found.counts)}")
        chance = random.Random(options.seed)
        small = [one for one in files if len(one[1]) < 3000]
        for _ in range(options.mutants):
            name, source = chance.choice(small)
            found.compare(opa, name, mutant(source, chance), words=False)
    if options.mutants:
        print(f"with {options.mutants} mutants: {dict(found.counts)}")
    for one in [*found.differing[:10]]:
        print(one)
    return 1 if found.differing else 0


if __name__ == "__main__":
    sys.exit(main())
