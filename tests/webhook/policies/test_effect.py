"""Effects of policies on existing objects."""

from typing import Any

from tests.policies import expansion_template
from tests.webhook.constraint.policies import client, constraint, template
from webhook.constraint.expansion import Expansion, read_expansion_template
from webhook.policies.effect import EXAMPLES_MAX, Effect, concerned, effect_on_data, only
from webhook.review.policy_set import Exclusions, PolicySet

NAMED = """package p
violation[{"msg": msg}] { msg := sprintf("%v", [input.review.object.metadata.name]) }"""


def config_map(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"c{number:03}", "namespace": "shop"},
    }


def test_what_comes_and_what_goes_is_counted_and_the_first_that_come_are_shown() -> None:
    """For the constraints concerned alone; by the data that a snapshot has."""
    count = EXAMPLES_MAX + 5
    before, after = client(), client()
    for one in (before, after):
        one.add_template(template(rego='package p\nviolation[{"msg": "all"}] { true }'))
        one.add_constraint(constraint())
        for number in range(count):
            one.add_data(config_map(number))
    after.add_template(template(rego=NAMED))
    keys = concerned([template()], [constraint_key()])
    effect, whole = effect_on_data(
        PolicySet(only(before, keys)), PolicySet(only(after, keys)), keys, 60
    )
    assert whole
    assert effect.objects == count
    found = effect.constraints[constraint_key()]
    assert (found.before, found.after, found.added, found.removed) == (count,) * 4
    assert len(found.examples) == EXAMPLES_MAX
    assert found.examples[0].object == "ConfigMap c000"
    assert "examples" not in effect.document(examples=False)["constraints"][0]


def test_an_effect_that_takes_too_long_says_that_it_is_not_whole() -> None:
    """The effect ends, despite the number of objects."""
    one = client()
    one.add_data(config_map(1))
    effect, whole = effect_on_data(PolicySet(one.snapshot), PolicySet(one.snapshot), (), -1)
    assert not whole
    assert effect.objects == 0


def test_what_synced_objects_imply_is_part_of_the_effect() -> None:
    """By the ExpansionTemplates in force, and without what a Config takes out of the audit."""
    expansion = read_expansion_template(expansion_template("e"))
    before, after = client(), client()
    match = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
    after.add_template(template())
    after.add_constraint(constraint(match=match))
    for namespace in ("shop", "spared"):
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "namespace": namespace},
            "spec": {"template": {"spec": {}}},
        }
        before.add_data(deployment)
    exclusions = Exclusions(audit=lambda name: name == "spared")
    old, new = (
        PolicySet(one.snapshot, expansion=Expansion([expansion]), exclusions=exclusions)
        for one in (before, after)
    )
    effect, _ = effect_on_data(old, new, [constraint_key()], 60)
    assert effect.constraints[constraint_key()].added == 1
    [example] = effect.constraints[constraint_key()].examples
    assert example.message == "[Implied by e] no"


def test_a_template_concerns_its_constraints_and_no_others() -> None:
    """A constraint concerns itself."""
    other = ("Other", "x")
    assert concerned([template()], [constraint_key(), other]) == {constraint_key()}
    assert concerned([constraint()], [constraint_key(), other]) == {constraint_key()}
    assert Effect([other]).document()["constraints"][0]["name"] == "x"


def constraint_key() -> tuple[str, str]:
    return constraint()["kind"], constraint()["metadata"]["name"]
