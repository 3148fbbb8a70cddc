"""The doors for programs of others: what they take, give and refuse."""

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
from tests.programs import ROOT
from tests.webhook.constraint.policies import constraint, pod, template
from webhook import InvalidPoliciesError, Policies, Rego
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


def test_files_that_cannot_be_used_are_all_told(tmp_path):
    (tmp_path / "a.yaml").write_text("a: [")
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(template(rego="package p\nviolation[{")))

    with pytest.raises(InvalidPoliciesError) as error:
        Policies.load(tmp_path)

    assert len(error.value.faults) == 2
    assert "a.yaml" in str(error.value)


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
