"""Each page that names the demonstration is typed in one: its commands do there what the page says."""

import re
from pathlib import Path

import pytest

from tests.behaviour.demonstrations import running
from tests.pages.commands import PAGES, in_blocks, in_sentences
from tests.pages.shell import Shell
from tests.pages.walk import USED, Step
from tests.programs import ROOT, Programs, of_the_system

INSTALLED_ALONE = re.compile(
    r"-n waddle-system (get|patch)|endpointslices|nodes|replicaset|mutators|assignimage|loadtest"
    r"|policies/|migrate|delete|-l waddle.dev"
)
"""Matches commands that need the Pods, Secrets and files of an installation."""

TYPED = [step for step in USED if not INSTALLED_ALONE.search(step.command)]


@pytest.mark.slow(30)
def test_what_pages_that_name_the_demonstration_have_a_reader_type_does_what_they_say(
    program: Programs, tmp_path: Path
) -> None:
    if of_the_system("kubectl") is None:
        pytest.skip("no kubectl on this machine")
    naming = [
        page
        for page in PAGES
        if re.search(r"`(make|waddle) demo|^\$ make demo", page.read_text(), re.MULTILINE)
    ]
    assert {page.name for page in naming} >= {"README.md", "first-policy.md", "operating.md"}
    shown = {one for page in naming for one in (*in_blocks(page), *in_sentences(page))}
    typed = [step for step in TYPED if step.command in shown]
    assert {"waddle audit --once", "waddle status"} <= {step.command for step in typed}
    first = ROOT / "docs" / "first-policy.md"
    cluster = first.read_text().partition("## In a cluster")[2]
    steps = [
        one
        for one in in_sentences(first)
        if one in cluster and one.startswith(("kubectl", "waddle wait"))
    ]
    assert len(steps) == 4
    assert set(steps) <= {step.command for step in typed}

    folder = tmp_path / "d"
    folder.mkdir()
    with running(folder, f"--api-server={program('testcluster')}") as demonstration:
        demonstration.printed("(that is denied)")
        shell = Shell(tmp_path, Path(demonstration.printed("export KUBECONFIG=(.*)")))
        for step in typed:
            assert shell.type(in_the_demonstration(step)) == ""


def in_the_demonstration(step: Step) -> Step:
    """The step where replicas have other names, and a cluster that has policies already."""
    words = step.words.replace("waddle-webhook-0", "waddle-0")
    return Step(step.command, step.code, words, until=True)
