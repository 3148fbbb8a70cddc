"""Shared parts of the templates in `policies/` and their copies: Rego's modules, CEL's variables.

A ConstraintTemplate is a whole: it cannot import from a file. So each carries a copy of what it uses
of `policies/lib/`, a test compares them, and `python -m tests.policy_library` writes them anew.
"""

import re
import sys
import textwrap
from pathlib import Path

import yaml

POLICIES = Path(__file__).resolve().parent.parent / "policies"

_LIBS = re.compile(r"(?P<indent> *)libs:\n(?:(?P=indent) .*\n|\n)+")
_VARIABLE = re.compile(
    r"(?P<indent>^ *)- name: (?P<name>\w+)\n(?P=indent)  expression: >-\n(?:(?P=indent)    .*\n)+",
    re.MULTILINE,
)
_PACKAGE = re.compile(r"^package (lib\.\w+)$", re.MULTILINE)


def shared_modules() -> dict[str, str]:
    """The modules of `policies/lib/` by package."""
    found = {}
    for file in sorted((POLICIES / "lib").glob("*.rego")):
        text = file.read_text()
        package = _PACKAGE.search(text)
        assert package, file
        found[package[1]] = text
    return found


def shared_variables() -> dict[str, str]:
    """The variables of `policies/lib/` by name, as they are written: name and expression."""
    return {
        found["name"]: found[0]
        for file in sorted((POLICIES / "lib").glob("*.cel"))
        for found in _VARIABLE.finditer(file.read_text())
    }


def copied_variables(template: Path) -> dict[str, str]:
    """The variables of a template that have the name of a shared one, likewise."""
    return {
        found["name"]: textwrap.dedent(found[0])
        for found in _VARIABLE.finditer(template.read_text())
        if found["name"] in shared_variables()
    }


def templates() -> list[Path]:
    """The files of all templates."""
    return sorted(POLICIES.glob("*/*/template.yaml"))


def copied_modules(template: Path) -> dict[str, str]:
    """The modules that a template carries, by package."""
    source = yaml.safe_load(template.read_text())["spec"]["targets"][0]["code"][0]["source"]
    found = {}
    for text in source.get("libs", []):
        package = _PACKAGE.search(text)
        assert package, template
        found[package[1]] = text
    return found


def write(template: Path) -> bool:
    """Bring the copies in a template up to date; says whether it changed."""
    modules = shared_modules()
    packages = list(copied_modules(template))

    def libs(match: re.Match[str]) -> str:
        indent = match["indent"]
        lines = [f"{indent}libs:\n"]
        for package in packages:
            lines += [f"{indent}  - |\n", textwrap.indent(modules[package], f"{indent}    ")]
        return "".join(lines)

    shared = shared_variables()

    def variable(match: re.Match[str]) -> str:
        text = shared.get(match["name"])
        return match[0] if text is None else textwrap.indent(text, match["indent"])

    before = template.read_text()
    after = _VARIABLE.sub(variable, _LIBS.sub(libs, before, count=1))
    if after != before:
        template.write_text(after)
    return after != before


def main() -> int:
    """Write all templates and name those that changed."""
    for template in templates():
        if write(template):
            print(template.relative_to(POLICIES.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
