"""The doors for programs of others: what they take, give and refuse."""

import asyncio
import datetime as dt
import doctest
import os
import subprocess
import sys
from collections import OrderedDict, UserDict
from decimal import Decimal
from types import MappingProxyType

import pytest
import yaml

import webhook
from tests.patience import PATIENCE_SECONDS
from tests.policies import config, exception, expansion_template
from tests.programs import ROOT
from tests.webhook.constraint.policies import constraint, pod, template
from webhook import (
    InvalidPoliciesError,
    NoVerdictError,
    Policies,
    PolicyWarning,
    Rego,
    Violations,
    WaddleError,
)
from webhook.rego import EvaluationError, RegoErrors


@pytest.fixture
def policies(tmp_path):
    (tmp_path / "p.yaml").write_text(yaml.safe_dump_all([template(), constraint()]))
    return Policies.load(tmp_path)


def test_the_examples_of_the_documentation_are_true(monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(ROOT / "docs" / "library.md"), module_relative=False)

    assert (failed, tried > 8) == (0, True)


def test_an_object_is_reviewed_as_the_server_does(policies):
    (found,) = policies.review(pod())

    assert found.denies
    assert found.message
    assert policies.constraints == (found.constraint,)


@pytest.mark.parametrize("value", [{}, {"kind": "Pod"}, {"apiVersion": 1, "kind": "Pod"}])
def test_a_dictionary_that_is_no_object_is_refused_and_never_passes(policies, value):
    with pytest.raises(ValueError, match="expected an object of Kubernetes"):
        policies.review(value)


@pytest.mark.parametrize("value", [None, "pod", [pod()]])
def test_what_is_no_dictionary_is_refused_and_never_passes(policies, value):
    with pytest.raises(TypeError, match="expected an object of Kubernetes"):
        policies.review(value)


@pytest.mark.parametrize("made", [OrderedDict, UserDict, MappingProxyType])
def test_what_is_like_a_dictionary_or_a_list_is_taken_for_one(policies, made):
    rego = Rego.compile("package p\nx contains k if some k in input.a")

    assert policies.review(made(pod()))
    assert rego.value("data.p.x", made({"a": (1, 2)})) == [1, 2]
    assert rego.query("data.d.a[_]", data=made({"d": made({"a": [1]})}))[0].values == (1,)


@pytest.mark.parametrize(
    "value", [{1}, b"a", dt.date(2026, 1, 1), Decimal(1), object(), {1: 2}, float("nan")]
)
def test_what_json_has_not_is_refused_with_its_place_and_never_passes(policies, value):
    refused = pytest.raises((TypeError, ValueError), match=r"^(input\.)?a\.b\[0\]: ")
    rego = Rego.compile("package p\nx contains k if some k in input.a")

    with refused:
        policies.review({**pod(), "a": {"b": [value]}})
    with refused:
        rego.value("data.p.x", {"a": {"b": [value]}})
    with refused:
        rego.query("input.a", {"a": {"b": [value]}})


def test_what_holds_itself_is_refused():
    holding = []
    holding.append(holding)

    with pytest.raises(ValueError, match="input is nested too deeply"):
        Rego.compile("package p\nx := input").value("data.p.x", holding)


def test_a_list_of_objects_is_refused_and_never_passes(policies):
    with pytest.raises(ValueError, match="a List holds objects: review each of its items"):
        policies.review({"apiVersion": "v1", "kind": "List", "items": [pod()]})


def test_a_document_that_no_constraint_is_about_is_refused_and_never_passes(policies):
    with pytest.raises(
        ValueError, match=r"no constraint is for json; there are some for admission"
    ):
        policies.review_document({"a": 1})


def test_files_that_cannot_be_used_are_all_reported(tmp_path):
    (tmp_path / "a.yaml").write_text("a: [")
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(template(rego="package p\nviolation[{")))

    with pytest.raises(InvalidPoliciesError) as error:
        Policies.load(tmp_path)

    assert len(error.value.faults) == 2
    assert "a.yaml" in str(error.value)


EXPANSION = expansion_template("e")
PODS = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
UNLABELLED = """package p
violation[{"msg": "no owner"}] { not input.review.object.metadata.labels.owner }
"""


def load(folder, *documents):
    (folder / "p.yaml").write_text(yaml.safe_dump_all(documents))
    return Policies.load(folder)


def test_what_an_object_implies_is_reviewed_with_it(tmp_path):
    policies = load(tmp_path, template(), constraint(match=PODS), EXPANSION)
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "shop"},
        "spec": {"template": {"spec": {}}},
    }

    (found,) = policies.review(deployment)
    assert found.message == "[Implied by e] no"
    with pytest.raises(NoVerdictError, match=r"spec\.template"):
        policies.review({**deployment, "spec": {}})


def test_what_is_reviewed_is_what_would_be_stored(tmp_path):
    mutator = {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "AssignMetadata",
        "metadata": {"name": "owner"},
        "spec": {
            "location": "metadata.labels.owner",
            "parameters": {"assign": {"value": "me"}},
        },
    }
    policies = load(tmp_path, template(rego=UNLABELLED), constraint(), mutator)

    assert policies.review(pod()) == []
    assert policies.review(pod(), operation="DELETE") != []


@pytest.mark.parametrize("effect", ["skip", "warn"])
def test_what_is_excused_is_reported_with_its_exception(effect):
    opened = constraint(name="closed")
    opened["metadata"]["annotations"] = {"waddle.dev/exceptions": "all"}
    agent = exception(
        "agent", "K8sDeny/closed", namespace="shop", match={"name": "web"}, effect=effect
    )
    policies = Policies.load(values=[template(), opened, agent])
    found = policies.review(pod("web", namespace="shop"))
    assert isinstance(found, Violations)
    [one] = [*found, *found.excused]
    assert (found == []) is (effect == "skip")
    assert one.excuse.title == "PolicyException shop/agent"
    assert (one.excuse.reason, one.excuse.effect) == (agent["spec"]["reason"], effect)
    assert one.actions == (("deny",) if effect == "skip" else ("warn",))
    other = asyncio.run(policies.review_async(pod("db", namespace="shop")))
    assert [(each.excuse, each.denies) for each in other] == [(None, True)]
    assert other.excused == ()


def test_a_namespace_that_a_config_excludes_is_spared(tmp_path):
    excluding = config(match=[{"excludedNamespaces": ["shop"], "processes": ["*"]}])
    policies = load(tmp_path, template(), constraint(), excluding)

    assert policies.review(pod()) == []
    assert policies.review(pod(namespace="other")) != []


def test_a_mutator_that_cannot_be_used_is_reported(tmp_path):
    broken = {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "Assign",
        "metadata": {"name": "a"},
        "spec": {},
    }
    with pytest.raises(InvalidPoliciesError, match="Assign a"):
        load(tmp_path, template(), constraint(), broken)


def request(**fields):
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", "kind": kind, **fields},
    }


BY_REQUEST = """package p
violation[{"msg": msg}] {
  input.review.operation == "UPDATE"
  input.review.userInfo.username == "ada"
  input.review.oldObject.metadata.labels.a != input.review.object.metadata.labels.a
  msg := input.review.namespace
}
"""


def test_an_admission_review_is_reviewed_as_the_request_that_it_holds(tmp_path):
    policies = load(tmp_path, template(rego=BY_REQUEST), constraint())
    changed = {"object": pod(labels={"a": "1"}), "oldObject": pod(labels={"a": "2"})}
    review = request(
        operation="UPDATE", userInfo={"username": "ada"}, namespace="elsewhere", **changed
    )

    assert [one.message for one in policies.review(review)] == ["elsewhere"]
    with pytest.raises(ValueError, match="neither an object nor an oldObject"):
        policies.review(request(operation="CREATE"))
    with pytest.raises(ValueError, match="has its own operation"):
        policies.review(review, operation="CREATE")


def test_a_request_can_be_played_with_its_old_object_and_user(tmp_path):
    policies = load(tmp_path, template(rego=BY_REQUEST), constraint())
    new, old = pod(labels={"a": "1"}), pod(labels={"a": "2"})

    (found,) = policies.review(new, operation="UPDATE", old_object=old, user={"username": "ada"})
    assert found.message == "shop"
    assert not policies.review(new, operation="UPDATE", old_object=old, user={"username": "bob"})
    assert not policies.review(new, operation="UPDATE", old_object=new, user={"username": "ada"})


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"operation": "create"}, "no operation 'create'"),
        ({"operation": "UPDATE"}, "give old_object"),
        ({"old_object": {"apiVersion": "v1", "kind": "Pod"}}, "say which by operation"),
        ({"operation": "UPDATE", "old_object": {}}, "old_object: expected an object"),
    ],
)
def test_a_request_that_nobody_would_send_is_refused(policies, given, word):
    with pytest.raises(ValueError, match=word):
        policies.review(pod(), **given)


@pytest.mark.parametrize(
    "given", [{"namespace": "shop"}, {"user": "ada"}, {"operation": "UPDATE", "old_object": "a"}]
)
def test_what_has_no_fields_is_refused(policies, given):
    with pytest.raises(TypeError, match="got str"):
        policies.review(pod(), **given)


def test_a_user_of_a_wrong_type_is_refused(policies):
    with pytest.raises(ValueError, match=r"userInfo\.username must be a string"):
        policies.review(pod(), user={"username": 1})


@pytest.mark.parametrize("version", ["v2", "1", "", None])
def test_a_version_of_rego_that_there_is_not_is_refused(version):
    with pytest.raises(ValueError, match="there are v0 and v1"):
        Rego.compile("package p", version=version)


def test_a_warning_of_a_value_names_its_place_among_them():
    unbound = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "none", "validationActions": ["Deny"]},
    }
    with pytest.raises(InvalidPoliciesError, match=r"^values\[0\]: ValidatingAdmissionPolicyBind"):
        Policies.load(values=[unbound])
    with pytest.raises(InvalidPoliciesError, match="the list of values has no constraint"):
        Policies.load(values=[])


def test_a_constraint_on_a_kind_that_there_is_not_is_warned_of(tmp_path):
    match = {"kinds": [{"apiGroups": [""], "kinds": ["pod"]}]}
    with pytest.warns(PolicyWarning, match="K8sDeny/c: .* is Pod meant"):
        policies = load(tmp_path, template(), constraint(match=match))

    assert policies.review(pod()) == []
    assert policies.unmatched == ("K8sDeny/c",)


def test_an_exception_that_excuses_nothing_any_more_is_warned_of():
    """It ended, or its constraint went: nothing told the reader why the object was refused."""
    ended = exception("e", "K8sDeny/c", namespace="shop", expires="2026-01-01T00:00:00Z")
    lost = exception("l", "K8sDeny/gone", match={"name": "p"})
    with pytest.warns(PolicyWarning) as warned:
        policies = Policies.load(values=[template(), constraint(), ended, lost])

    lines = [str(line.message) for line in warned]
    assert lines[0].startswith("values[2]: PolicyException shop/e: it ended at 2026-01-01")
    assert "values[3]: ClusterPolicyException l: there is no constraint K8sDeny/gone" in lines
    assert policies.review(pod())


def test_a_constraint_that_something_matched_is_not_unmatched(policies):
    assert policies.unmatched == policies.constraints
    policies.review(pod())
    assert policies.unmatched == ()


def test_a_template_that_needs_a_request_warns_once_where_there_is_none(tmp_path):
    rego = 'package p\nviolation[{"msg": "x"}] { input.review.operation == "CREATE" }'
    policies = load(tmp_path, template(rego=rego), constraint())

    assert policies.review(pod(), operation="CREATE")
    with pytest.warns(PolicyWarning, match=r"input\.review\.operation"):
        assert not policies.review(pod())
    assert not policies.review(pod())


def test_a_template_whose_violations_have_no_message_warns_once(tmp_path):
    rego = "package p\nviolation[x] { x := input.review.object.metadata }"
    policies = load(tmp_path, template(rego=rego), constraint())

    with pytest.warns(PolicyWarning, match='held an object without "msg"'):
        assert not policies.review(pod())
    assert not policies.review(pod())


def test_no_policy_is_an_error(tmp_path):
    with pytest.raises(InvalidPoliciesError, match="no constraint"):
        Policies.load(tmp_path)


def test_queries_give_json_and_errors_their_place():
    rego = Rego.compile(
        {
            "a.rego": "package a\ns contains x if some x in input\n",
            "b.rego": "package b\ny := data.k",
        }
    )

    assert rego.value("data.a.s", ["b", "a", "b"]) == ["a", "b"]
    assert rego.value("data.b.y", data={"k": {"v": 1}}) == {"v": 1}
    assert [answer.values for answer in rego.query("1 + 1")] == [(2,)]
    with pytest.raises(KeyError):
        rego.value("data.c.d")
    with pytest.raises(RegoErrors, match=r"policy\.rego:2"):
        Rego.compile("package p\nq := x")
    with pytest.raises(EvaluationError):
        Rego.compile("package p\nf(1) := 1\nf(1) := 2\nq := f(1)").value("data.p.q")


def test_the_package_has_its_types_and_imports_nothing_before_it_is_asked():
    assert (ROOT / "webhook" / "py.typed").is_file()
    assert not hasattr(webhook, "nothing_of_this_name")
    code = "import sys, webhook; print([n for n in sys.modules if n.startswith('webhook.')])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert run.stdout == "[]\n"


def test_policies_come_from_texts_and_values(policies):
    named = {"template.yaml": yaml.safe_dump(template())}
    listed = {"apiVersion": "v1", "kind": "List", "items": [template(), constraint()]}

    for made in (
        Policies.load(texts=named, values=[constraint()]),
        Policies.load(values=[template(), constraint()]),
        Policies.load(values=[listed]),
    ):
        assert made.review(pod()) == policies.review(pod())


def test_what_is_wrong_in_texts_and_values_is_reported_with_their_names():
    with pytest.raises(InvalidPoliciesError, match=r"a\.yaml: line 2: "):
        Policies.load(texts={"a.yaml": "a: ["})
    with pytest.raises(InvalidPoliciesError, match=r"values\[1\]: .*missing ConstraintTemplate"):
        Policies.load(values=[pod(), constraint()])
    with pytest.raises(WaddleError, match=r"values\[0\]: expected a dictionary"):
        Policies.load(values=[3])
    with pytest.raises(InvalidPoliciesError, match=r"a\.yaml has no constraint"):
        Policies.load(texts={"a.yaml": yaml.safe_dump(template())})


def test_a_loop_goes_on_while_a_review_is_made(policies):
    """The clock of the loop ticks during an evaluation that takes long."""
    numbers = "numbers.range(1, 1000)"
    slow = Rego.compile(
        f"package p\nx := count([i | some i in {numbers}; some j in {numbers}; i * j == 7])"
    )

    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.ensure_future(tick())  # noqa: TID251  # ended below
        await slow.value_async("data.p.x", seconds=PATIENCE_SECONDS)
        ticking.cancel()
        return ticks, await policies.review_async(pod()), await slow.query_async("1 + 1")

    ticks, found, answers = asyncio.run(main())

    assert ticks > 10
    assert found == policies.review(pod())
    assert answers == slow.query("1 + 1")


def test_whatever_goes_wrong_is_one_error(policies):
    rego = Rego.compile("package p\nx := 1")
    wrong = (
        lambda: Policies.load("no-such-folder"),
        lambda: policies.review(3),
        lambda: policies.review(pod(), operation="create"),
        lambda: policies.review_document({}, target="none"),
        lambda: Rego.compile("package"),
        lambda: Rego.compile("package p", version="v2"),  # type: ignore[arg-type]  # as a caller may
        lambda: rego.value("data.q"),
        lambda: rego.value("data.p.x", {1: 2}),
    )
    for call in wrong:
        with pytest.raises(WaddleError):
            call()


@pytest.mark.parametrize("sources", [None, 5, ["package p"], {"a.rego": None}, {1: "package p"}])
def test_sources_of_rego_are_texts(sources):
    with pytest.raises(ValueError, match=r"sources.*: expected a text"):
        Rego.compile(sources)
