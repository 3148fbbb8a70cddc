"""Each alert, by promtool's own tests: it fires where it must, with its text, and else it is quiet."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml

from tests.decisions.process import Sidecar
from tests.manifests import MANIFESTS
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from webhook.metrics.exposition import METRICS

RULES = (
    MANIFESTS / "components" / "alerts" / "prometheus-rule.yaml",
    MANIFESTS / "decisions" / "alerts" / "prometheus-rule.yaml",
)


def alerts() -> dict[str, dict[str, Any]]:
    """Every alert by its name."""
    found = [
        alert
        for path in RULES
        for group in yaml.safe_load(path.read_text())["spec"]["groups"]
        for alert in group["rules"]
    ]
    assert len({alert["alert"] for alert in found}) == len(found)
    return {alert["alert"]: alert for alert in found}


class Case(NamedTuple):
    """Series with their values minute by minute, when an alert fires on one and not on the other.

    ``labels`` are those of the alert that fires, beside its severity; on ``too`` it fires as well.
    """

    fires: dict[str, str]
    quiet: dict[str, str]
    labels: Mapping[str, str] = MappingProxyType({})
    at: str = "30m"
    too: Mapping[str, str] = MappingProxyType({})


POD = {"pod": "w-0"}
D = "waddle_decisions_"
OWN = 'pod="w-0",queue="own"'
HTTP = OWN + ',sink="http"'
QUEUE = POD | {"queue": "own"}
SINK = QUEUE | {"sink": "http"}
RISE = "0x20 3x40"
"""A counter that was 0, and is not after twenty minutes."""
BEGINS = "_x20 3x40"
"""A counter with labels that are new: there is no 0 before its first value."""
FLAT = "3x60"


def steady(series: str, fires: str, quiet: str, labels: dict[str, str], at: str = "30m") -> Case:
    """Returns a case of one series, by its values."""
    return Case({series: fires}, {series: quiet}, labels, at)


FAULTS = "waddle_policy_faults_total"
FAULT = 'pod="w-0",constraint_kind="K",cause="error",answer="reject"'

CASES = {
    # --- the decision log
    "WaddleDecisionsDropped": Case(
        {f'{D}dropped_total{{pod="w-0",reason="queue_full"}}': RISE},
        {
            f'{D}dropped_total{{pod="w-0",reason="queue_full"}}': FLAT,
            f'{D}dropped_total{{pod="w-0",reason="sampled"}}': "0+9x60",
            f'{D}dropped_total{{pod="w-0",reason="rule"}}': "0+9x60",
        },
        POD | {"reason": "queue_full"},
        "25m",
    ),
    "WaddleDecisionsDisconnected": steady(
        f'{D}connected{{pod="w-0"}}', "1x10 0x50", "0x10 1 0x10 1x40", POD, "25m"
    ),
    "WaddleDecisionsExportFaults": steady(
        f'{D}export_faults_total{{pod="w-0"}}', RISE, FLAT, POD
    ),
    "WaddleDecisionsSidecarAway": Case(
        {
            f'{D}queued{{pod="w-0"}}': "4x60",
            f'{D}queued{{pod="w-1"}}': "4x60",
            f'{D}queue_bytes{{pod="w-1",queue="own"}}': "1x60",
        },
        {
            f'{D}queued{{pod="w-0"}}': "4x60",
            f'{D}queue_bytes{{pod="exporter-0",queue="own"}}': "1x60",
        },
        POD,
    ),
    "WaddleDecisionsQueueBlocked": steady(
        f'{D}queue_blocked{{pod="w-0"}}', "1x60", "1x20 0 1 0 1 0 1x3 0x40", POD, "26m"
    ),
    "WaddleDecisionsQueueFilling": Case(
        {f"{D}queue_bytes{{{OWN}}}": "80x60", f"{D}queue_bytes_max{{{OWN}}}": "100x60"},
        {f"{D}queue_bytes{{{OWN}}}": "60x60", f"{D}queue_bytes_max{{{OWN}}}": "100x60"},
        QUEUE,
    ),
    "WaddleDecisionsVolumeFilling": Case(
        {f"{D}queue_free_bytes{{{OWN}}}": "99x60", f"{D}queue_free_bytes_min{{{OWN}}}": "64x60"},
        {f"{D}queue_free_bytes{{{OWN}}}": "999x60", f"{D}queue_free_bytes_min{{{OWN}}}": "64x60"},
        QUEUE,
    ),
    "WaddleDecisionsSinkFailing": steady(
        f"{D}sink_consecutive_failures{{{HTTP}}}", "20x60", "9x60", SINK
    ),
    "WaddleDecisionsLate": steady(
        f"{D}sink_oldest_unsent_seconds{{{HTTP}}}", "1000x60", "800x60", SINK
    ),
    "WaddleDecisionsLost": Case(
        {
            f"{D}sink_dropped_total{{{HTTP}}}": RISE,
            f"{D}sink_corrupt_total{{{HTTP}}}": "0x60",
        },
        {f"{D}sink_dropped_total{{{HTTP}}}": FLAT, f"{D}sink_corrupt_total{{{HTTP}}}": "0x60"},
        SINK,
    ),
    "WaddleDecisionsQueueDamaged": steady(f"{D}queue_damaged{{{OWN}}}", "1x60", "0x60", QUEUE),
    "WaddleDecisionsDeadLettered": steady(f"{D}sink_dead_lettered_total{{{HTTP}}}", RISE, FLAT, SINK),
    "WaddleDecisionsCommitFailing": steady(
        f'{D}commit_failures_total{{pod="w-0"}}', RISE, FLAT, POD, "25m"
    ),
    "WaddleDecisionsAdoptionFailing": steady(
        f'{D}adoption_failures_total{{pod="w-0"}}', "0+1x60", FLAT, POD, "40m"
    ),
    "WaddleDecisionsRejected": steady(f'{D}rejected_total{{pod="w-0"}}', RISE, FLAT, POD),
    # --- everything else
    "WaddleNotReady": Case(
        {
            'waddle_ready{pod="w-0",process="admission"}': "0x60",
            'waddle_ready{pod="w-1",process="admission"}': "1x20 _x40",
            'waddle_ready{pod="a-0",process="audit"}': "1x60",
        },
        {
            'waddle_ready{pod="w-0",process="admission"}': "0x60",
            'waddle_ready{pod="w-1",process="admission"}': "1x60",
        },
    ),
    "WaddleReplicasDiffer": Case(
        {
            'waddle_snapshot_info{pod="w-0",digest="a"}': "1x60",
            'waddle_snapshot_info{pod="w-1",digest="b"}': "1x60",
        },
        {
            'waddle_snapshot_info{pod="w-0",digest="a"}': "1x60",
            'waddle_snapshot_info{pod="w-1",digest="a"}': "1x60",
        },
    ),
    "WaddleErrors": Case(
        {'gatekeeper_validation_request_count_total{pod="w-0",admission_status="error"}': "0+60x60"},
        {'gatekeeper_validation_request_count_total{pod="w-0",admission_status="deny"}': "0+60x60"},
        POD,
    ),
    "WaddleRefusesRequests": steady(
        'waddle_requests_refused_total{pod="w-0",reason="overload"}',
        "0+60x60",
        "0+1x60",
        POD | {"reason": "overload"},
    ),
    "WaddleSlow": Case(
        {
            'gatekeeper_validation_request_duration_seconds_bucket{pod="w-0",le="0.5"}': "0x60",
            'gatekeeper_validation_request_duration_seconds_bucket{pod="w-0",le="1"}': "0+9x60",
            'gatekeeper_validation_request_duration_seconds_bucket{pod="w-0",le="+Inf"}': "0+9x60",
        },
        {
            'gatekeeper_validation_request_duration_seconds_bucket{pod="w-0",le="0.5"}': "0+9x60",
            'gatekeeper_validation_request_duration_seconds_bucket{pod="w-0",le="1"}': "0+9x60",
            'gatekeeper_validation_request_duration_seconds_bucket{pod="w-0",le="+Inf"}': "0+9x60",
        },
    ),
    "WaddleCertificateEnds": steady(
        'waddle_cert_not_after_timestamp_seconds{pod="w-0"}', "999999x90", "9999999x90", POD, "80m"
    ),
    "WaddleReloadFailing": steady(
        'waddle_reload_failing{pod="w-0",subject="policies"}',
        "1x60",
        "0x60",
        POD | {"subject": "policies"},
    ),
    "WaddlePolicyFaults": Case(
        {f"{FAULTS}{{{FAULT}}}": RISE},
        {f"{FAULTS}{{{FAULT}}}": FLAT},
        POD | {"constraint_kind": "K", "cause": "error"},
        "25m",
        {f"{FAULTS}{{{FAULT}}}": BEGINS},
    ),
    "WaddleConstraintSuspended": steady(
        'waddle_constraint_suspended{pod="w-0",constraint_kind="K",constraint_name="n"}',
        "1x60",
        "0x60",
        POD | {"constraint_kind": "K", "constraint_name": "n"},
    ),
    "WaddleEventLoopLate": Case(
        {
            'waddle_event_loop_delay_seconds_bucket{pod="w-0",le="0.1"}': "0x60",
            'waddle_event_loop_delay_seconds_bucket{pod="w-0",le="1"}': "0+9x60",
            'waddle_event_loop_delay_seconds_bucket{pod="w-0",le="+Inf"}': "0+9x60",
        },
        {
            'waddle_event_loop_delay_seconds_bucket{pod="w-0",le="0.1"}': "0+9x60",
            'waddle_event_loop_delay_seconds_bucket{pod="w-0",le="1"}': "0+9x60",
            'waddle_event_loop_delay_seconds_bucket{pod="w-0",le="+Inf"}': "0+9x60",
        },
        POD,
    ),
    "WaddleEvaluationErrors": Case(
        {'waddle_evaluation_errors_total{pod="w-0",constraint_kind="K"}': RISE},
        {'waddle_evaluation_errors_total{pod="w-0",constraint_kind="K"}': FLAT},
        POD | {"constraint_kind": "K"},
        "25m",
        {'waddle_evaluation_errors_total{pod="w-0",constraint_kind="K"}': BEGINS},
    ),
    "WaddlePolicyError": steady(
        'waddle_policies{pod="w-0",kind="template",state="error"}',
        "1x60",
        "0x60",
        {"kind": "template"},
    ),
    "WaddlePolicyDegraded": steady(
        'waddle_policies{pod="w-0",kind="template",state="degraded"}',
        "1x60",
        "0x60",
        {"kind": "template"},
    ),
    "WaddlePolicyNotEnforced": steady(
        'waddle_policies_not_newest{pod="w-0",kind="template",cause="none"}',
        "1x60",
        "0x60",
        POD | {"kind": "template"},
    ),
    "WaddleCertificateFaults": steady('waddle_certificate_faults{pod="w-0"}', "1x60", "0x60", POD),
    "WaddleCertificateContested": Case(
        {
            'waddle_api_writes_total{pod="w-0",what="certificate"}': "0+1x60",
            'waddle_api_writes_total{pod="w-0",what="by_pod"}': FLAT,
        },
        {
            'waddle_api_writes_total{pod="w-0",what="certificate"}': RISE,
            'waddle_api_writes_total{pod="w-0",what="by_pod"}': "0+9x60",
        },
    ),
    "WaddlePolicyNotAsked": steady(
        'waddle_policies{pod="w-0",kind="constraint",state="notasked"}',
        "1x60",
        "1x20 0x40",
        {"kind": "constraint"},
    ),
    "WaddlePoliciesGone": steady(
        'gatekeeper_constraints{pod="w-0",enforcement_action="deny",status="active"}',
        "3x60 0x60",
        "3x120",
        {},
        "90m",
    ),
    "WaddleKyvernoPolicyError": steady(
        'waddle_kyverno_policies{pod="w-0",status="error"}',
        "1x60",
        "0x60",
        {"status": "error"},
    ),
    "WaddlePolicyRolledBack": steady(
        'waddle_policies{pod="w-0",kind="template",state="rolledback"}',
        "1x1600",
        "1x700 0x900",
        {"kind": "template"},
        "1500m",
    ),
    "WaddleProviderSuspended": steady(
        'waddle_providers_suspended{pod="w-0",provider="signatures"}',
        "1x60",
        "0x60",
        {"provider": "signatures"},
    ),
    "WaddleMutatorFighting": steady(
        'waddle_mutators_fighting{pod="w-0",mutator_kind="Assign",mutator_name="m"}',
        "1x60",
        "0x60",
        {"mutator_kind": "Assign", "mutator_name": "m"},
    ),
    "WaddleReportLimit": steady(
        'waddle_report_limit_reached{pod="w-0",process="audit"}',
        "1x60",
        "0x60",
        {"process": "audit"},
    ),
    "WaddleReportsLost": steady(
        'waddle_reports_lost_total{pod="w-0",process="audit",reason="failed"}',
        "0+1x90",
        "3x90",
        {"process": "audit", "reason": "failed"},
        "80m",
    ),
    "WaddleAuditLate": Case(
        {
            'gatekeeper_audit_last_run_end_time{pod="a-0"}': "0+60x10 _x50",
            'waddle_ready{pod="a-0",process="audit"}': "1x10 _x50",
        },
        {
            'gatekeeper_audit_last_run_end_time{pod="a-0"}': "_x20 1200+60x40",
            'waddle_ready{pod="a-0",process="audit"}': "1x60",
        },
        {},
        "50m",
        {'waddle_ready{pod="a-0",process="audit"}': "1x60"},
    ),
    "WaddleAuditIncomplete": steady(
        'waddle_audit_constraints_undecided{pod="a-0"}', "2x60", "0x60", {}, "45m"
    ),
    "WaddleCannotWrite": steady(
        'waddle_api_write_failures_total{pod="w-0",what="status"}',
        "0+2x60",
        "0x15 1x45",
        POD | {"what": "status"},
    ),
    "WaddleClockSkew": Case(
        {'waddle_clock_skew_seconds{pod="w-0"}': "-40x60"},
        {'waddle_clock_skew_seconds{pod="w-0"}': "-20x60"},
        POD,
    ),
    "WaddleVersionsDiffer": Case(
        {
            'waddle_build_info{pod="w-0",version="1"}': "1x120",
            'waddle_build_info{pod="w-1",version="2"}': "1x120",
        },
        {
            'waddle_build_info{pod="w-0",version="1"}': "1x120",
            'waddle_build_info{pod="w-1",version="1"}': "1x120",
        },
        at="90m",
    ),
    "WaddleDoesNotFollow": steady(
        'waddle_watch_errors_total{pod="w-0"}', "0+5x60", "0+1x60", POD
    ),
}  # fmt: skip


def test_every_alert_has_its_case() -> None:
    assert sorted(CASES) == sorted(alerts())


def rendered(text: str, labels: Mapping[str, str]) -> str:
    """An annotation's template for these labels."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)


@pytest.mark.slow(20)
def test_promtool_says_of_each_alert_when_it_fires_and_when_not(
    tmp_path: Path, program: Programs
) -> None:
    tests = []
    groups = [
        group for path in RULES for group in yaml.safe_load(path.read_text())["spec"]["groups"]
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    for name, case in CASES.items():
        alert = alerts()[name]
        expected = {
            "exp_labels": {**alert["labels"], **case.labels},
            "exp_annotations": {
                key: rendered(text, case.labels) for key, text in alert["annotations"].items()
            },
        }
        for series, expectation in (
            (case.fires, [expected]),
            (case.too, [expected]),
            (case.quiet, []),
        ):
            if not series:
                continue
            tests.append(
                {
                    "name": f"{name} {'fires' if expectation else 'is quiet'}",
                    "interval": "1m",
                    "input_series": [{"series": key, "values": series[key]} for key in series],
                    "alert_rule_test": [
                        {"eval_time": case.at, "alertname": name, "exp_alerts": expectation}
                    ],
                }
            )
    written = tmp_path / "tests.yaml"
    written.write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests})
    )
    done = subprocess.run(
        [program("promtool"), "test", "rules", written],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_on_decisions_are_about_metrics_that_a_sidecar_or_a_server_has(
    tmp_path: Path,
) -> None:
    """The series of the cases have the labels of the real ones."""
    with Sidecar(tmp_path, [{"name": "http", "type": "stdout"}]) as sidecar:
        exposed = sidecar.get("/metrics")[1]
    series: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(waddle_\w+)(?:\{(.*)\})? ", exposed, re.MULTILINE):
        series[name] = set(re.findall(r'(\w+)="', labels))
    for metric in METRICS:
        suffix = "_total" if metric.kind == "counter" else ""
        series[metric.name + suffix] = set(metric.labels)
    text = yaml.safe_load(RULES[1].read_text())["spec"]["groups"][0]["rules"]
    for alert in text:
        used = set(re.findall(r"waddle_\w+", alert["expr"]))
        assert used <= series.keys(), alert["alert"]
        case = CASES[alert["alert"]]
        for found in (*case.fires, *case.quiet):
            name, _, labels = found.partition("{")
            assert set(re.findall(r'(\w+)="', labels)) - {"pod"} == series[name], found


def test_every_alert_on_decisions_has_its_row_for_the_reader_at_night() -> None:
    text = (MANIFESTS.parent / "docs" / "troubleshooting.md").read_text()
    names = [alert for alert in alerts() if alert.startswith("WaddleDecisions")]
    assert len(names) > 10
    assert [name for name in names if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("path", RULES, ids=("policies", "decisions"))
def test_promtool_takes_the_rules(path: Path, tmp_path: Path, program: Programs) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": yaml.safe_load(path.read_text())["spec"]["groups"]}))
    subprocess.run(
        [program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", rules],
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
