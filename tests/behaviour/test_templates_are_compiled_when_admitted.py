"""A template whose Rego does not compile is refused, with line and column, unless that is off."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    constraint,
    pod,
    review,
    write_policies,
)

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


def test_a_template_in_cel_alone_is_admitted_with_a_warning_that_says_so(server: Server) -> None:
    spec = {**GOOD["spec"], "targets": [{"target": GOOD["spec"]["targets"][0]["target"]}]}
    source = {"validations": [{"expression": "true"}]}
    spec["targets"][0]["code"] = [{"engine": "K8sNativeValidation", "source": source}]
    verdict = server.admit({**GOOD, "spec": spec})
    assert verdict["allowed"] is True
    assert any("K8sNativeValidation (CEL)" in text for text in verdict["warnings"])
    assert "warnings" not in server.admit(GOOD)


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
