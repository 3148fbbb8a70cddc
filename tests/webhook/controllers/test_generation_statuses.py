"""Statuses and metrics of a plan, by the state of its objects."""

from typing import Any

import pytest

from tests.webhook.generation.planned import constraint, plan_of, template
from webhook.controllers.generate.statuses import GenerationReport, generation_statuses
from webhook.controllers.object_faults import TEMPLATES
from webhook.generation.plan import Options

OF_TEMPLATE, OF_CONSTRAINT = (TEMPLATES, "named"), ("Named", "one")


def report(
    policy: tuple[str, str],
    binding: tuple[str, str],
    before: Any = None,
    *,
    alone: bool = False,
    source: Any = None,
    **plan: Any,
) -> GenerationReport:
    of_template = template(**(source or {}))
    made = plan_of(of_template, constraint(), options=Options(alone=alone), **plan)
    return generation_statuses(
        made, lambda *_: policy, lambda *_: binding, before or {}, alone=alone
    )


def point(state: str, **more: Any) -> dict[str, Any]:
    entry = {"enforcementPoint": "vap.k8s.io", "state": state, "observedGeneration": 2, **more}
    return {"enforcementPointsStatus": [entry]}


def test_what_is_generated_is_said_to_be() -> None:
    described = report(("generated", ""), ("generated", ""))
    assert described.statuses == {
        OF_TEMPLATE: {"vapGenerationStatus": {"state": "generated", "observedGeneration": 3}},
        OF_CONSTRAINT: point("generated"),
    }
    assert described.policies == described.bindings == {("active",): 1.0, ("error",): 0.0}


@pytest.mark.parametrize("plan", [{}, {"waits": lambda _: "until later"}])
def test_a_policy_that_the_api_server_refuses_is_reported_at_its_constraints_too(plan: Any) -> None:
    """Their bindings are not written, so nothing else would ever be said of them."""
    described = report(("error", "refused: why"), ("", ""), **plan)
    entry = described.statuses[OF_TEMPLATE]["vapGenerationStatus"]
    assert entry["warning"] == "ValidatingAdmissionPolicy is not generated: refused: why"
    message = "its template has no policy: refused: why"
    assert described.statuses[OF_CONSTRAINT] == point("error", message=message)
    assert described.policies == described.bindings == {("active",): 0.0, ("error",): 1.0}


@pytest.mark.parametrize(
    ("policy", "source", "counted"),
    [
        (("generated", ""), {}, (1.0, 0.0)),
        (("error", "why"), {}, (0.0, 1.0)),
        (("generated", ""), {"validations": []}, (0.0, 1.0)),
        (("", ""), {}, (0.0, 0.0)),
    ],
)
def test_policies_of_single_constraints_are_counted_likewise(
    policy: tuple[str, str], source: Any, counted: tuple[float, float]
) -> None:
    described = report(policy, ("generated", ""), alone=True, source=source)
    assert OF_TEMPLATE not in described.statuses
    assert (described.policies["active",], described.policies["error",]) == counted


def test_what_is_being_written_says_what_it_said_before() -> None:
    before = report(("generated", ""), ("generated", "")).statuses
    assert report(("", ""), ("", ""), before).statuses == before
    assert report(("", ""), ("", "")).statuses == {}


def test_a_binding_that_waits_says_for_what() -> None:
    described = report(("generated", ""), ("", ""), waits=lambda _: "until later")
    assert described.statuses[OF_CONSTRAINT] == point("waiting", message="until later")
