"""A template whose Rego does not compile is refused, with line and column, unless that is off."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    await_true,
    constraint,
    pod,
    review,
    write_policies,
)
from tests.bounded_trials import end_trials

GOOD = yaml.safe_load(REQUIRED_LABELS)
BROKEN = yaml.safe_load(REQUIRED_LABELS.replace("msg := sprintf", "msg := sprintff"))


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    return write_policies(tmp_path / "policies", REQUIRED_LABELS, constraint("x", "owner"))


@pytest.fixture
def server(policies: Path) -> Iterator[Server]:
    with Server(policies) as started:
        yield started.ready()


def test_a_template_that_does_not_compile_is_refused_with_line_and_column(server: Server) -> None:
    verdict = server.admit(BROKEN)
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 422
    assert (
        "template:4: rego_type_error: undefined function sprintff" in verdict["status"]["message"]
    )
    assert server.admit(GOOD)["allowed"] is True


def in_cel(expression: str) -> dict[str, Any]:
    spec = {**GOOD["spec"], "targets": [{"target": GOOD["spec"]["targets"][0]["target"]}]}
    source = {"validations": [{"expression": expression}]}
    spec["targets"][0]["code"] = [{"engine": "K8sNativeValidation", "source": source}]
    return {**GOOD, "spec": spec}


def test_a_template_in_cel_that_does_not_compile_is_refused_with_line_and_mark(
    server: Server,
) -> None:
    verdict = server.admit(in_cel("object.a == 1 &&\n  1 == 'x'"))
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 422
    assert (
        "source.validations[0].expression: ERROR: <input>:2:5: found no matching overload for "
        "'_==_' applied to '(int, string)'\n |   1 == 'x'\n | ....^"
    ) in verdict["status"]["message"]
    assert server.admit(in_cel("true")) == server.admit(GOOD)


def test_a_template_in_cel_alone_is_admitted_with_a_warning_where_that_is_switched_off(
    policies: Path,
) -> None:
    with Server(policies, "--enable-k8s-native-validation=false").ready() as server:
        verdict = server.admit(in_cel("true"))
        assert verdict["allowed"] is True
        assert any("K8sNativeValidation (CEL)" in text for text in verdict["warnings"])
        assert "warnings" not in server.admit(GOOD)


def test_errors_of_cel_are_nothing_where_a_flag_says_so_and_the_template_does_not(
    tmp_path: Path,
) -> None:
    erring = in_cel("object.metadata.labels.owner == ''")
    ignoring = copy.deepcopy(erring)
    ignoring["spec"]["targets"][0]["code"][0]["source"]["failurePolicy"] = "Fail"
    for name, document, allowed in (("unsaid", erring, True), ("said", ignoring, False)):
        text = yaml.safe_dump(document)
        folder = write_policies(tmp_path / name, text, constraint("x", "owner"))
        flag = "--default-k8s-native-validation-failure-policy=Ignore"
        with Server(folder, flag).ready() as server:
            assert server.admit(pod())["allowed"] is allowed


def test_a_broken_template_can_be_deleted_and_lose_its_finalizers(server: Server) -> None:
    labelled = {**BROKEN, "metadata": {**BROKEN["metadata"], "labels": {"a": "b"}}}
    assert server.admit(BROKEN, operation="DELETE")["allowed"] is True
    assert server.admit(labelled, operation="UPDATE", oldObject=BROKEN)["allowed"] is True
    assert server.admit(BROKEN, operation="UPDATE", oldObject=GOOD)["allowed"] is False


def test_a_fault_of_the_schema_comes_before_one_of_the_source(server: Server) -> None:
    renamed = {**BROKEN, "metadata": {"name": "other"}}
    assert "is not equal to the lowercase" in server.admit(renamed)["status"]["message"]


def test_schema_admits_what_does_not_compile(policies: Path) -> None:
    with Server(policies, "--validate-templates=schema") as server:
        server.ready()
        assert server.admit(BROKEN)["allowed"] is True


def test_answers_on_one_connection_keep_their_order_while_templates_compile(server: Server) -> None:
    """Compiling happens elsewhere; the connection answers in order all the same."""
    connection = server.connect()
    try:
        for _ in range(3):
            assert server.post(review(BROKEN), connection=connection).verdict["allowed"] is False
            assert server.post(review(pod(owner="me")), connection=connection).verdict["allowed"]
    finally:
        connection.close()


MANY_RULES = "package p\n" + "\n".join(
    f'violation[{{"msg": "m{i}"}}] {{ input.review.object.spec.a{i} == {i} }}'
    for i in range(18_000)
)
"""1.3 MB that would take 9 s of processor time and 434 MiB to compile."""


def with_rego(rego: str) -> dict[str, Any]:
    """The good template with other Rego."""
    target = {**GOOD["spec"]["targets"][0], "rego": rego}
    return {**GOOD, "spec": {**GOOD["spec"], "targets": [target]}}


def test_a_template_that_would_take_too_long_to_compile_is_refused_and_holds_up_none(
    server: Server,
) -> None:
    """The system ends the compilation; the next template is compiled."""
    body = review(with_rego(MANY_RULES))
    answers = [server.post(body)]

    def is_decided() -> bool:
        # On a busy machine five seconds of a processor may take longer than an admission may (504),
        # or than is waited for (503): they are ended here as the system would, and the next is told.
        if answers[-1].status in {503, 504}:
            end_trials([server.process.pid])
            answers.append(server.post(body))
        return answers[-1].status == 200

    await_true(is_decided)
    verdict = answers[-1].verdict
    assert verdict["allowed"] is False
    assert "policy is too large" in verdict["status"]["message"]
    assert server.get("health", "/readyz").status == 200
    assert server.admit(GOOD)["allowed"] is True
    assert server.admit(pod(owner="me"))["allowed"] is True


def test_a_number_that_cannot_be_held_is_refused_as_the_templates_fault(server: Server) -> None:
    rego = 'package p\nviolation[{"msg": "x"}] { x := 1e99999999999; x == 1 }'
    verdict = server.admit(with_rego(rego))
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 422
    assert "invalid float" in verdict["status"]["message"]
