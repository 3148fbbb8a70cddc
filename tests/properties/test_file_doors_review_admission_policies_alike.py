"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies get the same findings at every door of files.

No replica enforces them, so that no server is compared.
"""

from pathlib import Path

import pytest

from tests.differential.admission_policies.beside import EVERYTHING
from tests.differential.admission_policies.made import SPACE, cases, parameters
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
            policies += [case.policy, *case.bindings]
            objects += case.objects
    return World(seed, tuple(policies), tuple(objects))


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
    assert any(found["library"].values())
    for door, each in found.items():
        assert each == found["library"], door
