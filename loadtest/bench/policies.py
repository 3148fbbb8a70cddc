"""Sets of policies: those of `loadtest/policies`, and larger ones made of them."""

import copy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

POLICIES = Path(__file__).resolve().parent.parent / "policies"

Documents = list[dict[str, Any]]

# Kinds of constraints that do not match a Pod.
OTHER_KINDS = [{"apiGroups": ["networking.k8s.io"], "kinds": ["Ingress", "NetworkPolicy"]}]


def read(name: str) -> tuple[Documents, Documents]:
    """The templates and the constraints of a set."""
    folder = POLICIES / name
    templates, constraints = (
        [one for one in yaml.safe_load_all((folder / f"{file}.yaml").read_text()) if one]
        for file in ("templates", "constraints")
    )
    return templates, constraints


def write(folder: Path, templates: Iterable[Any], constraints: Iterable[Any]) -> Path:
    """A set in a folder, as servers read it."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, documents in (("templates", templates), ("constraints", constraints)):
        (folder / f"{file}.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return folder


def matching(count: int) -> tuple[Documents, Documents]:
    """Returns so many constraints that match the bodies, each with parameters of its own."""
    if count == 1:
        return read("p1")
    templates, hundred = read("p100")
    # One of each template, then the second of each: ten constraints are of ten templates.
    by_turn = sorted(hundred, key=lambda one: int(one["metadata"]["name"].rpartition("-")[2]))
    constraints = list(_copies(templates, by_turn, count))
    kinds = {one["kind"] for one in constraints}
    return [one for one in templates if _kind(one) in kinds], constraints


def with_idle(count: int, *, active: int = 12) -> tuple[Documents, Documents]:
    """Returns so many constraints, of which ``active`` match the bodies.

    Of the others, half are for other kinds and half each for a namespace of its own.
    """
    templates, constraints = read("p1" if active == 1 else "p12")
    idle = []
    for number, one in enumerate(_copies(templates, constraints, count)):
        if number < active:
            continue
        match = one["spec"].setdefault("match", {})
        if number % 2:
            match["kinds"] = OTHER_KINDS
        else:
            match["namespaces"] = [f"team-{number}"]
        idle.append(one)
    return templates, [*constraints, *idle]


def _copies(templates: Documents, constraints: Documents, count: int) -> Iterator[dict[str, Any]]:
    """The constraints, and as many copies of them as are needed, each a little different."""
    schemas = {_kind(one): one["spec"]["crd"]["spec"].get("validation", {}) for one in templates}
    for number in range(count):
        turn, place = divmod(number, len(constraints))
        one = copy.deepcopy(constraints[place])
        if turn:
            one["metadata"]["name"] += f"-copy-{turn}"
            schema = schemas[one["kind"]].get("openAPIV3Schema", {})
            if name := _list_of_texts(schema):
                # No two copies ask the same question, and none is answered differently.
                parameters = one["spec"].setdefault("parameters", {})
                parameters[name] = [*parameters.get(name, ()), f"copy-{turn}.example.com/"]
        yield one


def _list_of_texts(schema: dict[str, Any]) -> str:
    """A parameter that is a list of any texts; empty where there is none."""
    for name, property_ in schema.get("properties", {}).items():
        items = property_.get("items", {})
        if items.get("type") == "string" and "enum" not in items:
            return str(name)
    return ""


def _kind(template: dict[str, Any]) -> str:
    return str(template["spec"]["crd"]["spec"]["names"]["kind"])
