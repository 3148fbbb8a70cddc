"""A file whose policy would take all memory costs a run of the commands only itself."""

import yaml

from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template
from tests.webhook.trials.tried import literals
from webhook.cli import clients
from webhook.trials.trials import Trials

TOO_LARGE = literals(10_000)
"""150 KB, which take 20 MiB to compile."""


def write_suite(folder, rego):
    """A suite that expects its Pod to be refused."""
    folder.mkdir()
    (folder / "template.yaml").write_text(yaml.safe_dump(template(rego=rego)))
    (folder / "constraint.yaml").write_text(yaml.safe_dump(constraint()))
    (folder / "pod.yaml").write_text(yaml.safe_dump(pod()))
    case = {"name": "case", "object": "pod.yaml", "assertions": [{"violations": "yes"}]}
    test = {
        "name": "test",
        "template": "template.yaml",
        "constraint": "constraint.yaml",
        "cases": [case],
    }
    suite = {"kind": "Suite", "apiVersion": "test.gatekeeper.sh/v1alpha1", "tests": [test]}
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite))


def test_a_suite_with_a_template_that_is_too_large_fails_and_the_others_pass(tmp_path, monkeypatch):
    trials = Trials(notify=lambda *_, **__: None, memory_bytes=12 << 20)
    monkeypatch.setattr(clients, "_trials", lambda _disabled: trials)
    write_suite(tmp_path / "a-hostile", TOO_LARGE)
    write_suite(tmp_path / "b-good", literals(3))

    run = waddle("verify", f"{tmp_path}/...")

    trials.stop()
    assert run.returncode == 1
    # CPython's compiler tells want of memory as it tells want of its stack.
    words = ("is too large", "is nested too deeply")
    assert any(f"policy {word}" in run.stdout for word in words)
    assert f"ok\t{tmp_path}/b-good/suite.yaml" in run.stdout


def test_an_object_beyond_what_yaml_s_writer_can_nest_is_written_as_json(tmp_path):
    """JSON is YAML: it ended in a traceback."""
    deep = "[" * 3000 + "]" * 3000
    pod = f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"q"}},"x":{deep}}}'
    (tmp_path / "deep.json").write_text(pod)
    done = waddle("mutate", "-f", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace(" ", "").replace("\n", "").count("[") == 3000
