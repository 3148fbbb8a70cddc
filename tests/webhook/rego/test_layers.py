"""The modules of a room of the language stand in layers, also by what they name in annotations.

Import contracts hold what is imported when code runs; two modules that need each other to be read
are one module all the same.
"""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import webhook

ROOT = Path(webhook.__file__).parent
ROOMS = ("golang", "rego.check", "rego.run", "rego.syntax", "rego.write")


def imports(room: str) -> dict[str, set[str]]:
    """Which modules of the room each of its modules names."""
    found: dict[str, set[str]] = {}
    for file in (ROOT / room.replace(".", "/")).glob("*.py"):
        named = found[file.stem] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                package, _, rest = node.module.partition(f"webhook.{room}")
                if not package and rest.startswith("."):
                    named.add(rest.split(".")[1])
                elif not package and not rest and node.module == f"webhook.{room}":
                    named |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_no_two_modules_of_a_room_name_each_other(room):
    assert list(TopologicalSorter(imports(room)).static_order())
