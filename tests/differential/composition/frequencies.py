"""How often real policies use what: ``python -m tests.differential.composition.frequencies DIR``.

Counts literals and calls of every policy below ``DIR`` (the folder of conformance data: two public
repositories of Rego, conftest's examples and Gatekeeper's library; tests of policies left out) and
writes ``weights.json``, by which random bodies draw. Committed, so that they need no policies.
"""

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.engine import compile_modules  # noqa: F401  # registers the built-ins
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax import ast
from webhook.rego.syntax.parser import parse_module

WEIGHTS: Final = Path(__file__).with_name("weights.json")


def sources(folder: Path) -> Iterator[str]:
    """The text of each policy."""
    for file in sorted(folder.glob("rego-corpora/**/*.rego")) + sorted(
        folder.glob("conftest/**/*.rego")
    ):
        if not file.stem.endswith("_test") and "/tests/" not in str(file):
            yield file.read_text()
    for file in sorted(folder.glob("gatekeeper-library/**/template*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            for target in (document or {}).get("spec", {}).get("targets", []):
                yield from filter(None, [target.get("rego"), *target.get("libs", [])])
                for code in target.get("code", []):
                    yield from filter(None, [code["source"].get("rego")])


def parsed(source: str) -> ast.Module | None:
    """The policy, in the version in which it is written."""
    for version in ("v1", "v0"):
        try:
            return parse_module(source, "policy.rego", version)
        except RegoErrors:
            continue
    return None


def nodes(node: Any) -> Iterator[Any]:
    """Every node of a tree."""
    if isinstance(node, tuple | list):
        for one in node:
            yield from nodes(one)
    elif dataclasses.is_dataclass(node) and not isinstance(node, type):
        yield node
        for one in dataclasses.fields(node):
            yield from nodes(getattr(node, one.name))


def counted(folder: Path) -> dict[str, dict[str, int]]:
    """Built-ins by name, and kinds of nodes; the most frequent ones first."""
    builtins: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    policies = 0
    for source in sources(folder):
        module = parsed(source)
        if module is None:
            continue
        policies += 1
        for node in nodes(module.rules):
            kinds[type(node).__name__] += 1
            if isinstance(node, ast.Call):
                name = _name(node)
                if name in BUILTINS:
                    builtins[name] += 1
            if isinstance(node, ast.Expr):
                kinds["negated"] += node.negated
                kinds["with"] += bool(node.with_)
    return {
        "policies": {"read": policies},
        "builtins": dict(builtins.most_common()),
        "kinds": dict(kinds.most_common()),
    }


def _name(call: ast.Call) -> str:
    operator = call.operator
    if isinstance(operator, ast.Var):
        return operator.name
    return ".".join([operator.head.name, *(getattr(part, "value", "") for part in operator.path)])


if __name__ == "__main__":
    found = counted(Path(sys.argv[1]))
    WEIGHTS.write_text(json.dumps(found, indent=2) + "\n")
    print(f"{found['policies']['read']} policies, {len(found['builtins'])} built-ins")
