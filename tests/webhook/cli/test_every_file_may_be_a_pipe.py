"""Each option and argument that names a file takes ``<(command)`` and ``-``; the program lists them."""

import json
import re
import sys

import click
import pytest
import yaml

from tests.policies import constraint, template
from tests.programs import ROOT
from tests.webhook.cli.commands import commands
from tests.webhook.cli.in_process import waddle
from tests.webhook.cli.pipes import standard_input, substituted

TEMPLATE = ROOT / "policies/general/required-labels/template.yaml"
CONSTRAINT = ROOT / "policies/general/required-labels/samples/required-labels/constraint.yaml"
OBJECT = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
POLICIES = f"{TEMPLATE.read_text()}\n---\n{CONSTRAINT.read_text()}"
REGO = "package p\nx := 7\ntest_x if x == 7\n"
DENY = 'package main\ndeny contains "no" if input.a == data.d\n'
SUITE = """\
kind: Suite
apiVersion: test.gatekeeper.sh/v1alpha1
tests:
- name: labels
  template: template.yaml
  constraint: constraint.yaml
  cases:
  - {name: none, object: namespace.yaml, assertions: [{violations: yes}]}
"""
SCHEMA = '{"type": "object", "properties": {"a": {"type": "string"}}}'
NO_BUILTINS = '{"builtins": []}'
LABELLED = 'label "owner" is required'

EXCUSED = "--reason x --cluster --object Namespace/web"
DENIED = f"""Error from server (Forbidden): error when creating "x.yaml": admission webhook \
"validation.gatekeeper.sh" denied the request: [required-labels] {LABELLED}
"""
ANSWERS = "items: {web: {value: told by p}}"
ASKS = """
package p
violation[{"msg": msg}] {
  answer := external_data({"provider": "p", "keys": [input.review.object.metadata.name]})
  msg := answer.responses[_][1]
}
"""
NO_CONTEXT = "Expected key current-context in /dev/"
EXPANDED = """\
apiVersion: expansion.gatekeeper.sh/v1beta1
kind: ExpansionTemplate
metadata: {name: pods}
spec:
  applyTo: [{groups: [apps], versions: [v1], kinds: [Deployment]}]
  templateSource: spec.template
  generatedGVK: {group: "", version: v1, kind: Pod}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {metadata: {labels: {a: b}}, spec: {}}}
"""

IMAGE = "127.0.0.1:9/team/policies --registry-insecure 127.0.0.1:9"
IMAGED = {
    "check --image": 2,
    "test --image": 1,
    "verify --image": 1,
    "policy install": 2,
    "policy pull": 2,
    "policy push -f all.yaml": 2,
    "policy upgrade": 2,
}

SIGNED = """\
apiVersion: waddle.dev/v1alpha1
kind: VerificationPolicy
metadata: {name: signed}
spec:
  images: ["127.0.0.1:9/*"]
  authorities:
  - name: team
    transparencyLog: Ignored
    key:
      data: |
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6/4vGzwqLcmiAzmlps89Zg9PSUDN
        KWAW6fuVbaeDhhCVNC7n1PCMqMYhb5gTUpEEZyNKSskMzURTc5UjA1Amrw==
        -----END PUBLIC KEY-----
"""

PIPED = {
    ("audit", "--kubeconfig"): ("audit --once --kubeconfig {}", "{}", 2, NO_CONTEXT),
    ("bench", "--filename"): ("bench -n 1 -f all.yaml -f {}", NAMESPACE, 0, "1 violation"),
    ("bench", "paths"): ("bench -n 1 all.yaml {}", NAMESPACE, 0, "1 violation"),
    ("bench", "--provider"): (
        "bench -n 1 -f asks.yaml --provider p={}",
        ANSWERS,
        0,
        "1 violation",
    ),
    ("bench", "--compare"): (
        "bench -n 1 -f all.yaml -f namespace.yaml --compare {}",
        "[]",
        2,
        "nothing was compared",
    ),
    ("cel eval", "--object"): ("cel eval --object {} object.kind", NAMESPACE, 0, "Namespace"),
    ("cel eval", "--old-object"): ("cel eval --old-object {} oldObject.kind", NAMESPACE, 0, "Name"),
    ("cel eval", "--namespace"): (
        "cel eval --namespace {} namespaceObject.metadata.name",
        NAMESPACE,
        0,
        "web",
    ),
    ("cel eval", "--params"): (
        "cel eval --params {} variables.params.kind",
        NAMESPACE,
        0,
        "Namespace",
    ),
    ("check", "--filename"): ("check -f {}", POLICIES, 0, "can be used"),
    ("check", "paths"): ("check {}", POLICIES, 0, "can be used"),
    ("check", "--kubeconfig"): (
        "check --cluster --kubeconfig {} -f template.yaml",
        "{}",
        2,
        NO_CONTEXT,
    ),
    ("check", "--decisions"): ("check --decisions {} -f template.yaml", "", 0, "can be used"),
    ("conftest test", "paths"): ("conftest test -p deny.rego -d data.json {}", "a: 1", 1, "no"),
    ("conftest test", "--policy"): ("conftest test -p {} -d data.json in.json", DENY, 1, "1 fail"),
    ("conftest test", "--data"): ("conftest test -p deny.rego -d {} in.json", '{"d": 1}', 1, "no"),
    ("conftest test", "--capabilities"): (
        "conftest test -p deny.rego --capabilities {} in.json",
        NO_BUILTINS,
        1,
        "equal",
    ),
    ("conftest test", "--config-file"): (
        "conftest test -c {} in.json",
        'policy = "deny.rego"\ndata = "data.json"\n',
        1,
        "1 fail",
    ),
    ("conftest verify", "--policy"): ("conftest verify -p {}", REGO, 0, "1 passed"),
    ("conftest verify", "--data"): ("conftest verify -p p.rego -d {}", "{}", 0, "1 passed"),
    ("conftest verify", "--capabilities"): (
        "conftest verify -p deny.rego --capabilities {}",
        NO_BUILTINS,
        1,
        "equal",
    ),
    ("conftest verify", "--config-file"): (
        "conftest verify -c {}",
        'policy = "p.rego"\n',
        0,
        "1 passed",
    ),
    **{
        (f"conftest {command}", "--config-file"): (
            f"conftest {command} -c {{}}",
            'tls = "true"\n',
            1,
            "missing required arguments",
        )
        for command in ("doc", "pull", "push")
    },
    ("conftest reformat", "--config-file"): (
        "conftest reformat -c {} in.json",
        'output = "json"\n',
        1,
        "results are an array",
    ),
    ("conftest reformat", "files"): ("conftest reformat -o json {}", "[]", 0, ""),
    **{
        (command.partition(" -")[0], option): (
            f"{command} {IMAGE} {option} {{}}",
            "[]",
            code,
            message,
        )
        for command, code in IMAGED.items()
        for option, message in (
            ("--registry-config", "is not an object"),
            ("--registry-ca", "certificates"),
        )
    },
    **{
        (name, option): (f"{command} {IMAGE} {option} {{}}", text, code, message)
        for command, code in IMAGED.items()
        for name in [command.partition(" -")[0]]
        if name != "policy push"
        for option, text, message in (
            ("--verification-policy", SIGNED, "127.0.0.1:9"),
            ("--catalogue", "[]", "it has to be one PolicyCatalogue"),
        )
    },
    ("policy list", "catalogue"): ("policy list {}", "[]", 1, "it has to be one PolicyCatalogue"),
    ("conftest parse", "files"): ("conftest parse {}", "a: 1\n", 0, '"a": 1'),
    ("conftest parse", "--config-file"): (
        "conftest parse -c {} in.json",
        'parser = "yaml"\n',
        0,
        '"a": 1',
    ),
    ("decisions compare", "source"): (
        "decisions compare {} --gatekeeper-log empty",
        "",
        2,
        "nothing was compared",
    ),
    ("decisions compare", "--gatekeeper-log"): (
        "decisions compare empty --gatekeeper-log {}",
        "",
        2,
        "nothing was compared",
    ),
    ("decisions replay", "source"): ("decisions replay {} --policies all.yaml", "", 2, "0 decisi"),
    ("decisions replay", "--policies"): (
        "decisions replay empty --policies {}",
        POLICIES,
        2,
        "0 decisions",
    ),
    ("decisions stats", "source"): ("decisions stats {}", "", 0, "0 decisions"),
    ("decisions tail", "source"): ("decisions tail {}", "", 0, ""),
    ("except", "source"): (f"except {{}} {EXCUSED} -f all.yaml", DENIED, 0, "PolicyException"),
    ("except", "--filename"): (f"except denied {EXCUSED} -f {{}}", POLICIES, 0, "PolicyException"),
    ("except", "--kubeconfig"): (
        "except --baseline --reason x --kubeconfig {}",
        "{}",
        2,
        NO_CONTEXT,
    ),
    ("expand", "--provider"): ("expand -f expands.yaml --provider p={}", ANSWERS, 0, "kind: Pod"),
    ("expand", "--filename"): ("expand -f {}", EXPANDED, 0, "kind: Pod"),
    ("expand", "paths"): ("expand {}", EXPANDED, 0, "kind: Pod"),
    ("migrate gatekeeper", "--filename"): ("migrate gatekeeper -f {}", POLICIES, 0, "unchanged"),
    ("migrate gatekeeper", "paths"): ("migrate gatekeeper {}", POLICIES, 0, "unchanged"),
    ("migrate gatekeeper", "--kubeconfig"): (
        "migrate gatekeeper --kubeconfig {}",
        "{}",
        2,
        NO_CONTEXT,
    ),
    ("check", "--provider"): ("check asks.yaml --provider p={}", ANSWERS, 0, "can be used"),
    ("decisions replay", "--provider"): (
        "decisions replay empty --policies all.yaml --provider p={}",
        ANSWERS,
        2,
        "0 decisions",
    ),
    ("export", "--filename"): ("export --static out -f {}", POLICIES, 0, "2 objects written"),
    ("export", "paths"): ("export --static out {}", POLICIES, 0, "2 objects written"),
    ("migrate kyverno", "--filename"): (
        "migrate kyverno -f {}",
        NAMESPACE,
        2,
        "have no polic",
    ),
    ("migrate kyverno", "paths"): ("migrate kyverno {}", NAMESPACE, 2, "have no polic"),
    ("migrate kubewarden", "--filename"): (
        "migrate kubewarden -f {}",
        NAMESPACE,
        2,
        "no policy group",
    ),
    ("migrate kubewarden", "paths"): (
        "migrate kubewarden {}",
        NAMESPACE,
        2,
        "no policy group",
    ),
    ("mutate", "--provider"): (
        "mutate -f namespace.yaml --provider p={}",
        ANSWERS,
        0,
        "kind: Namespace",
    ),
    ("mutate", "--filename"): ("mutate -f {}", NAMESPACE, 0, "kind: Namespace"),
    ("mutate", "paths"): ("mutate {}", NAMESPACE, 0, "kind: Namespace"),
    ("rego check", "paths"): ("rego check {}", REGO.replace("7", "y", 1), 1, "unsafe_var"),
    ("rego check", "--capabilities"): ("rego check --capabilities {} p.rego", NO_BUILTINS, 1, "v1"),
    ("rego check", "--schema"): ("rego check -s {} typed.rego", SCHEMA, 1, "undefined ref"),
    ("rego fmt", "paths"): ("rego fmt {}", REGO, 0, "package"),
    ("conftest fmt", "files"): ("conftest fmt --check {}", REGO, 1, "files not formatted"),
    ("conftest fmt", "--config-file"): (
        "conftest fmt -c {} p.rego",
        'check = "true"\n',
        1,
        "files not formatted",
    ),
    ("rego eval", "--data"): ("rego eval -d {} -f pretty data.p.x", REGO, 0, "7"),
    ("rego eval", "--input"): ("rego eval -i {} -f pretty input.a", '{"a": 5}', 0, "5"),
    ("rego eval", "--capabilities"): (
        "rego eval --capabilities {} -d p.rego data.p.x",
        NO_BUILTINS,
        2,
        "v1",
    ),
    ("rego eval", "--schema"): ("rego eval -s {} -d typed.rego data.p", SCHEMA, 2, "undefined ref"),
    ("rego parse", "path"): ("rego parse {}", REGO, 0, "module"),
    ("rego test", "paths"): ("rego test {}", REGO, 0, "PASS: 1/1"),
    ("rego test", "--capabilities"): ("rego test --capabilities {} p.rego", NO_BUILTINS, 1, "v1"),
    ("rego test", "--schema"): ("rego test -s {} typed.rego", SCHEMA, 1, "undefined ref"),
    ("report", "--kubeconfig"): ("report --kubeconfig {}", "{}", 2, NO_CONTEXT),
    ("sidecar", "--config"): ("sidecar --config {}", "{}", 1, "queue.directory"),
    ("simulate", "--measured"): ("simulate --measured {}", "{}", 2, "there is no array rounds_ms"),
    ("status", "--kubeconfig"): ("status --kubeconfig {}", "{}", 2, NO_CONTEXT),
    ("sync test", "--filename"): ("sync test -f {}", POLICIES, 2, "have no GVKManifest"),
    ("sync test", "paths"): ("sync test {}", POLICIES, 2, "have no GVKManifest"),
    ("test", "--provider"): ("test asks.yaml --provider p={}", ANSWERS, 1, "told by p"),
    ("test", "--filename"): ("test -f all.yaml -f {}", NAMESPACE, 1, LABELLED),
    ("test", "paths"): ("test all.yaml {}", NAMESPACE, 1, LABELLED),
    ("uninstall", "--kubeconfig"): ("uninstall --policies --kubeconfig {}", "{}", 2, NO_CONTEXT),
    ("verify", "paths"): ("verify {}", SUITE, 0, "PASS"),
    ("verify-image", "--policies"): (
        "verify-image -f {} 127.0.0.1:9/app:1",
        SIGNED,
        2,
        "127.0.0.1:9: Connect",
    ),
    ("verify-image", "--registry-config"): (
        "verify-image -f signed.yaml --registry-config {} 127.0.0.1:9/app:1",
        "[]",
        2,
        "is not an object",
    ),
    ("verify-image", "--registry-ca"): (
        "verify-image -f signed.yaml --registry-ca {} 127.0.0.1:9/app:1",
        "[]",
        2,
        "certificates",
    ),
    ("wait", "--kubeconfig"): ("wait --for=enforced A/b --kubeconfig {}", "{}", 2, NO_CONTEXT),
}
"""A line, what comes by the pipe, the exit code and what is shown."""

WRITTEN = "it is written"
FOLDER = "it is a folder"
FOLLOWED = "it is read again as long as the process goes on"

NAMED = "a layer has the name of its file"

OTHERS = {
    ("conftest doc", "--template"): "the page is made of a folder beside it",
    ("conftest pull", "sources"): FOLDER,
    ("conftest push", "--policy"): NAMED,
    ("conftest push", "--data"): NAMED,
    ("conftest test", "--update"): FOLDER,
    ("conftest verify", "--update"): FOLDER,
    ("policy install", "--kubeconfig"): "policies are pulled before it is read, as an upgrade's",
    ("policy upgrade", "--kubeconfig"): "as an installation's",
    ("policy pull", "--folder"): WRITTEN,
    ("policy push", "--filename"): NAMED,
    ("policy push", "paths"): NAMED,
    ("migrate kyverno", "--converted"): WRITTEN,
    ("audit", "--policies"): FOLDER,
    ("audit", "--provider"): "it takes a cluster; the option is that of a check",
    ("krm", "--provider"): "standard input is the list",
    ("bench", "--save"): WRITTEN,
    ("conftest verify", "paths"): "conftest takes them and reads none",
    ("console", "--policies"): FOLLOWED,
    ("console", "--manifests"): FOLLOWED,
    ("console", "--decisions"): FOLLOWED,
    ("console", "--kubeconfig"): FOLLOWED,
    ("console", "--provider"): FOLLOWED,
    (
        "console",
        "--oidc-client-secret-file",
    ): "it takes a cluster and a provider: a console's login",
    ("console", "--oidc-ca-file"): "as its secret",
    ("console", "--cookie-key-file"): "as its secret",
    ("demo", "--api-server"): "it is run",
    ("demo", "--kubeconfig"): "three replicas read it",
    ("expand", "--outputfile"): WRITTEN,
    ("export", "--static"): WRITTEN,
    ("export", "--path"): "a folder of another machine",
    ("init", "folder"): WRITTEN,
    ("krm", "--filename"): "standard input is the list; a pipe is below",
    ("krm", "paths"): "as its option",
    ("man", "--directory"): WRITTEN,
    **{
        (f"new {kind}", "--directory"): WRITTEN
        for kind in ("constraint", "mutator", "suite", "template")
    },
    ("provider images", "--policies"): FOLLOWED,
    ("provider images", "--layout"): FOLDER,
    ("provider images", "--cert-dir"): FOLDER,
    ("provider images", "--registry-ca"): "as that of verify-image, by a process that goes on",
    ("provider images", "--registry-config"): "as that of verify-image",
    ("provider images", "--secrets"): FOLDER,
    ("provider images", "--cache"): WRITTEN,
    ("provider images", "--kubeconfig"): FOLLOWED,
    ("verify-image", "--layout"): FOLDER,
    ("verify-image", "--secrets"): FOLDER,
    ("rego eval", "--bundle"): "an archive or a folder; OPA goes by its name",
    ("rego eval", "--package"): "a path of Rego",
    ("rego eval", "--import"): "a path of Rego",
    ("test", "--library"): FOLDER,
}


def names_a_file(parameter: click.Parameter) -> bool:
    words = set(re.split(r"[^A-Z|]+", parameter.metavar or ""))
    named = {"FILE", "PATH", "DIR", "SOURCE", "FILE|VERSION"} & words
    is_file = parameter.name in {"path", "paths", "files", "source", "config_file"}
    return bool(named or is_file or isinstance(parameter.type, click.Path | click.File))


def test_every_parameter_that_names_a_file_is_here():
    there = {
        (command, parameter.opts[-1])
        for command, of in commands()
        for parameter in of.params
        if names_a_file(parameter)
    }
    assert there == PIPED.keys() | OTHERS.keys()
    assert not PIPED.keys() & OTHERS.keys()


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "template.yaml": TEMPLATE.read_text(),
        "constraint.yaml": CONSTRAINT.read_text(),
        "all.yaml": POLICIES,
        "namespace.yaml": NAMESPACE,
        "p.rego": REGO,
        "typed.rego": "package p\nx := input.b\n",
        "deny.rego": DENY,
        "data.json": '{"d": 1}',
        "in.json": '{"a": 1}',
        "empty": "",
        "signed.yaml": SIGNED,
        "denied": DENIED,
        "expands.yaml": EXPANDED,
        "asks.yaml": yaml.safe_dump_all([template("Asks", ASKS), constraint("Asks", "a"), OBJECT]),
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("parameter", PIPED, ids=" ".join)
def test_a_pipe_and_standard_input_are_read(parameter, folder):
    line, text, code, shown = PIPED[parameter]
    with substituted(text) as piped:
        by_pipe = waddle(*line.format(piped).split(), cwd=folder)
    with standard_input(text):
        by_dash = waddle(*line.format("-").split(), cwd=folder, stdin=sys.__stdin__)
    for run in (by_pipe, by_dash):
        assert shown in run.stdout + run.stderr
        assert run.returncode == code, run.stdout + run.stderr


UNREADABLE = {
    "missing.json": None,
    "in.json/x.yaml": None,
    "latin.yaml": b"a: \xff\xfe\n",
    "list.json": b"[1, null, true]\n",
    "null.json": b"null\n",
    "text.json": b'"text"\n',
    "deep.json": b"[" * 3000 + b"]" * 3000,
    "number.json": b'{"kind": 5, "apiVersion": null, "metadata": [1], "spec": true, "items": 3}',
}
"""Files that are none of what is asked for, and what is in them; None for one that is not there."""

PYTHON = re.compile(
    r"\[Errno|Traceback|\b(None|NoneType|dict|str|True|False)\b|codec|object at 0x|\w+Error\("
)


@pytest.mark.parametrize("parameter", PIPED, ids=" ".join)
def test_what_cannot_be_read_is_reported_without_words_of_python(parameter, folder):
    (folder / "dir").mkdir()
    for name, raw in UNREADABLE.items():
        if raw is not None:
            (folder / name).write_bytes(raw)
    for name in ("dir", *UNREADABLE):
        run = waddle(*PIPED[parameter][0].format(name).split(), cwd=folder)
        output = run.stderr + (run.stdout if run.returncode else "")
        assert not PYTHON.search(output), (name, output)
        assert output.strip() or not run.returncode, name


def test_policies_of_a_function_come_by_a_pipe(folder):
    items = (
        f"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: [{json.dumps(OBJECT)}]\n"
    )
    with substituted(POLICIES) as piped, standard_input(items):
        run = waddle("krm", "-f", piped, cwd=folder, stdin=sys.__stdin__)
    assert LABELLED in run.stdout
    assert run.returncode == 1


def test_standard_input_is_one_of_them_alone(folder):
    """The kubeconfig was empty: what is piped had been read as policies."""
    taken = waddle("check", "--cluster", "--kubeconfig", "-", "-f", "-", cwd=folder)
    assert (
        "standard input can be only one of policies, decisions and the kubeconfig" in taken.stderr
    )
    assert taken.returncode == 64
