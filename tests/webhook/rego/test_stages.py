"""The table of stages in docs/rego.md, and what the modules say of themselves."""

import ast
import re
from pathlib import Path

import webhook.rego

ROOT = Path(webhook.rego.__file__).parent
DOCS = ROOT.parent.parent / "docs" / "rego.md"
ROW = re.compile(r"\| (\d+) \| `(\w+)`: ([^|]*) \|")


def documented_stages() -> dict[str, int]:
    """The stage of each module in the table."""
    return {
        f"{room}/{module}.py": int(number)
        for number, room, modules in ROW.findall(DOCS.read_text())
        for module in re.findall(r"`(\w+)`", modules)
    }


def stages_in_code() -> dict[str, int]:
    """The stage that each module's first line names."""
    found = {}
    for file in ROOT.rglob("*.py"):
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        if stage := re.match(r"Stages? (\d+)", text):
            found[file.relative_to(ROOT).as_posix()] = int(stage[1])
    return found


def test_each_module_names_the_stage_that_the_table_gives_it():
    assert stages_in_code() == documented_stages()


def test_stages_are_numbered_from_one_on_without_a_gap():
    assert sorted(set(documented_stages().values())) == list(
        range(1, max(documented_stages().values()) + 1)
    )
