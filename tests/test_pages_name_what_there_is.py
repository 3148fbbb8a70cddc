"""Pages for the night name metrics, flags, alerts, messages and rights that there are."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts import SUFFIXES, alerts
from tests.manifests import MANIFESTS, helmed, with_components
from tests.programs import ROOT, Programs
from webhook.cli.pages.documents import PAGES as GENERATED
from webhook.metrics.exposition import METRICS

PAGES = ("troubleshooting", "sizing", "security", "operating", "telemetry", "console", "monitoring")
OF_SIDECARS = "waddle_decisions_sink_", "waddle_decisions_queue_"
OF_OTHERS = {
    "--admission-control-config-file",
    "--server-side",
    "--tail",
    "--prefix",
    "--raw",
    "--no-hooks",
    "--force-conflicts",
    "--reset-then-reuse-values",
    "--yes",
    "--show-managed-fields",
}
TEXTS = {page: (ROOT / "docs" / f"{page}.md").read_text() for page in PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_metrics_and_alerts_of_a_page_are_there(page: str) -> None:
    names = {metric.name for metric in METRICS}
    for word in re.findall(r"\b(?:waddle|gatekeeper)_[a-z_]+[a-z]", TEXTS[page]):
        base = next((word.removesuffix(end) for end in SUFFIXES if word.endswith(end)), word)
        assert base in names or word in names or word.startswith(OF_SIDECARS), word
    known = {alert["alert"] for alert in alerts()} | {
        alert["alert"]
        for file in (MANIFESTS / "decisions" / "alerts").glob("*.yaml")
        for document in yaml.safe_load_all(file.read_text())
        for group in (document.get("spec") or {}).get("groups", ())
        for alert in group["rules"]
    }
    named = set(re.findall(r"`(Waddle[A-Z]\w+)`", TEXTS[page]))
    assert named <= known


@pytest.mark.parametrize("page", ["troubleshooting", "sizing", "security"])
def test_flags_of_a_page_are_there(page: str) -> None:
    known = GENERATED["flags.md"]() + GENERATED["command-line.md"]()
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXTS[page])) - OF_OTHERS
    assert {flag for flag in flags if flag not in known} == set()


def test_flags_that_the_console_names_are_there() -> None:
    known = GENERATED["flags.md"]() + GENERATED["command-line.md"]()
    for template in sorted((ROOT / "webhook" / "console" / "templates").glob("*.html")):
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", template.read_text()):
            assert flag in known, f"{template.name}: {flag}"


def test_dashboards_and_panels_of_the_page_are_there() -> None:
    files = sorted((MANIFESTS / "dashboards").glob("*.json"))
    boards = {board["title"]: board for board in map(json.loads, map(Path.read_text, files))}
    rows = re.findall(r"^\| ([a-z, ]+) \| [^|]+ \| (\*.*) \|$", TEXTS["monitoring"], re.MULTILINE)
    assert {f"Waddle: {name}" for name, _ in rows} == boards.keys()
    for name, panels in rows:
        known = {panel["title"] for panel in boards[f"Waddle: {name}"]["panels"]}
        named = set(re.findall(r"\*([^*]+)\*", panels))
        assert named <= {title.partition(",")[0] for title in known} | known, name


def test_expressions_and_components_of_the_page_can_be_used(
    tmp_path: Path, program: Programs
) -> None:
    queries = re.findall(r"^\| [^|]+ \| `([^`]+\))[^`]*` \|$", TEXTS["monitoring"], re.MULTILINE)
    assert len(queries) == 7
    rules = [{"record": f"r{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "page", "rules": rules}]}))
    checked = subprocess.run(
        [program("promtool"), "check", "rules", file], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    mine, values = map(
        yaml.safe_load, re.findall(r"```yaml\n(.*?)```", TEXTS["monitoring"], re.DOTALL)
    )
    components = [one.removeprefix("manifests/") for one in mine["components"]]
    by_components = with_components(tmp_path, *components)
    options = ",".join(f"{name}.enabled=true" for name in values)
    for kinds in (
        {kind for kind, _, _ in by_components},
        {kind for kind, _, _ in helmed("--set", options)},
    ):
        assert {"PodMonitor", "PrometheusRule", "ConfigMap"} <= kinds


def test_refusals_are_worded_as_the_page_has_them() -> None:
    """The page contains the first words of each refusal."""
    table = TEXTS["troubleshooting"].partition("after `failed to call webhook:`")[2]
    table = table.partition("\n\n")[0]
    code = "".join(
        re.sub(r'"\s*\n\s*f?"', "", path.read_text())
        for path in sorted((ROOT / "webhook" / "server").rglob("*.py"))
    )
    ours = [row for row in table.splitlines() if re.search(r"\| `\w+` \|$", row)]
    assert len(ours) > 4
    for row in ours:
        for message in re.findall(r"`([^`]+)`", row.split("|")[1]):
            words = re.sub(r"not ready: policies are", "not ready: {missing} are", message)
            assert words.removesuffix(" …").removesuffix("…").removesuffix(" yet") in code, message


def test_lines_of_the_log_are_worded_as_the_page_has_them() -> None:
    """A reader copies the line from the page to find it."""
    log = r"\blogs?(?: of logger `\w+`|'s last)?[:,]? `([a-z]\w* [^`]+)`"
    lines = {
        *re.findall(log, TEXTS["troubleshooting"]),
        *re.findall(r"`([a-z]\w* [^`]+)`,? in the (?:sidecar's )?log", TEXTS["troubleshooting"]),
    }
    assert len(lines) > 15
    code = "".join(
        re.sub(r'"\s*\n\s*f?"', "", path.read_text())
        for path in sorted((ROOT / "webhook").rglob("*.py"))
    )
    assert {line for line in lines if line.removesuffix(" …") not in code} == set()


def rules(file: str, name: str) -> list[Any]:
    """The rules of every role of a name."""
    documents = yaml.safe_load_all((MANIFESTS / file).read_text())
    return [
        rule
        for document in documents
        if document["kind"] in {"Role", "ClusterRole"} and document["metadata"]["name"] == name
        for rule in document["rules"]
    ]


WRITTEN = {"create", "update", "patch", "delete"}


def test_what_replicas_may_write_is_what_the_page_says() -> None:
    """A right more, and this list and the page's are to be changed."""
    written = {
        resource
        for rule in rules("base/rbac.yaml", "waddle")
        for resource in rule["resources"]
        if WRITTEN & set(rule["verbs"])
    }
    assert {name for name in written if "/" not in name and "podstatus" not in name} == {
        *("customresourcedefinitions", "validatingadmissionpolicies", "policyrevisions"),
        *("validatingadmissionpolicybindings", "validatingwebhookconfigurations"),
        *("secrets", "events", "subjectaccessreviews"),
    }
    named = [rule for rule in rules("base/rbac.yaml", "waddle") if "secrets" in rule["resources"]]
    assert [rule["resourceNames"] for rule in named] == [
        ["waddle-webhook-server-cert"],
        ["waddle-revision-keys"],
    ]
    console = rules("components/console/rbac.yaml", "waddle-console")
    assert not any(WRITTEN & set(rule["verbs"]) for rule in console)
    assert not any("secrets" in rule["resources"] for rule in console)
