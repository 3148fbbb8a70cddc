"""PolicyRevision: what is kept of an object comes back as it was, and nothing else is believed."""

import base64
import gzip
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.api.revision import (
    CONTENT_BYTES_MAX,
    InvalidRevision,
    digest_of,
    name_of,
    read_revision,
    revision_object,
)

ANNOTATION = "metadata.gatekeeper.sh/requires-sync-data"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


def template(spec=None, **metadata):
    return {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "k8salways", "uid": "t", "generation": 3, **metadata},
        "spec": {"a": 1} if spec is None else spec,
    }


def kept(document):
    """The revision of an object, as it is read back from the API server."""
    made = revision_object(document, digest_of(document))
    return read_revision(made | {"metadata": made["metadata"] | {"creationTimestamp": "now"}})


@given(st.dictionaries(st.text(max_size=8), JSON), st.integers(0, 3000))
def test_whatever_was_kept_comes_back(spec, padding):
    document = template({**spec, "padding": "x" * padding})

    assert kept(document).document(document) == document | {
        "metadata": document["metadata"] | {"annotations": {}}
    }


def test_the_rest_of_the_metadata_is_that_of_now():
    before = template(annotations={ANNOTATION: "[]", "note": "old"}, labels={"a": "old"})
    now = template({"a": 2}, annotations={"note": "new"}, labels={"a": "new"}, generation=9)
    found = kept(before).document(now)

    assert found["spec"] == {"a": 1}
    assert found["metadata"]["generation"] == 3
    assert found["metadata"]["labels"] == {"a": "new"}
    assert found["metadata"]["annotations"] == {ANNOTATION: "[]", "note": "new"}


def test_a_digest_is_of_what_decides_in_any_order():
    assert digest_of(template({"a": 1, "b": 2})) == digest_of(template({"b": 2, "a": 1}))
    assert digest_of(template()) == digest_of(template(annotations={"note": "x"}, generation=4))
    assert digest_of(template()) != digest_of(template(annotations={ANNOTATION: "[]"}))
    assert digest_of(template()) != digest_of(template({"a": 2}))


def test_every_replica_makes_the_same_object_and_another_for_another_subject():
    assert revision_object(template(), "d") == revision_object(template(), "d")
    others = [template(), template(uid="u"), template(generation=4), template(name="other")]
    assert len({name_of(item, digest_of(item)) for item in others}) == len(others)


def test_a_name_is_one_that_the_api_server_takes():
    long = template(name=f"{'x' * 199}.{'y' * 53}")
    name = name_of(long | {"kind": "K8sAlways"}, digest_of(long))
    assert len(name) <= 253
    assert name.split("-")[1] == "3"
    assert name[:200].rstrip("-.") == name[:200].rstrip("-.").lower()


def test_large_content_is_packed():
    small, large = kept(template()), kept(template({"rego": "allow " * 1000}))
    assert (small.encoding, small.content) == ("", '{"spec":{"a":1}}')
    assert large.encoding == "gzip"
    assert len(large.content) < 200


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"content": '{"spec":{"a":2}}'}, "not what its digest says"),
        ({"content": "{"}, "cannot be read"),
        ({"encoding": "gzip", "content": "no base64!"}, "cannot be read"),
        ({"encoding": "gzip", "content": "aGFsZg=="}, "cannot be read"),
        ({"encoding": "zstd"}, "unknown encoding"),
        ({"content": "[]", "digest": "4f53cda18c2baa0c"}, "has no spec"),
    ],
)
def test_a_revision_that_somebody_changed_is_refused(change, reason):
    made = revision_object(template(), digest_of(template()))
    broken = read_revision(made | {"spec": made["spec"] | change})

    with pytest.raises(InvalidRevision, match=reason):
        broken.document(template())


def test_content_that_unpacks_without_end_is_refused():
    bomb = base64.b64encode(gzip.compress(b" " * (CONTENT_BYTES_MAX + 1))).decode()
    made = revision_object(template(), "d")
    made["spec"] |= {"encoding": "gzip", "content": bomb}

    with pytest.raises(InvalidRevision, match="larger than"):
        read_revision(made).document(template())


def test_an_object_without_what_it_must_have_is_refused():
    with pytest.raises(InvalidRevision, match="x cannot be read"):
        read_revision({"metadata": {"name": "x"}, "spec": {"generation": 1}})


@pytest.mark.parametrize("annotations", [["a"], [], None, "a", 1, {"a": 1}, {"a": None}])
def test_annotations_that_are_none_are_no_bug_of_ours(annotations):
    """A list of them ended in an internal error of the policy."""
    content = json.dumps({"annotations": annotations, "spec": {}})
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    made = revision_object(template(), digest)
    made["spec"] |= {"encoding": "", "content": content}

    with pytest.raises(InvalidRevision, match="its annotations are not texts"):
        read_revision(made).document(template())
