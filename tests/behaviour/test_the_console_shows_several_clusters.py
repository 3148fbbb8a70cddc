"""`waddle console --context a --context b`: a page of all clusters, and the pages of each."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path

import pytest
import yaml

from tests.behaviour.consoles import CONSTRAINTS, template
from tests.patience import PATIENCE_SECONDS, until
from tests.webhook.console.assembled import KIND, policy
from tests.webhook.console.listing import Listing
from tests.webhook.console.running import RunningConsole
from webhook.cli.cluster_access import TEMPLATES

STAGING, PRODUCTION = "staging", "arn:aws:eks:eu:1:cluster/production"
BELOW = "/clusters/arn-aws-eks-eu-1-cluster-production"


def merged(folder: Path, **listings: Listing) -> Path:
    """A kubeconfig with a context for each, as `kubectl config view --flatten` merges them."""
    entries = {}
    for key in ("clusters", "users", "contexts"):
        entries[key] = [
            {**item, "name": name}
            for name, one in listings.items()
            for item in yaml.safe_load(one.kubeconfig.read_text())[key]
        ]
    for item in entries["contexts"]:
        item["context"] = {"cluster": item["name"], "user": item["name"]}
    file = folder / "merged"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **entries}))
    return file


@pytest.fixture
def console(tmp_path: Path) -> Iterator[RunningConsole]:
    with ExitStack() as stack:
        listings = {}
        for name in (STAGING, PRODUCTION):
            folder = tmp_path / name.rpartition("/")[2]
            folder.mkdir()
            listings[name] = stack.enter_context(Listing(folder, KIND))
        listings[PRODUCTION].put(TEMPLATES, template())
        listings[PRODUCTION].put(CONSTRAINTS, policy())
        options = [f"--kubeconfig={merged(tmp_path, **listings)}"]
        options += [f"--context={name}" for name in listings]
        yield stack.enter_context(RunningConsole(*options)).ready()


def test_each_cluster_has_its_own_pages_and_one_page_has_them_all(console: RunningConsole):
    def rows() -> dict[str, int]:
        return {one["name"]: one["policies"]["total"] for one in console.json("/")["clusters"]}

    until(lambda: rows() == {STAGING: 0, PRODUCTION: 2}, "both are read")
    page = console.get("/").body.decode()
    assert f"<bdi>{PRODUCTION}</bdi>" in page
    assert f'href="{BELOW}/"' in page

    constraint = f"/policy?kind={KIND}&name=owner"
    assert console.get(f"{BELOW}{constraint}").status == 200
    assert console.get(f"/clusters/{STAGING}{constraint}").status == 404
    assert console.get(constraint).status == 404, "of no cluster"
    assert console.get("/clusters/none/").status == 404


def test_every_link_stays_in_its_cluster_and_every_command_names_it(console: RunningConsole):
    path = f"{BELOW}/policy?kind={KIND}&name=owner"
    until(lambda: console.get(path).status == 200, "the constraint")
    for command in console.json(path)["commands"]:
        assert command["command"].startswith(f"kubectl --context={PRODUCTION} ")
    seen, ahead = set(), {f"{BELOW}/", path}
    while ahead:
        seen.add(one := ahead.pop())
        answer = console.get(one)
        assert answer.status == 200, one
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        text = answer.body.decode()
        links = {unescape(link) for link in re.findall(r'(?:href|src|action)="(/[^"]*)"', text)}
        assert {link for link in links if not link.startswith("/clusters/")} <= {"/"}
        assert (
            re.search(rf'data-events="{BELOW}/events(\?replicas)?"', text)
            or "data-live" not in text
        )
        ahead |= {link for link in links if link.startswith(BELOW)} - seen
    assert {urlpath.partition("?")[0].removeprefix(BELOW) for urlpath in seen} >= {
        *("/", "/policies", "/violations", "/decisions", "/rollouts", "/playground", "/health"),
        *("/policy", "/static/console.css", "/static/console.js"),
    }


def test_what_is_tried_is_tried_on_the_policies_of_that_cluster(console: RunningConsole):
    form = {"mode": "review", "input": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"}
    until(lambda: console.get(f"{BELOW}/policy?kind={KIND}&name=owner").status == 200, "it is read")
    for below in (BELOW, f"/clusters/{STAGING}"):
        answer = console.post(f"{below}/playground", form)
        assert answer.status == 200, answer.body[-500:]


def test_what_is_of_one_cluster_alone_is_refused_for_several(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    log.touch()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "webhook",
            "console",
            "--context=a",
            "--context=b",
            f"--decisions={log}",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 64
    assert "--decisions is the log of one cluster" in done.stderr
