"""The examples of docs/rego.md run, and its door is what webhook.rego has."""

import doctest
import subprocess
import sys

import webhook.rego
from tests.programs import ROOT


def test_the_examples_of_the_documentation_are_true():
    failed, tried = doctest.testfile(str(ROOT / "docs" / "rego.md"), module_relative=False)

    assert (failed, tried > 10) == (0, True)


def test_every_name_of_the_door_is_there():
    assert all(getattr(webhook.rego, name) is not None for name in dir(webhook.rego))
    assert not hasattr(webhook.rego, "nothing_of_this_name")


def test_the_door_imports_nothing_before_it_is_used():
    code = (
        "import sys, webhook.rego; print([n for n in sys.modules if n.startswith('webhook.rego.')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert run.stdout == "[]\n"
