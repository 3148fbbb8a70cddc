"""The column *offline* of docs/isolation.md: what `waddle test` makes of each fault."""

import pytest
import yaml

from tests.isolation_table import CEL, CONFLICT, GOOD, STAGES, SYNTAX, UNSAFE, actions, cells
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template
from webhook.constraint import enforcement
from webhook.constraint.isolation import ANNOTATION

TOO_MUCH = 'package p\nviolation[{"msg": "x"}] { numbers.range(1, 1000000000)[_] == 0 }'
WORD = {"type": "object", "properties": {"word": {"type": "string"}}}
NUMBER = {"type": "object", "properties": {"word": {"type": "integer"}}}
BROKEN_SCHEMA = {"type": "object", "properties": {"word": {}}}


def templates(fault, stage):
    """The template with the fault."""
    if fault == "error":
        return template(rego=CONFLICT, schema=WORD)
    if fault == "no engine":
        return template(rego="", schema=WORD, target={"code": [CEL]})
    if fault == "overrun":
        return template(rego=TOO_MUCH, schema=WORD)
    return {
        "parse": template(rego=SYNTAX, schema=WORD),
        "compile": template(rego=UNSAFE, schema=WORD),
        "template": template(rego=GOOD, schema=BROKEN_SCHEMA),
        "constraint": template(rego=GOOD, schema=NUMBER),
    }[stage]


def check(folder, cell, stage="", *, scoped=False):
    """The command's end for a Pod, with the policies of a row beside it."""
    spec = actions(cell.action, scoped=scoped, point=enforcement.COMMAND_LINE)
    policy = constraint(parameters={"word": "x"}, **spec)
    policy["metadata"]["annotations"] = {ANNOTATION: cell.on_error}
    policy["spec"]["match"] = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
    file = folder / "all.yaml"
    file.write_text(yaml.safe_dump_all([templates(cell.fault, stage), policy, pod()]))
    without = ["--enable-k8s-native-validation=false"] if cell.fault == "no engine" else []
    return waddle("test", *without, "-f", str(file))


def expect(result, word):
    """The outcome is the table's."""
    undecided = "not decided: K8sDeny/c" in result.stderr
    if word == "refused":
        assert result.returncode == 1
        named = ('template "k8sdeny"', 'constraint "c"', "K8sDeny/c")
        assert any(name in result.stderr for name in named)
    elif word in ("warn", "record"):
        assert result.returncode == 0
        assert undecided is (word == "warn")
    else:
        assert not undecided
        assert "eval_conflict_error" in result.stdout
        assert result.returncode == (1 if word == "denied" else 0)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("cell", cells("broken"), ids=str)
def test_what_is_broken_is_named_and_nothing_is_checked(tmp_path, cell, stage):
    expect(check(tmp_path, cell, stage), cell.offline)


@pytest.mark.parametrize("cell", cells("no engine"), ids=str)
def test_what_has_no_engine_is_named_and_nothing_is_checked(tmp_path, cell):
    expect(check(tmp_path, cell), cell.offline)


@pytest.mark.parametrize("scoped", [False, True])
@pytest.mark.parametrize("cell", cells("error", "overrun"), ids=str)
def test_what_cannot_be_evaluated_is_reported_by_its_action(tmp_path, cell, scoped):
    expect(check(tmp_path, cell, scoped=scoped), cell.offline)
