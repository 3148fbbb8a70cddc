"""Lines and branches of the generator that no compared question reaches.

``python -m tests.differential.composition.reached`` asks what tests of these folders compare with
OPA: its cases, the library's suites, a part of all compositions, what was found so, deep nests, both
levels. What is left is printed with its source; ``unreached.txt`` has the reasons for what is not.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import coverage

from tests.differential import specialised
from tests.differential.agreement import ours
from tests.differential.compatibility import question as compatibility_question
from tests.differential.composition.corners import corners
from tests.differential.composition.found import FOUND
from tests.differential.composition.found import question as found_question
from tests.differential.composition.pairs import BODIES, PAIRS, SEED
from tests.differential.composition.prepared import prepared
from tests.differential.composition.questions import some_bodies, some_pairs
from tests.differential.nesting import DEEP
from tests.differential.nesting import question as deep_question
from tests.differential.opa_versions import DIFFERENCES
from tests.differential.oracle import Oracle
from tests.differential.policies import of_cases, of_library
from tests.programs import ROOT, build
from webhook.rego.builtins.registry import GATEKEEPER, LATEST

GENERATOR: Final = ROOT / "webhook" / "rego" / "write"
REASONS: Final = Path(__file__).with_name("unreached.txt")


@dataclass(frozen=True, slots=True)
class Gap:
    """A line that is not reached, or one from which a branch is not taken."""

    file: str
    line: int
    source: str
    towards: int | None = None

    def shown(self) -> str:
        """For whoever reads it."""
        way = "" if self.towards is None else f" never goes to line {self.towards}"
        return f"{self.file}:{self.line}{way}: {self.source}"


def reasons() -> dict[tuple[str, str], str]:
    """Returns reasons of unreached lines, by file and source: ``file | source | reason``."""
    found = {}
    for line in REASONS.read_text().splitlines():
        if line and not line.startswith("#"):
            file, source, reason = (part.strip() for part in line.split(" | ", 2))
            found[file, source] = reason
    return found


def gaps(measured: coverage.Coverage) -> Iterator[Gap]:
    """All that was not reached."""
    for path in sorted(GENERATOR.glob("*.py")):
        lines = path.read_text().splitlines()
        analysis = measured._analyze(str(path))
        for line in sorted(analysis.missing):
            yield Gap(path.name, line, lines[line - 1].strip())
        for line, targets in sorted(analysis.missing_branch_arcs().items()):
            if line not in analysis.missing:
                for target in targets:
                    yield Gap(path.name, line, lines[line - 1].strip(), target)


def ask(oracle: Oracle) -> None:
    """Compiles and runs all questions that are compared with OPA; ignores their answers."""
    for questions in (some_pairs(SEED, PAIRS), some_bodies(SEED, BODIES), corners()):
        for one in prepared(oracle, questions):
            one.compiled.document(one.path)
    nested = [deep_question(form) for form in DEEP]
    levels = [
        compatibility_question(line, level)
        for line in DIFFERENCES
        for level in (LATEST, GATEKEEPER)
    ]
    known = [question for _, question in (*of_cases(), *of_library())]
    for question in (*map(found_question, FOUND.values()), *nested, *levels, *known):
        ours(question)
        moved = specialised.moved(question)
        if moved is not None and moved.input["parameters"] is not None:
            specialised.specialised(moved)
            specialised.general(specialised.compiled(moved), moved, known=True)


def main(arguments: list[str]) -> int:
    """Ask, and print what was not reached; 1 if something has no reason."""
    if arguments == ["--ask"]:
        with Oracle(build("tests/oracles/opa")) as oracle:
            ask(oracle)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/coverage"
        options = ["--rcfile=", "--branch", f"--data-file={data}", f"--include={GENERATOR}/*"]
        # A process of its own: what is done while modules are imported counts as well.
        program = ["-m", "coverage", "run", *options, "-m", __spec__.name, "--ask"]
        subprocess.run([sys.executable, *program], cwd=ROOT, check=True)
        measured = coverage.Coverage(data_file=data, config_file=False, branch=True)
        measured.load()
        found = list(gaps(measured))
    known = reasons()
    unexplained = [gap for gap in found if (gap.file, gap.source) not in known]
    for gap in unexplained:
        print(gap.shown())
    stale = known.keys() - {(gap.file, gap.source) for gap in found}
    for at in sorted(stale):
        print(f"reached after all, or no longer there: {' | '.join(at)}")
    print(f"{len(found)} not reached, {len(unexplained)} of them without a reason")
    return int(bool(unexplained or stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
