"""References to artifacts in a registry."""

from __future__ import annotations

import pytest

from webhook.registry.errors import InvalidReference
from webhook.registry.reference import parse_reference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("a.example/b", "a.example", "b", "latest", ""),
        ("oci://a.example/b/c:v1", "a.example", "b/c", "v1", ""),
        ("a.example:5000/b:v1", "a.example:5000", "b", "v1", ""),
        ("localhost/b", "localhost", "b", "latest", ""),
        ("[::1]:5000/b", "[::1]:5000", "b", "latest", ""),
        (f"a.example/b@{DIGEST}", "a.example", "b", "", DIGEST),
        (f"a.example/b:v1@{DIGEST}", "a.example", "b", "v1", DIGEST),
        ("nginx", "docker.io", "library/nginx", "latest", ""),
        ("team/app:1", "docker.io", "team/app", "1", ""),
        ("docker.io/nginx", "docker.io", "library/nginx", "latest", ""),
        ("index.docker.io/team/app", "docker.io", "team/app", "latest", ""),
    ],
)
def test_a_reference_is_read_as_docker_reads_it(text, registry, repository, tag, digest):
    reference = parse_reference(text)

    assert (reference.registry, reference.repository) == (registry, repository)
    assert (reference.tag, reference.digest) == (tag, digest)
    assert parse_reference(str(reference)) == reference


def test_docker_hub_answers_at_a_host_of_its_own():
    assert parse_reference("nginx").host == "registry-1.docker.io"
    assert parse_reference("a.example/b").host == "a.example"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example/",
        "a.example/B",
        "a.example/../b",
        "a.example/b:",
        "a.example/b:a b",
        "a.example/b@sha256:abc",
        "a.example/b@md5:" + "a" * 32,
        "a.example/b@",
        "http://a.example/b",
        "a.example/b?x=y",
        "user@a.example/b",
        "a.example:99999999/b",
        "a.example/" + "b" * 2000,
        "a.example/b\n/c",
    ],
)
def test_what_names_nothing_is_refused(text):
    with pytest.raises(InvalidReference):
        parse_reference(text)
