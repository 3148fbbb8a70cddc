"""Templates are compiled once: the next start finds them on disk."""

from pathlib import Path

import pytest

from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import CompileError
from webhook.constraint.template import Code, read_template
from webhook.rego.code_cache import CodeCache

TEMPLATE = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "k8sdeny"},
    "spec": {
        "crd": {"spec": {"names": {"kind": "K8sDeny"}}},
        "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": "package a"}],
    },
}
REGO = """package k8sdeny
violation[{"msg": msg}] {
	input.review.object.kind == "Pod"
	msg := sprintf("no %v", [input.parameters.what])
}
"""


def compile_rego(driver: RegoDriver, rego: str):
    return driver.compile(read_template(TEMPLATE), Code("Rego", {"rego": rego}))


def test_a_second_start_finds_what_the_first_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    directory = tmp_path / "compiled"
    compile_rego(RegoDriver(cache=CodeCache(directory)), REGO)
    assert len(list(directory.iterdir())) == 1

    def must_not(*_args):
        raise AssertionError("compiled again")

    monkeypatch.setattr("webhook.rego.program.compile_rules", must_not)
    evaluator = compile_rego(RegoDriver(cache=CodeCache(directory)), REGO)
    from webhook.constraint.limits import Limits

    found = evaluator.evaluate(
        {"what": "pods"}, {"object": {"kind": "Pod"}}, evaluator.begin(Limits(), {})
    )
    assert [violation.msg for violation in found] == ["no pods"]


def test_a_template_that_does_not_compile_leaves_nothing(tmp_path: Path):
    driver = RegoDriver(cache=CodeCache(tmp_path / "compiled"))
    for _ in range(2):
        with pytest.raises(CompileError):
            compile_rego(driver, REGO.replace("sprintf", "no_such_function"))
    assert list((tmp_path / "compiled").iterdir()) == []
