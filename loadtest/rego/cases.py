"""The benchmark's cases: each template of a library with an object it allows and one it denies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Json = dict[str, Any]

USER = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}


@dataclass(frozen=True, slots=True)
class Case:
    """An evaluation: a template's Rego over a review, with a constraint's parameters."""

    name: str
    """``general/allowedrepos good``."""
    template: Json
    constraint: Json
    review: Json
    inventory: Json
    modules: tuple[str, ...]
    """The template's Rego first, then its libraries."""
    version: str

    @property
    def query(self) -> str:
        """The reference of the rule ``violation``."""
        for line in self.modules[0].splitlines():
            if line.startswith("package "):
                return f"data.{line.split()[1]}.violation"
        raise ValueError(f"{self.name}: no package")

    @property
    def input(self) -> Json:
        """The policy's ``input``."""
        parameters = self.constraint.get("spec", {}).get("parameters", {})
        return {"review": self.review, "parameters": parameters}


def load_cases(library: Path) -> Iterator[Case]:
    """Each template's first allowed and first denied case, in the order of the folders."""
    for suite_file in sorted(library.rglob("suite.yaml")):
        folder = suite_file.parent
        suite = _document(suite_file)
        expected = {"no": "good", "yes": "bad"}
        for test in suite["tests"]:
            template = _document(folder / test["template"])
            for case in test.get("cases", ()):
                violations = case["assertions"][0].get("violations", "yes")
                label = expected.pop({False: "no", True: "yes"}.get(violations, violations), None)
                if label:
                    constraint = _document(folder / test["constraint"])
                    name = f"{folder.relative_to(library)} {label}"
                    yield _case(name, folder, template, constraint, case)


def _case(name: str, folder: Path, template: Json, constraint: Json, case: Json) -> Case:
    (target,) = template["spec"]["targets"]
    source = {"rego": target.get("rego"), "libs": target.get("libs", ())}
    for code in target.get("code", ()):
        if code["engine"] == "Rego":
            source = code["source"]
    return Case(
        name=name,
        template=template,
        constraint=constraint,
        review=_review(_document(folder / case["object"])),
        inventory=_inventory(_document(folder / file) for file in case.get("inventory", ())),
        modules=(source["rego"], *source.get("libs", ())),
        version=source.get("version", "v0"),
    )


def _document(file: Path) -> Json:
    document: Json = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    return document


def _review(document: Json) -> Json:
    """The review of an object's creation, unless the document is an AdmissionReview already."""
    if document["kind"] == "AdmissionReview":
        request: Json = document["request"]
        return request
    group, _, version = document["apiVersion"].rpartition("/")
    metadata = document["metadata"]
    return {
        "uid": "00000000-0000-0000-0000-000000000000",
        "kind": {"group": group, "version": version, "kind": document["kind"]},
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "operation": "CREATE",
        "userInfo": USER,
        "object": document,
        "oldObject": None,
        "dryRun": False,
    }


def _inventory(documents: Iterator[Json]) -> Json:
    """``data.inventory`` as Gatekeeper arranges synced objects."""
    inventory: Json = {"cluster": {}, "namespace": {}}
    for document in documents:
        metadata = document["metadata"]
        place = inventory["cluster"]
        if namespace := metadata.get("namespace"):
            place = inventory["namespace"].setdefault(namespace, {})
        kinds = place.setdefault(document["apiVersion"], {})
        kinds.setdefault(document["kind"], {})[metadata["name"]] = document
    return inventory
