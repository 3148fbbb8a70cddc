"""The compiled match against a plain reading of Gatekeeper's rules, for any match and object.

The oracle is written from the description of ``match``, criterion by criterion,
without an index, a compilation or anything of the code under test.
"""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.webhook.constraint.policies import client, constraint, template
from webhook.constraint import enforcement
from webhook.constraint.review import AugmentedObject

NAMES = ["", "a", "ab", "abc", "b-a", "kube-x"]
PATTERNS = st.sampled_from(["a", "a*", "*a", "*a*", "*", "ab", "b*", "kube-*", ""])
LABELS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["", "1", "2"]))
KINDS = [("", "Pod"), ("", "Namespace"), ("apps", "Pod"), ("apps", "Namespace"), ("rbac", "Role")]

REQUIREMENTS = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["x", "y"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["", "1", "2"]), min_size=1),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["x", "y"]),
            "operator": st.sampled_from(["Exists", "DoesNotExist"]),
        }
    ),
)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(REQUIREMENTS, max_size=2)}
)
MATCHES = st.fixed_dictionaries(
    {},
    optional={
        "kinds": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "apiGroups": st.lists(st.sampled_from(["", "apps", "*"]), max_size=2),
                    "kinds": st.lists(st.sampled_from(["Pod", "Namespace", "*"]), max_size=2),
                },
            ),
            max_size=2,
        ),
        "scope": st.sampled_from(["*", "Cluster", "Namespaced", "namespaced", ""]),
        "namespaces": st.lists(PATTERNS, max_size=2),
        "excludedNamespaces": st.lists(PATTERNS, max_size=2),
        "labelSelector": SELECTORS,
        "namespaceSelector": SELECTORS,
        "name": PATTERNS,
        "source": st.sampled_from(["All", "Original", "Generated"]),
    },
)


@st.composite
def objects(draw):
    group, kind = draw(st.sampled_from(KINDS))
    metadata = {"name": draw(st.sampled_from(NAMES)), "labels": draw(LABELS)}
    if namespace := draw(st.sampled_from(NAMES)):
        metadata["namespace"] = namespace
    if prefix := draw(st.sampled_from(["", "a", "kube-"])):
        metadata["generateName"] = prefix
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


NAMESPACES = st.none() | st.builds(
    lambda name, labels: {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    },
    st.sampled_from(NAMES[1:]),
    LABELS,
)


def wildcard(pattern, name):
    if pattern.startswith("*") and pattern.endswith("*"):
        return pattern.strip("*") in name
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else pattern == name


def selected(selector, labels):
    for name, value in selector.get("matchLabels", {}).items():
        if labels.get(name) != value:
            return False
    for rule in selector.get("matchExpressions", []):
        name, operator = rule["key"], rule["operator"]
        holds = {
            "In": name in labels and labels[name] in rule.get("values", []),
            "NotIn": name not in labels or labels[name] not in rule.get("values", []),
            "Exists": name in labels,
            "DoesNotExist": name not in labels,
        }[operator]
        if not holds:
            return False
    return True


def oracle(match, obj, ns, source):  # the rules one after another, as they are described
    """True, False, or "error"."""
    group = obj["apiVersion"].rpartition("/")[0]
    kind, metadata = obj["kind"], obj["metadata"]
    is_namespace = (group, kind) == ("", "Namespace")
    own_namespace = metadata.get("namespace", "")
    kinds = match.get("kinds", [])
    if kinds and not any(
        (not entry.get("kinds") or "*" in entry["kinds"] or kind in entry["kinds"])
        and (not entry.get("apiGroups") or "*" in entry["apiGroups"] or group in entry["apiGroups"])
        for entry in kinds
    ):
        return False
    has_namespace = bool(own_namespace) or ns is not None
    if match.get("scope") == "Cluster" and not is_namespace and has_namespace:
        return False
    if match.get("scope") == "Namespaced" and (is_namespace or not has_namespace):
        return False
    name = metadata["name"]
    where = name if is_namespace else ns["metadata"]["name"] if ns else own_namespace or None
    patterns = match.get("namespaces", [])
    if patterns and where is not None and not any(wildcard(item, where) for item in patterns):
        return False
    patterns = match.get("excludedNamespaces", [])
    if patterns and where is not None and any(wildcard(item, where) for item in patterns):
        return False
    if "labelSelector" in match and not selected(match["labelSelector"], metadata["labels"]):
        return False
    if "namespaceSelector" in match and (is_namespace or has_namespace):
        if not is_namespace and ns is None:
            return "error"
        labels = metadata["labels"] if is_namespace else ns["metadata"]["labels"]
        if not selected(match["namespaceSelector"], labels):
            return False
    pattern, prefix = match.get("name", ""), metadata.get("generateName", "")
    generated = pattern.endswith("*") and wildcard(pattern, prefix)
    if pattern and not wildcard(pattern, name) and not generated:
        return False
    if match.get("source", "All") == "All":
        return True
    return "error" if not source else match["source"] == source


def verdict(match, obj, ns, source):
    subject = client(template(), constraint(match=match))
    answer = subject.snapshot.review(
        AugmentedObject(obj, ns, source=source), enforcement_point=enforcement.AUDIT
    )
    if not answer.results:
        return False
    return "error" if answer.results[0].autoreject else True


@given(MATCHES, objects(), NAMESPACES, st.sampled_from(["Original", "Generated", ""]))
@settings(max_examples=600, deadline=None)
def test_a_match_says_what_its_description_says(match, obj, ns, source):
    assert oracle(match, obj, ns, source) == verdict(match, obj, ns, source)


@given(st.lists(st.tuples(MATCHES, st.booleans()), min_size=2, max_size=6), objects(), NAMESPACES)
@settings(max_examples=200, deadline=None)
def test_constraints_that_share_matchers_match_as_they_do_alone(matches, obj, ns):
    """Equal criteria are asked once for all constraints: that must not show."""
    documents = []
    for number, (match, repeat) in enumerate(matches):
        documents.append(constraint(name=f"c{number}", match=match))
        if repeat:
            documents.append(
                constraint(name=f"d{number}", match={**match, "kinds": [{"kinds": ["Pod"]}]})
            )
    together = client(template(), *documents).snapshot.review(AugmentedObject(obj, ns))
    found = {result.constraint.name: result.autoreject for result in together.results}

    expected = {}
    for document in documents:
        alone = oracle(document["spec"]["match"], obj, ns, "Original")
        if alone is not False:
            expected[document["metadata"]["name"]] = alone == "error"
    assert expected == found


SUITE = """apiVersion: test.gatekeeper.sh/v1alpha1
kind: Suite
tests:
- {{name: t, template: template.json, constraint: constraint.json, cases: [{cases}]}}
"""


@pytest.mark.slow
@given(MATCHES, st.lists(objects(), min_size=1, max_size=12), st.lists(NAMESPACES, max_size=3))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_real_gator_says_the_same(program, tmp_path, match, things, namespaces):
    """A suite has a case for each object, and gator's messages are compared."""
    folder = tmp_path
    given_namespaces = {ns["metadata"]["name"]: ns for ns in namespaces if ns}
    (folder / "template.json").write_text(json.dumps(template()))
    (folder / "constraint.json").write_text(json.dumps(constraint(match=match)))
    inventory = []
    for number, ns in enumerate(given_namespaces.values()):
        (folder / f"ns{number}.json").write_text(json.dumps(ns))
        inventory.append(f"ns{number}.json")
    cases = []
    for number, obj in enumerate(things):
        (folder / f"o{number}.json").write_text(json.dumps(obj))
        cases.append(
            f"{{name: c{number}, object: o{number}.json, inventory: {json.dumps(inventory)}, "
            "assertions: [{violations: 99}]}"
        )
    (folder / "suite.yaml").write_text(SUITE.format(cases=", ".join(cases)))

    run = subprocess.run(
        [program("gator"), "verify", "suite.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    lines = [line for line in run.stdout.splitlines() if "got messages" in line]
    assert len(things) == len(lines), run.stdout + run.stderr
    for obj, line in zip(things, lines, strict=True):
        theirs = "error" if "unable to match" in line else "[no]" in line
        ns = given_namespaces.get(obj["metadata"].get("namespace", ""))
        assert theirs == verdict(match, obj, ns, "Original")
