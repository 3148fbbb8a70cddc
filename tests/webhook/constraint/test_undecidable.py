"""A constraint for which its own object leaves no time: the second table of docs/isolation.md."""

import time
from typing import Any, NamedTuple

import pytest
import yaml

from tests import policies
from tests.behaviour.serving import review, thing
from tests.isolation_table import ENDLESS, PAGE, actions
from webhook.api.admission import read_review
from webhook.constraint.breaker import SIZE_USUAL, Guard
from webhook.constraint.causes import ON_UNDECIDABLE
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.enforcement import AUDIT, WEBHOOK
from webhook.constraint.errors import InvalidConstraint, InvalidTemplate
from webhook.constraint.isolation import ON_UNDECIDABLE_ANNOTATION, Isolation
from webhook.constraint.limits import UNTIL_NOW, Budget, Limits
from webhook.constraint.result import Responses
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget


class Cell(NamedTuple):
    """A row of the table."""

    on_undecidable: str
    action: str
    admission: str
    spared: str
    audit: str
    metric: str


def cells() -> list[Cell]:
    """The rows."""
    rows = [
        Cell(*(field.strip() for field in line.strip("|").split("|")))
        for line in PAGE.read_text().splitlines()
        if line.count("|") == len(Cell._fields) + 1
    ]
    found = [row for row in rows if row.on_undecidable in ON_UNDECIDABLE]
    assert len(found) == 6, "the table has another number of rows"
    return found


def template(source: str, **annotations: str) -> dict[str, Any]:
    """A template of a policy."""
    return policies.template("Endless", source, metadata={"annotations": annotations})


def constraint(action: str, name: str = "a", **annotations: str) -> dict[str, Any]:
    """Returns the constraint."""
    metadata = {"annotations": annotations}
    return policies.constraint("Endless", name, metadata=metadata, **actions(action))


def client(*documents: dict[str, Any], default: str = "refuse") -> Client:
    """A client that spares kube-system."""
    isolation = Isolation(
        on_undecidable=default,  # type: ignore[arg-type]  # a row's
        spared_namespaces=frozenset({"kube-system"}),
    )
    made = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()], isolation=isolation)
    for document in documents:
        if document["kind"] == "ConstraintTemplate":
            made.add_template(document)
        else:
            made.add_constraint(document)
    return made


def found(
    of: Client,
    namespace: str = "default",
    *,
    limits: Limits | None = None,
    point: str = WEBHOOK,
    size: int = 4 * SIZE_USUAL,
) -> Responses:
    """Returns the findings about an object larger than usual."""
    request = read_review(review(thing("ConfigMap", namespace=namespace)))._replace(size=size)
    if limits is None:
        limits = Limits(time.monotonic() + 60, budget=Budget.of(0.005, guard=Guard()))
    return of.snapshot.review(AugmentedReview(request), enforcement_point=point, limits=limits)


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: f"{cell.on_undecidable}-{cell.action}")
@pytest.mark.parametrize("by", ["flag", "template", "constraint"])
def test_every_row_of_the_table_holds(cell: Cell, by: str) -> None:
    other = "ignore" if cell.on_undecidable == "refuse" else "refuse"
    says = {ON_UNDECIDABLE_ANNOTATION: cell.on_undecidable}
    overridden = {ON_UNDECIDABLE_ANNOTATION: other}
    subject = client(
        template(
            ENDLESS, **(says if by == "template" else overridden if by == "constraint" else {})
        ),
        constraint(cell.action, **(says if by == "constraint" else {})),
        default=cell.on_undecidable if by == "flag" else other,
    )
    (item,) = found(subject).undecided
    assert (item.cause, item.answer) == ("object", cell.admission)
    assert found(subject, "kube-system").undecided[0].answer == cell.spared
    at_audit = found(subject, point=AUDIT).undecided[0]
    assert (at_audit.cause, at_audit.answer) == ("overrun", cell.audit)
    late = found(subject, limits=UNTIL_NOW)
    assert [(item.cause, item.answer) for item in late.undecided] == [("deadline", cell.admission)]
    assert late.deadline_exceeded == (cell.action == "deny")
    assert cell.metric == cell.admission  # the label is the answer


def test_an_overrun_of_an_object_of_usual_size_is_the_policy_s_fault() -> None:
    subject = client(template(ENDLESS), constraint("deny"), default="ignore")
    (item,) = found(subject, size=SIZE_USUAL).undecided
    assert (item.cause, item.answer) == ("overrun", "reject")


def test_one_evaluation_leaves_time_for_what_others_deny() -> None:
    """An evaluation takes half of the remaining time, and not all of it."""
    denying = yaml.safe_load(
        yaml.safe_dump(template('package p\nviolation[{"msg": "no"}] { true }'))
    )
    denying["metadata"]["name"] = "quick"
    denying["spec"]["crd"]["spec"]["names"]["kind"] = "Quick"
    subject = client(
        template(ENDLESS), constraint("deny"), denying, {**constraint("deny"), "kind": "Quick"}
    )
    whole = Budget.of(60.0, guard=Guard())
    responses = found(subject, limits=Limits(time.monotonic() + 2, budget=whole))
    assert [result.msg for result in responses.results] == ["no"]
    assert [(item.constraint.kind, item.cause) for item in responses.undecided] == [
        ("Endless", "deadline")
    ]
    assert responses.deadline_exceeded


def test_an_annotation_of_another_value_is_refused() -> None:
    wrong = {ON_UNDECIDABLE_ANNOTATION: "deny"}
    with pytest.raises(InvalidTemplate, match="must be one of refuse, ignore"):
        client(template(ENDLESS, **wrong))
    with pytest.raises(InvalidConstraint, match="must be one of refuse, ignore"):
        client(template(ENDLESS), constraint("deny", **wrong))
