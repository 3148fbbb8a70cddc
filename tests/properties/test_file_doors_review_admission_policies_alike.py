"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies get the same findings at every door of files.

A policy reviews what each MutatingAdmissionPolicy changes, so that a door without mutation would differ.

No replica enforces them, so that no server is compared.
"""

from pathlib import Path

import pytest

from tests.differential.admission_policies.beside import EVERYTHING
from tests.differential.admission_policies.made import API, CASE, SPACE, Case, cases, parameters
from tests.properties.doors.doors import DOORS, Files
from tests.properties.doors.findings import Findings
from tests.properties.doors.worlds import Json, World
from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.policy_kinds.parts import read_admission_policy

SEEDS = (0, 1, 2, 3, 5)
"""Each finds something."""
POLICIES = 10
"""Policies of each kind in a world, with three objects each."""
SPACE_DOCUMENT = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
CHANGED = "changed-"
"""The prefix of the policies that review changed objects."""
UNCHANGED = (
    "object.metadata.labels.all(key, key in ['case', 'team'])",
    "!has(object.metadata.annotations) && !has(object.metadata.finalizers)",
    (
        "object.?data.orValue({}).all(key, key in ['a', 'b', 'n', 'z', 'q', 's', 'ip'] && "
        "!(object.data[key] in ['changed', '2']) && !object.data[key].endsWith('!'))"
    ),
    "object.?spec.orValue({}).all(key, key in ['containers', 'automountServiceAccountToken'])",
    (
        "object.?spec.?containers.orValue([]).all(container, container.name in ['a', 'b'] && "
        "container.all(key, key in ['name', 'image', 'env']))"
    ),
)
"""Expressions that hold of every object of a mutating policy until it is changed."""


def admission_world(seed: int) -> World:
    """A world with the policies of a seed that an API server would take."""
    policies: list[Json] = [SPACE_DOCUMENT, EVERYTHING, *parameters()]
    objects: list[Json] = []
    for mutating in (False, True):
        for case in cases(seed, POLICIES, mutating=mutating):
            try:
                read_admission_policy(case.policy)
            except InvalidAdmissionPolicy:
                continue
            if mutating:  # a change that cannot be applied would be no verdict in the library
                case.policy["spec"]["failurePolicy"] = "Ignore"
                policies += review_of_changes(case)
            policies += [case.policy, *case.bindings]
            objects += case.objects
    return World(seed, tuple(policies), tuple(objects))


def review_of_changes(case: Case) -> list[Json]:
    """Returns a policy, with its binding, that a case's objects violate once they are changed."""
    name = f"{CHANGED}{case.name}"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps", "pods"],
    }
    spec = {
        "matchConstraints": {
            "resourceRules": [rule],
            "objectSelector": {"matchLabels": {CASE: case.name}},
        },
        "validations": [{"expression": text, "message": text} for text in UNCHANGED],
    }
    kind, metadata = "ValidatingAdmissionPolicy", {"name": name}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec},
        {"apiVersion": API, "kind": f"{kind}Binding", "metadata": metadata, "spec": bound},
    ]


def findings_by_door(seed: int, folder: Path) -> dict[str, Findings]:
    """Returns the findings of each door of files about each object."""
    files = Files(admission_world(seed), folder)
    return {name: ask(files) for name, ask in DOORS.items() if name != "audit and reports"}


def violations(found: Findings) -> dict[str, set[tuple[str, str]]]:
    """The findings that are no notes, which some doors show; formats name several actions alike."""
    return {
        name: {(key, message) for key, message, action in findings if action != "note"}
        for name, findings in found.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_file_doors_review_admission_policies_alike(seed: int, tmp_path: Path) -> None:
    found = {door: violations(one) for door, one in findings_by_door(seed, tmp_path).items()}
    names = {key.rpartition("/")[2] for each in found["library"].values() for key, _ in each}
    assert any(name.startswith(CHANGED) for name in names), "no object was changed"
    assert any(not name.startswith(CHANGED) for name in names)
    for door, each in found.items():
        assert each == found["library"], door
