"""Suites: read, filtered, run and asserted as gator does; messages are gator v3.23.1's."""

from __future__ import annotations

import pytest
import yaml

from tests.webhook.constraint.policies import (
    client,
    constraint,
    deployment,
    expands,
    pod,
    template,
)
from tests.webhook.mutation.documents import label
from webhook.policies.assertion import Assertion, AssertionFailure
from webhook.policies.suite import InvalidSuite, SuiteTest, find_suites
from webhook.policies.suite_filter import Filter, InvalidFilter
from webhook.policies.suite_result import summarize
from webhook.policies.suite_runner import SuiteRunner

COUNT = "unexpected number of violations: "


@pytest.mark.parametrize(
    ("assertion", "messages", "error"),
    [
        (Assertion(), ["a"], None),
        (Assertion(), [], f"{COUNT}got 0 violations but want at least 1: got messages []"),
        (Assertion("no"), [], None),
        (Assertion("no"), ["a"], f"{COUNT}got 1 violations but want none: got messages [a]"),
        (Assertion(2), ["a", "b"], None),
        (Assertion(0), [], None),
        (
            Assertion(1),
            ["a", "b"],
            f"{COUNT}got 2 violations but want exactly 1: got messages [a b]",
        ),
        (Assertion(1, "a+"), ["caat", "b"], None),
        (
            Assertion("yes", "^z"),
            ["az"],
            f'{COUNT}got 0 violations containing "^z" but want at least 1: got messages [az]',
        ),
        (
            Assertion("no", "a"),
            ["az"],
            f'{COUNT}got 1 violations containing "a" but want none: got messages [az]',
        ),
        (
            Assertion("maybe"),
            ["a"],
            (
                'invalid yaml: assertion.violation, if set, must be a nonnegative integer, "yes", or '
                '"no": got messages [a]'
            ),
        ),
        (
            Assertion(-1),
            [],
            (
                'invalid yaml: assertion.violation, if set, must be a nonnegative integer, "yes", or '
                '"no": got messages []'
            ),
        ),
    ],
)
def test_assertions_count_what_matches(assertion, messages, error):
    if error is None:
        assertion.check(messages)
    else:
        with pytest.raises(AssertionFailure) as failure:
            assertion.check(messages)
        assert error == str(failure.value)


def test_a_message_that_is_no_pattern_is_an_error():
    with pytest.raises(AssertionFailure, match="message contains invalid regular expression"):
        Assertion("no", "(").check(["a"])


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", {"labels/good", "labels/bad", "probes/good"}),
        ("labels", {"labels/good", "labels/bad"}),
        ("good", {"labels/good", "probes/good"}),
        ("labels//good", {"labels/good"}),
        ("^probes$//", {"probes/good"}),
        ("//bad", {"labels/bad"}),
        ("nothing", set()),
    ],
)
def test_a_filter_selects_by_test_and_case(text, selected):
    chosen = Filter(text)

    assert selected == {
        f"{test}/{case}"
        for test, case in [("labels", "good"), ("labels", "bad"), ("probes", "good")]
        if chosen.selects_test(SuiteTest(test, "", "")) or "//" not in text
        if chosen.selects_case(test, case)
    }


@pytest.mark.parametrize("text", ["a//b//c", "(", "a//("])
def test_a_filter_that_is_none_is_refused(text):
    with pytest.raises(InvalidFilter, match="invalid test filter"):
        Filter(text)


class Suites:
    """A folder with a suite of one test, whose parts a test changes."""

    def __init__(self, path):
        self.path = path
        self.write("template.yaml", template())
        self.write("constraint.yaml", constraint())
        self.write("pod.yaml", pod())

    def write(self, name, *documents):
        """Write a file of these."""
        (self.path / name).write_text(yaml.safe_dump_all(documents))

    def suite(self, *cases, **test):
        """Write a suite of one test."""
        document = {
            "name": "t",
            "template": "template.yaml",
            "constraint": "constraint.yaml",
            "cases": list(cases),
            **test,
        }
        self.write(
            "suite.yaml",
            {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": [document]},
        )

    def run(self, *cases, **test):
        """The result of that test."""
        self.suite(*cases, **test)
        (suite,) = find_suites(self.path)
        (result,) = SuiteRunner(lambda _: client(), Filter()).run(suite).tests
        return result

    def error(self, *cases, **test):
        """The error of the test or of its one case."""
        result = self.run(*cases, **test)
        return result.error or result.cases[0].error


def case(**fields):
    return {"name": "c", "object": "pod.yaml", "assertions": [{"violations": "yes"}], **fields}


@pytest.fixture
def suites(tmp_path):
    return Suites(tmp_path)


def test_a_case_that_holds_passes(suites):
    result = suites.run(case(), case(name="d", assertions=[{"violations": 1, "message": "no"}]))

    assert [item.name for item in result.cases] == ["c", "d"]
    assert not result.failed


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"object": ""}, "invalid Case: must define object"),
        ({"assertions": []}, "invalid Case: assertions must be non-empty"),
        ({"object": "none.yaml"}, "No such file or directory"),
        ({"object": "two.yaml"}, "object file must contain exactly one object"),
        ({"object": "empty.yaml"}, "defines no YAML objects"),
        ({"inventory": ["empty.yaml"]}, "defines no YAML objects"),
        ({"object": "broken.yaml"}, "line 2: "),
        ({"inventory": ["kindless.yaml"]}, "unable to add object to data.inventory: /v1, Kind= /x"),
        ({"object": "kindless.yaml"}, "it has no kind; add apiVersion and kind"),
        ({"object": "slashes.yaml"}, '"a/b/c" is not of the form group/version'),
        ({"object": "slash.json"}, "line 2: found unknown escape character"),
        ({"object": "pair.json"}, "line 1: found invalid Unicode character escape code"),
        ({"object": "half.json"}, "line 1: found invalid Unicode character escape code"),
        ({"object": "noreview.yaml"}, "missing an AdmissionRequest object"),
        ({"object": "emptyreview.yaml"}, "no object or oldObject found to review"),
        ({"object": "oddreview.yaml"}, "unknown fields in request: zork"),
        ({"object": "kindlessreview.yaml"}, "Object 'Kind' is missing"),
        ({"object": "badreview.yaml"}, "request.object must be an object"),
    ],
)
def test_a_case_that_cannot_be_run_says_why(suites, fields, error):
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    suites.write("two.yaml", pod(), pod("b"))
    suites.write("kindless.yaml", {"apiVersion": "v1", "metadata": {"name": "x"}})
    suites.write("slashes.yaml", {**pod(), "apiVersion": "a/b/c"})
    for name, text in [
        ("slash", '\\u0041\\\\\\n",\n"b": "\\/'),
        ("pair", "\\ud83d\\ude00"),
        ("half", "\\ud83d"),
    ]:
        (suites.path / f"{name}.json").write_text(f'{{"a": "{text}"}}')
    suites.write("noreview.yaml", review)
    suites.write("emptyreview.yaml", {**review, "request": {"uid": "x"}})
    suites.write("oddreview.yaml", {**review, "request": {"zork": 1, "object": pod()}})
    suites.write("kindlessreview.yaml", {**review, "request": {"object": {"a": 1}}})
    suites.write("badreview.yaml", {**review, "request": {"object": [1]}})
    (suites.path / "empty.yaml").write_text("# nothing\n")
    (suites.path / "broken.yaml").write_text("a: [")

    assert error in suites.error(case(**fields))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"template": ""}, "invalid Suite: missing template"),
        ({"constraint": ""}, "invalid Suite: missing constraint"),
        ({"template": "pod.yaml"}, "not a ConstraintTemplate"),
        ({"constraint": "pod.yaml"}, "not a Constraint"),
        ({"template": "none.yaml"}, "reading ConstraintTemplate from"),
        ({"expansion": "none.yaml"}, "reading ExpansionTemplate from"),
        ({"expansion": "pod.yaml"}, "not an Expansion Template"),
        (
            {"invalid": True},
            (
                "constraint should have failed schema validation: got no error but want schema "
                "validation failed"
            ),
        ),
    ],
)
def test_a_test_that_cannot_be_run_says_why(suites, fields, error):
    assert error in suites.error(case(), **fields)


def test_an_invalid_constraint_is_what_an_invalid_test_wants(suites):
    suites.write("constraint.yaml", constraint(match={"kinds": "x"}))
    assert not suites.run(invalid=True).failed

    suites.write("constraint.yaml", constraint(match={"zork": 1}))
    assert "unknown fields: [spec.match.zork] but want schema validation failed" in suites.error(
        invalid=True
    )


def test_expanded_resources_are_reviewed_too(suites):
    suites.write("expansion.yaml", expands())
    suites.write("constraint.yaml", constraint(match={"kinds": [{"kinds": ["Pod"]}]}))
    suites.write("deployment.yaml", deployment())
    suites.write("empty.yaml", {**deployment(), "spec": {}})

    result = suites.run(
        case(
            object="deployment.yaml",
            assertions=[{"violations": 1, "message": r"^\[Implied by pods\] no$"}],
        ),
        case(object="empty.yaml"),
        expansion="expansion.yaml",
    )

    assert result.cases[0].error == ""
    assert 'could not find source field "spec.template"' in result.cases[1].error


def test_inventory_is_there_for_its_case_alone(suites):
    rego = 'package p\nviolation[{"msg": n}] { data.inventory.namespace[_]["v1"].Pod[n] }'
    suites.write("template.yaml", template(rego=rego))
    suites.write("others.yaml", pod("a"), pod("b"))

    result = suites.run(
        case(assertions=[{"violations": "no"}]),
        case(inventory=["others.yaml"], assertions=[{"violations": 2}]),
        case(assertions=[{"violations": "no"}]),
    )

    assert [item.error for item in result.cases] == ["", "", ""]


def test_an_admission_review_is_a_request_and_delete_reviews_the_old_object(suites):
    rego = """package p
violation[{"msg": msg}] {
  msg := sprintf("%v %v %v", [
    input.review.operation, input.review.userInfo.username, input.review.object.metadata.name])
}"""
    suites.write("template.yaml", template(rego=rego))
    request = {
        "operation": "DELETE",
        "userInfo": {"username": "jane"},
        "oldObject": pod("gone"),
    }
    suites.write(
        "pod.yaml",
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request},
    )

    assert suites.error(case(assertions=[{"violations": 1, "message": "^DELETE jane gone$"}])) == ""


def test_skips_are_counted_and_printed_lines_kept(suites):
    rego = 'package p\nviolation[{"msg": "x"}] { print("seen", input.review.object.metadata.name) }'
    suites.write("template.yaml", template(rego=rego))

    result = suites.run(case(), case(name="later", skip=True))

    assert result.cases[0].printed == ("seen web",)
    assert result.cases[1].skipped
    (suite,) = find_suites(suites.path)
    summary = summarize([SuiteRunner(lambda _: client(), Filter("later")).run(suite)])
    assert (summary.passed, summary.skipped, summary.ok) == (0, 2, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tests: 3", "tests must be an array"),
        ("tests: [3]", r"tests\[0\] must be an object"),
        ("tests: [{name: 3}]", r"tests\[0\].name must be a string"),
        ("tests: [{invalid: yes}]", r"tests\[0\].invalid must be a boolean"),
        ("tests: [{cases: [{inventory: [3]}]}]", r"cases\[0\].inventory must be an array"),
        ("tests: [{cases: [{assertions: [{violations: [1]}]}]}]", r"assertions\[0\]: violations"),
        ("tests: [{cases: [{assertions: [{message: 3}]}]}]", "message must be a string"),
        (
            "tests: [{cases: [{assertions: [{violation: no}]}]}]",
            r'assertions\[0\]: unknown field "violation": there are message, violations',
        ),
        ("test: []", r'test: unknown field: is "tests" meant\?'),
        ("spec: {tests: []}", "spec: unknown field: there are apiVersion, kind, metadata, tests"),
        ("tests: [{case: []}]", r'tests\[0\].case: unknown field: is "cases" meant\?'),
        (
            "tests: [{cases: [{assertion: []}]}]",
            r'tests\[0\].cases\[0\].assertion: unknown field: is "assertions" meant\?',
        ),
        ("tests: [", "line "),
    ],
)
def test_a_suite_of_another_shape_is_refused_naming_the_place(tmp_path, text, message):
    path = tmp_path / "suite.yaml"
    path.write_text(f"apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\n{text}\n")

    with pytest.raises(InvalidSuite, match=message) as refusal:
        find_suites(tmp_path)

    assert str(path) in str(refusal.value)


def test_files_that_are_no_suites_are_passed_over(tmp_path):
    (tmp_path / "a.yaml").write_text("kind: Suite\napiVersion: other/v1\n# test.gatekeeper.sh\n")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "c.json").write_text("{")

    assert find_suites(tmp_path) == []


def test_every_suite_of_a_file_is_run(tmp_path):
    """Gator runs the first document alone, so that the others' failures never show."""
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    suite = "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\ntests: [{name: %s}]\n"
    (tmp_path / "all.yaml").write_text("---\n".join([other, suite % "one", suite % "two"]))

    suites = find_suites(tmp_path)

    assert [suite.tests[0].name for suite in suites] == ["one", "two"]
    assert [suite.line for suite in suites] == [5, 9]


def test_a_suite_in_another_encoding_is_read_or_named(tmp_path):
    text = "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\ntests: [{name: caf\u00e9}]\n"
    (tmp_path / "a.yaml").write_bytes(text.encode("utf-16"))
    (suite,) = find_suites(tmp_path)
    assert suite.tests[0].name == "caf\u00e9"

    (tmp_path / "b.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidSuite, match=r"b\.yaml: not UTF-8 at byte \d+"):
        find_suites(tmp_path)


MUTATED_SUITE = """
apiVersion: test.gatekeeper.sh/v1alpha1
kind: Suite
tests:
- name: labels
  mutators: mutators.yaml
  cases:
  - {name: owned, object: pod.yaml, mutated: owned.yaml}
  - {name: wrong, object: pod.yaml, mutated: wrong.yaml}
- name: then reviewed
  template: template.yaml
  constraint: constraint.yaml
  mutators: mutators.yaml
  cases:
  - {name: allowed, object: pod.yaml, mutated: owned.yaml, assertions: [{violations: no}]}
- name: without mutators
  template: template.yaml
  constraint: constraint.yaml
  cases:
  - {name: denied, object: pod.yaml, assertions: [{violations: 1}]}
  - {name: lost, object: pod.yaml, mutated: owned.yaml, assertions: [{violations: 1}]}
"""


def test_a_suite_says_what_its_mutators_should_make_of_an_object(tmp_path):
    unlabelled = pod("p", namespace="n")
    owned = {**unlabelled, "metadata": {**unlabelled["metadata"], "labels": {"owner": "me"}}}
    wrong = {**owned, "metadata": {**owned["metadata"], "labels": {"owner": "you"}}}
    rego = """package lacksowner
    violation[{"msg": "no owner"}] { not input.review.object.metadata.labels.owner }"""
    files = {
        "suite.yaml": None,
        "pod.yaml": unlabelled,
        "owned.yaml": owned,
        "wrong.yaml": wrong,
        "mutators.yaml": label("owner", "owner", "me"),
        "template.yaml": template("LacksOwner", rego),
        "constraint.yaml": constraint("LacksOwner", "c"),
    }
    for name, document in files.items():
        text = MUTATED_SUITE if document is None else yaml.safe_dump(document)
        (tmp_path / name).write_text(text)
    (suite,) = find_suites(tmp_path)

    result = SuiteRunner(lambda _: client(), Filter("")).run(suite)

    errors = {case.name: case.error for test in result.tests for case in test.cases}
    assert [test.error for test in result.tests] == ["", "", ""]
    assert errors == {
        "owned": "",
        "wrong": "the mutated object is not the one expected, which this patch would make of it: "
        '[{"op":"replace","path":"/metadata/labels/owner","value":"you"}]',
        "allowed": "",
        "denied": "",
        "lost": "invalid Case: mutated is only for tests with mutators, a MutatingAdmissionPolicy or MutatingPolicy",
    }


def test_mutators_that_cannot_be_used_fail_the_test(tmp_path):
    (tmp_path / "suite.yaml").write_text(MUTATED_SUITE)
    broken = label("owner", "owner", "me")
    broken["spec"]["location"] = "metadata..labels"
    (tmp_path / "mutators.yaml").write_text(yaml.safe_dump(broken))
    (suite,) = find_suites(tmp_path)

    result = SuiteRunner(lambda _: client(), Filter("labels")).run(suite)

    assert "invalid location format for AssignMetadata owner" in result.tests[0].error
