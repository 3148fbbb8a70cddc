"""The read set of a template in CEL."""

import pytest

from tests.policies import template
from webhook.constraint.drivers.reads import dependencies_of
from webhook.constraint.template import read_template


def paths(expression, parameters=None, **source):
    cel = {"validations": [{"expression": expression}], **source}
    read = dependencies_of(read_template(template("P", cel=cel)), parameters)
    assert read.deterministic
    return [path for path in read.paths if path != "review.operation"]


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        ("!has(object.spec.hostPID)", ["review.object.spec.hostPID"]),
        (
            "object.spec.containers.all(c, c.image.startsWith('a'))",
            ["review.object.spec.containers[*].image"],
        ),
        ("object.?spec.?x.orValue(1) == 1", ["review.object.spec.x"]),
        ("object.spec == oldObject.spec", ["review.object.spec", "review.oldObject.spec"]),
        ("'a' in object.m", ["review.object.m[*]"]),
        ("object.m['k'] == variables.params.x", ["parameters.x", "review.object.m.k"]),
        ("request.requestKind.kind == 'Pod'", ["review.kind.kind"]),
        ("size(object.xs + object.ys) == 1", ["review.object.xs[*]", "review.object.ys[*]"]),
        ("variables.anyObject.a == 1", ["review.object.a", "review.oldObject.a"]),
        ("has(variables.inventory.cluster)", ["data.inventory.cluster"]),
        ("object.xs.map(x, x.y).exists(y, y.z == 1)", ["review.object.xs[*].y.z"]),
        # What is empty is null to expressions, or not there.
        ("namespaceObject == null", ["review.namespaceObject[*]"]),
        (
            "has(namespaceObject.metadata.labels)",
            ["review.namespaceObject[*]", "review.namespaceObject.metadata.labels[*]"],
        ),
        ("has(request.userInfo.groups)", ["review.userInfo.groups[*]"]),
        ("size(dyn(request.userInfo)) == 1", ["review.userInfo[*][*]"]),
        ("request.userInfo.username == 'a'", ["review.userInfo.username"]),
        ("has(object.metadata.labels)", ["review.object.metadata.labels"]),
    ],
)
def test_the_paths_that_a_template_reads(expression: str, read: list[str]) -> None:
    assert paths(expression) == read


@pytest.mark.parametrize("part", ["[?object.spec]", "{?'a': object.spec}"])
def test_an_error_that_shows_a_value_hangs_on_all_of_it(part: str) -> None:
    cel = {"validations": [{"expression": f"{part}.size() == 1"}]}
    read = dependencies_of(read_template(template("P", cel=cel))).deciding
    assert read.at("input", "review", "object", "spec").whole


def test_how_many_fields_a_request_has_depends_on_which_are_empty() -> None:
    assert {"review.name", "review.subResource"} <= set(paths("size(dyn(request)) > 11"))


def test_variables_that_nobody_reads_are_not_read() -> None:
    variables = [{"name": "a", "expression": "object.a"}, {"name": "b", "expression": "object.b"}]
    assert paths("variables.a == 1", variables=variables) == ["review.object.a"]


def test_a_message_is_read_too() -> None:
    validation = {"expression": "false", "messageExpression": "string(object.name)"}
    assert paths("true", validations=[validation]) == ["review.object.name"]


def test_parameters_that_are_known_name_keys() -> None:
    expression = "variables.params.labels.all(l, object.labels[l] == 'a')"
    variables = [{"name": "l", "expression": "params.spec.parameters.label"}]
    read = paths("object.labels[variables.l] == 'a'", {"label": "app"}, variables=variables)
    assert "review.object.labels.app" in read
    assert paths(expression) == ["parameters.labels[*]", "review.object.labels[*]"]
