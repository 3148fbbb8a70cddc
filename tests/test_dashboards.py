"""Grafana's dashboards ask for metrics and labels that there are, in queries that Prometheus takes."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.dashboards import DASHBOARDS, FOLDER, SUFFIXES, dashboard, metrics_of
from tests.decisions.process import Sidecar
from tests.grafana_schema import faults
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from webhook.metrics.exposition import METRICS

SCRAPED = {"pod", "le"}
"""The scraper's label, and histograms' own."""


def queries(name: str) -> Iterator[tuple[str, str]]:
    """Each query with what its lines are called."""
    for panel in json.loads((FOLDER / f"{name}.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_as_it_would_be_made_now(name: str) -> None:
    written = json.loads((FOLDER / f"{name}.json").read_text())
    assert written == dashboard(name), "python -m tests.dashboards makes it anew"


def test_there_is_no_dashboard_that_is_not_made() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == DASHBOARDS.keys()


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Every metric that is exposed, with its labels: by servers as declared, by sidecars as told."""
    found = {metric.name: set(metric.labels) for metric in METRICS}
    sink = {"name": "out", "type": "stdout", "settings": {}}
    with Sidecar(tmp_path_factory.mktemp("sidecar"), [sink]) as sidecar:
        text = sidecar.get("/metrics")[1]
    for family in text_string_to_metric_families(text):
        found.setdefault(family.name, set())
        for sample in family.samples:
            found[family.name] |= sample.labels.keys()
    return found


@pytest.mark.parametrize("name", DASHBOARDS)
def test_each_query_asks_for_metrics_and_labels_that_there_are(
    name: str, labels: dict[str, set[str]]
) -> None:
    for expression, legend in queries(name):
        words = metrics_of(expression)
        assert words, expression
        known = set(SCRAPED)
        for word in words:
            base = next((word.removesuffix(end) for end in SUFFIXES if word.endswith(end)), word)
            assert base in labels or word in labels, word
            known |= labels.get(base, set()) | labels.get(word, set())
        grouped = {
            label
            for text in re.findall(r"by \(([^)]*)\)", expression)
            for label in text.split(", ")
        }
        selected = set(re.findall(r"[{,]([a-z_]+)[=!]", expression))
        shown = set(re.findall(r"\{\{([a-z_]+)\}\}", legend))
        assert grouped | selected <= known, expression
        assert shown <= grouped, (expression, legend)


def test_counters_are_asked_for_their_rate_and_gauges_are_not() -> None:
    kinds = {metric.name: metric.kind for metric in METRICS}
    for name in DASHBOARDS:
        for expression, _ in queries(name):
            for word in metrics_of(expression):
                rated = re.search(rf"rate\({word}\{{", expression) is not None
                base = next((word.removesuffix(end) for end in SUFFIXES if word.endswith(end)), "")
                assert rated == (word not in kinds and base != ""), expression


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_keeps_to_grafanas_schema(name: str) -> None:
    assert list(faults(json.loads((FOLDER / f"{name}.json").read_text()))) == []


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("panels", 0, "type"), "timeserie", "panels[0]: no panel is of the type 'timeserie'"),
        (("panels", 0, "title"), 7, "panels[0].title: 7 is not of"),
        (("panels", 0, "targets"), {}, "panels[0].targets"),
        (("panels", 2, "options"), {"legend": {"showLegend": "yes"}}, "show_legend: 'yes'"),
        (("panels", 2, "options"), {"tooltip": 1}, "it cannot be read"),
        (("panels", 2, "gridPos", "wide"), 12, "gridPos: Grafana knows no 'wide' there"),
        (("panels", 2, "gridPos", "w"), "12", "w: '12' is not of"),
        (("panels", 2, "gridPos", "w"), 0.5, "w: 0.5 is not of"),
        (("panels", 2, "fieldConfig", "defaults", "units"), "s", "Grafana knows no 'units' there"),
        (("panels", 2, "fieldConfig", "defaults", "unit"), "seconds", "no unit 'seconds'"),
        (("panels", 2, "fieldConfig", "defaults", "custom"), {"drawStyle": "dots"}, "'dots'"),
        (("panels", 2, "targets", 0, "expression"), "up", "Grafana knows no 'expression' there"),
        (("panels", 2, "targets", 0, "expr"), None, "expr: None is not of"),
        (("panels", 2, "targets", 0, "format"), "graph", "'graph' is not of"),
        (("panels", 2, "options"), {"legends": {"showLegend": True}}, "knows no 'legends' there"),
        (("panels", 2, "datasource", "type"), "prometeus", "no data source"),
        (("templating", "list", 1, "type"), "search", "'search'"),
        (("templating", "list", 1, "multi"), "yes", "multi: 'yes' is not of"),
        (("schemaVersion",), "39", "schema_version: '39' is not of"),
        (("refreshed",), "30s", "Grafana knows no 'refreshed' there"),
    ],
)
def test_a_dashboard_that_does_not_keep_to_it_is_reported(
    path: tuple[str | int, ...], value: Any, message: str
) -> None:
    document: Any = json.loads((FOLDER / "serving.json").read_text())
    owner = document
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = value
    assert message in "\n".join(faults(document))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafana_finds_what_it_needs(name: str) -> None:
    """The fields by which it imports, places and draws."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    assert found["uid"] == f"waddle-{name}"
    assert len(found["uid"]) <= 40, "Grafana's own bound"
    assert {"title", "schemaVersion", "templating", "time", "panels"} <= found.keys()
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    variables = {item["name"] for item in found["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)\b", json.dumps(found["panels"]))) <= variables
    taken: set[tuple[int, int]] = set()
    for panel in found["panels"]:
        assert panel["title"]
        assert panel["description"]
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, "no panel lies on another"
        taken |= cells


def test_prometheus_takes_every_query(tmp_path: Path, program: Programs) -> None:
    rules = [
        {"record": f"q:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(
            expression for name in DASHBOARDS for expression, _ in queries(name)
        )
    ]
    file = tmp_path / "rules.yaml"
    named = [rule | {"record": rule["record"].replace(":", ":n")} for rule in rules]
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": named}]}))
    done = subprocess.run(
        [program("promtool"), "check", "rules", file],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
