"""Bad files, folders and policies under `waddle conftest` and `waddle test`: each by itself.

Real processes, which get no more memory than is said here.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from itertools import pairwise

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.webhook.parsers.broken_files import BROKEN

MEMORY_BYTES = 2 << 30

POLICY = 'package main\n\ndeny contains "seen" if input.seen\n'
NAMES = {
    "dockerfile": "Dockerfile.{}",
    "dotenv": ".env.{}",
    "ignore": "{}.gitignore",
    "hcl2": "{}.tf",
    "hocon": "{}.conf",
    "nginx": "{}/nginx.conf",
    "codeowners": "{}/CODEOWNERS",
}
BY_FLAG = {"hcl1", "cyclonedx", "hocon"}
"""Parsers that no name of a file asks for."""

REGO = 'package p\nviolation[{"msg": "seen"}] { input.review.seen }'
TEMPLATE = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "seen"},
    "spec": {
        "crd": {"spec": {"names": {"kind": "Seen"}}},
        "targets": [{"target": "json", "rego": REGO}],
    },
}
CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "Seen",
    "metadata": {"name": "seen"},
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "p.rego").write_text(POLICY)
    (tmp_path / "zz.yaml").write_text("seen: true\n")
    (tmp_path / "t.yaml").write_text(yaml.safe_dump_all([TEMPLATE, CONSTRAINT]))
    return tmp_path


def waddle(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "webhook", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
    )


def seen(run):
    """The good file's result is there, and something is wrong."""
    assert run.returncode == 1, run.stderr
    assert "zz.yaml" in run.stdout
    assert "seen" in run.stdout
    assert "Traceback" not in run.stderr


def test_a_broken_file_of_every_format_is_named_with_its_line_and_hides_no_other(folder):
    named, flagged = {}, {}
    for number, (parser, text, line) in enumerate(BROKEN):
        if parser in BY_FLAG:
            name = f"b{number}.txt"
            flagged[name] = parser, line
        else:
            name = NAMES.get(parser, "{}." + parser).format(f"b{number}")
            named[name] = line
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    run = waddle(folder, "conftest", "test", "--no-color", *named, "zz.yaml")
    target = waddle(
        folder, "test", "--target=json", "-f=t.yaml", *(f"-f={one}" for one in named), "-f=zz.yaml"
    )

    seen(run)
    seen(target)
    for name, line in named.items():
        assert (f"{name}:{line}: " if line else f"{name}: ") in run.stderr
        # JSON and YAML have a reader of their own there, which may tell where it all begins.
        (fault_line,) = (one for one in target.stderr.splitlines() if f"{name}:" in one)
        assert not line or re.search(rf"{name}:{line}: |line [1-9]", fault_line)
    for name, (parser, line) in flagged.items():
        alone = waddle(folder, "conftest", "parse", "--parser", parser, name)
        assert alone.returncode == 1
        assert f"{name}:{line}: " in alone.stderr


def test_yaml_that_would_become_gigabytes_is_refused(folder):
    names = "abcdefghijkl"
    lines = [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)]
    (folder / "bomb.yaml").write_text("\n".join([f"a: &a [{'x' * 100}]", *lines]))
    with (folder / "large.yaml").open("wb") as stream:
        stream.truncate(1 << 30)
    files = ("bomb.yaml", "large.yaml", "zz.yaml")

    for run in (
        waddle(folder, "conftest", "test", "--no-color", *files),
        waddle(folder, "test", "--target=json", "-f=t.yaml", *(f"-f={one}" for one in files)),
    ):
        seen(run)
        assert "bomb.yaml" in run.stderr
        assert "large.yaml" in run.stderr


def test_links_that_lead_in_circles_end(folder):
    (folder / "in").mkdir()
    (folder / "in" / "loop").symlink_to(folder / "in")
    (folder / "in" / "self.yaml").symlink_to(folder / "in" / "self.yaml")
    (folder / "in" / "zz.yaml").write_text("seen: true\n")
    (folder / "policy" / "loop").symlink_to(folder / "policy")

    files = waddle(folder, "conftest", "test", "--no-color", "-p", "policy/p.rego", "in")
    policies = waddle(folder, "conftest", "test", "--no-color", "zz.yaml")
    target = waddle(folder, "test", "--target=json", "-f=t.yaml", "-f=in")

    seen(files)
    assert "in/self.yaml" in files.stderr
    assert policies.returncode == 1
    assert "policy/loop: a link leads back to a folder that it is in" in policies.stderr
    seen(target)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("conftest", "test", "-p", "empty", "zz.yaml"), 1, "no policies found in [empty]"),
        (("conftest", "test", "-p", "gone", "zz.yaml"), 1, "gone"),
        (("conftest", "verify", "-p", "empty"), 1, "no policies found in [empty]"),
        (("test", "-f=empty", "-f=zz.yaml", "--target=json"), 2, "nothing was checked"),
        (("verify", "empty"), 2, ""),
        (("check", "-f=empty"), 2, "no input data identified"),
    ],
)
def test_a_folder_without_policies_is_reported(folder, arguments, code, message):
    (folder / "empty").mkdir()

    run = waddle(folder, *arguments)

    assert run.returncode == code, run.stderr
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_a_policy_that_fails_at_run_time_is_reported_with_file_and_line(folder):
    failing = 'f(x) := 1 if x\nf(x) := 2 if x == 3\ndeny contains "one" if f(input.a) == 1\n'
    (folder / "policy" / "p.rego").write_text(POLICY + failing)
    (folder / "a.yaml").write_text("a: 3\n")

    run = waddle(folder, "conftest", "test", "--no-color", "a.yaml", "zz.yaml")

    seen(run)
    assert "policy/p.rego:5: eval_conflict_error" in run.stderr
    assert "path: a.yaml" in run.stderr


def test_a_plan_of_100_megabytes_is_tested_and_a_broken_one_reported(folder):
    change = {
        "address": "aws_s3_bucket.b0",
        "mode": "managed",
        "type": "aws_s3_bucket",
        "name": "b0",
        "change": {"actions": ["create"], "after": {"tags": {"a": "b" * 300}, "l": [1] * 30}},
    }
    one = json.dumps(change).encode()
    count = 100_000_000 // len(one) + 1
    with (folder / "plan.json").open("wb") as stream:
        stream.write(b'{"format_version": "1.2", "resource_changes": [')
        stream.write(b",".join([one] * count))
        stream.write(b"]}")
    (folder / "policy" / "plan.rego").write_text(
        "package main\ndeny contains msg if {\n  n := count(input.resource_changes)\n"
        '  msg := sprintf("%d changes", [n])\n}\n'
    )

    run = waddle(folder, "conftest", "test", "--no-color", "plan.json", "zz.yaml")
    os.truncate(folder / "plan.json", 99_000_000)
    broken = waddle(folder, "conftest", "test", "--no-color", "plan.json", "zz.yaml")

    seen(run)
    assert f"FAIL - plan.json - main - {count} changes" in run.stdout
    seen(broken)
    assert "plan.json:1: " in broken.stderr
