"""Generated objects, compared with those in the cluster."""

from webhook.controllers.generate.objects import (
    REWRITES_MAX,
    WHILE_SECONDS,
    Rewrites,
    is_contained,
    is_owned_by,
)


def document(spec, uid="u", api="templates.gatekeeper.sh/v1", kind="ConstraintTemplate"):
    owner = {"apiVersion": api, "kind": kind, "name": "n", "uid": uid, "controller": True}
    return {"metadata": {"name": "gatekeeper-n", "ownerReferences": [owner]}, "spec": spec}


def test_a_default_that_the_api_server_fills_in_is_no_difference():
    desired = {"matchConstraints": {"resourceRules": [{"scope": "*"}]}}
    current = {
        "matchConstraints": {"resourceRules": [{"scope": "*", "new": 1}]},
        "later": "Default",
    }
    assert is_contained(desired, current)
    assert not is_contained(current, desired)
    assert is_contained({"default": 1}, {"default": 1.0})
    assert not is_contained({"default": 1}, {"default": True})


def test_what_we_decide_and_did_not_say_is_a_difference():
    for field in ("paramKind", "matchConditions", "variables", "auditAnnotations", "paramRef"):
        assert not is_contained({"a": 1}, {"a": 1, field: "x"})


def test_what_somebody_else_changed_is_put_right_and_keeps_what_is_not_ours():
    current = document({"a": 2})
    current["metadata"]["labels"] = {"x": "y"}
    found = Rewrites()(document({"a": 1}), current)
    assert found is not None
    assert found["spec"] == {"a": 1}
    assert found["metadata"] == current["metadata"]


def test_an_object_of_the_same_name_that_another_owns_or_nobody_is_left_alone():
    rewrites = Rewrites()
    assert rewrites(document({"a": 1}), document({"a": 2}, uid="another")) is None
    assert rewrites(document({"a": 1}), {"metadata": {"name": "gatekeeper-n"}, "spec": {}}) is None


def test_two_that_disagree_do_not_write_for_ever():
    now = 0.0
    rewrites = Rewrites(lambda: now)
    desired, current = document({"a": 1}), document({"a": 2})
    # A plan that is made anew has the same in another value.
    written = [rewrites(document({"a": 1}), current) for _ in range(20)]
    assert sum(one is not None for one in written) == REWRITES_MAX
    assert rewrites.yields("gatekeeper-n")
    assert rewrites(document({"a": 3}), current) is not None, "what is new is written"
    now = WHILE_SECONDS + 1
    assert rewrites(desired, current) is not None


def test_only_what_a_known_template_or_constraint_controls_is_ours_to_delete():
    assert is_owned_by(document({}), {"u"})
    assert is_owned_by(document({}, api="constraints.gatekeeper.sh/v1beta1", kind="K"), {"u"})
    assert not is_owned_by(document({}), {"v"})
    assert not is_owned_by(document({}, api="apps/v1", kind="Deployment"), {"u"})
    assert not is_owned_by({"metadata": {"name": "gatekeeper-n"}}, {"u"})
