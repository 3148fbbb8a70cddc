"""A violation points to the line of the field that its message or details name."""

import json

import pytest
import yaml

from webhook.policies.field_lines import FieldLines

TEXT = """\
# A remark
apiVersion: v1
kind: Pod
metadata:
  name: a
  labels:
    app.kubernetes.io/name: web
spec:
  hostNetwork: true
  containers:
    - name: app
      image: one:1
      securityContext:
        privileged: true
    - name: side
      image: two:1
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: b}
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: app
          image: three:1
"""
POD, DEPLOYMENT = yaml.safe_load_all(TEXT)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ('container "app": spec.containers[0].securityContext.privileged must not be true', 14),
        ("spec.containers[1].image is bad", 16),
        ("spec.containers[side].image: a name in place of a number leads nowhere", 10),
        ('spec.containers["side"].image: a name leads to who has it', 16),
        ("spec.containers[1].securityContext.privileged is missing: its container's", 15),
        ("spec.containers[7].image: no such container", 10),
        ("spec.hostNetwork. And more.", 9),
        ("spec.hostPID must be false: it is not there", 8),
        ("/spec/containers/0/image, as a pointer", 12),
        ('metadata.labels["app.kubernetes.io/name"] is bad', 7),
        ("/metadata/labels/app.kubernetes.io~1name is bad", 7),
        ("nginx.latest of registry.example/shop/web:1.2 is no field", 2),
        ("no path at all", 2),
        ("metadata.name, and spec.containers[0].image: the deepest", 12),
        ("", 2),
    ],
)
def test_a_path_in_the_message_leads_to_its_line(message, line):
    assert FieldLines(TEXT).line(2, POD, message, None) == line


@pytest.mark.parametrize(
    ("details", "line"),
    [
        ({"field": "spec.containers[0].image"}, 12),
        ({"path": ["spec", "containers", 1, "image"]}, 16),
        ({"more": [{"at": "/spec/hostNetwork"}]}, 9),
        ({"missing": "owner", "found": [1, 2]}, 2),
    ],
)
def test_so_does_one_in_the_details(details, line):
    assert FieldLines(TEXT).line(2, POD, "no path", details) == line


def test_what_an_object_implies_has_its_paths_below_the_template():
    message = "[Implied by e] spec.containers[0].image is bad"

    assert FieldLines(TEXT).line(18, DEPLOYMENT, message, None) == 27
    assert FieldLines(TEXT).line(18, DEPLOYMENT, "spec.replicas is 1", None) == 22


def test_objects_of_lists_and_reviews_are_found():
    listed = {"apiVersion": "v1", "kind": "List", "items": [DEPLOYMENT, POD]}
    text = json.dumps(listed, indent=2)
    expected = text[: text.index('"one:1"')].count("\n") + 1
    assert FieldLines(text).line(1, POD, "spec.containers[0].image", None) == expected

    review = {"kind": "AdmissionReview", "request": {"uid": "u", "object": POD}}
    text = yaml.safe_dump(review)
    expected = text[: text.index("one:1")].count("\n") + 1
    assert FieldLines(text).line(1, POD, "spec.containers[0].image", None) == expected


@pytest.mark.parametrize("text", ["", "a: [", "\tx = 1", "[" * 5000, "- 1\n- 2\n", "3"])
def test_a_file_of_another_form_has_no_fields(text):
    assert FieldLines(text).line(7, POD, "spec.containers[0].image", {"a": "spec.b"}) in (7, 1)
