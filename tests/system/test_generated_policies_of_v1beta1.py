"""Policies of the API server's own in the version that older ones have, at a real one that has it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import until
from tests.system.conftest import control_plane
from tests.system.generated import UNLIKE, constraint, refusal, template
from tests.system.replicas import Plane, Replica, config_map
from webhook.admission_policies.kinds import GROUP
from webhook.controllers.generate.objects import is_contained
from webhook.generation.plan import Enforced, Options, Planner
from webhook.generation.scope import PolicyScope

PLACE = f"/apis/{GROUP}/v1beta1"
OLDER = f"--emulated-version=1.33 --runtime-config={GROUP}/v1beta1=true"
"""The last release that has this version beside v1."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane that says that it is older, and is followed by nobody."""
    with control_plane(tmp_path_factory.mktemp("older"), "-apiserver-args", OLDER) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True], ids=["template", "constraint"])
def test_what_is_planned_for_v1beta1_is_stored_as_it_is_and_enforced(
    plane: Plane, *, alone: bool
) -> None:
    """In both modes: compared with what is stored, nothing is to be written again."""
    with Replica(plane, f"older-{alone}".lower(), "--operation=webhook,generate", NONE) as replica:
        replica.wait_ready()
        made = plane.put_template(template("Older", UNLIKE))
        put = plane.put_constraint(constraint("one", "Older", "bad"))
    plane.delete_pod(replica.name)
    planned = Planner(Options(alone=alone), "v1beta1").plan(
        {"older": made}, {("Older", "one"): Enforced(put, "deny")}, PolicyScope(), lambda _: ""
    )
    (policy,), (binding,) = planned.policies.values(), planned.bindings.values()
    kinds = {"validatingadmissionpolicies": policy, "validatingadmissionpolicybindings": binding}
    for plural, document in kinds.items():
        assert document["apiVersion"] == f"{GROUP}/v1beta1"
        stored = plane.api.request("POST", f"{PLACE}/{plural}", document)
        assert stored["apiVersion"] == f"{GROUP}/v1beta1"
        assert is_contained(document["spec"], stored["spec"])
    until(lambda: "denied: bad" in refusal(plane, config_map("bad")), "the API server refuses")
    assert not refusal(plane, config_map("good"))
    for plural, document in kinds.items():
        plane.api.request("DELETE", f"{PLACE}/{plural}/{name_of(document)}")
    until(lambda: not refusal(plane, config_map("bad")), "the API server has let go")
    plane.delete_templates()


NONE = "--default-create-vap-for-templates=false"
"""The replica makes the constraints' kind and no policy."""


def name_of(document: dict[str, Any]) -> str:
    """The name of an object."""
    return str(document["metadata"]["name"])
