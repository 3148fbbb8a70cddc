"""``waddle serve`` with its decision log: what a sidecar gets, and that nothing is paid without."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import (
    FAILING,
    REQUIRED_LABELS,
    SLOW,
    Server,
    await_true,
    constraint,
    pod,
    review,
    thing,
    write_policies,
)
from tests.decisions.process import ROOT, Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def sidecar(tmp_path: Path, receiver: Receiver) -> Iterator[Sidecar]:
    sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
    with Sidecar(tmp_path / "sidecar", [sink]) as running:
        yield running


def decisions(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    """The decisions that arrived, once there are so many; the process's own events apart."""

    def found() -> list[dict[str, Any]]:
        return [record for record in receiver.records if record["eventType"] == "decision"]

    with receiver.changed:
        assert receiver.changed.wait_for(lambda: len(found()) >= count, PATIENCE_SECONDS)
        return found()


def exporting(folder: Path, sidecar: Sidecar, *flags: str, **settings: Any) -> Server:
    policies = write_policies(
        folder / "policies",
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        constraint("likes-team", "team", action="warn"),
        SLOW,
        FAILING,
    )
    config = folder / "decisions.yaml"
    config.write_text(json.dumps({"sidecarURL": sidecar.url, "flushSeconds": 0.01, **settings}))
    environment = {**os.environ, "POD_UID": "uid-1", "POD_NAME": "waddle-0", "NODE_NAME": "n"}
    return Server(
        policies,
        f"--decision-log-config={config}",
        "--evaluation-budget=1m",
        f"--decision-log-grace={PATIENCE_SECONDS:.0f}s",
        *flags,
        environment=environment,
    )


def test_each_answer_has_its_record(tmp_path: Path, sidecar: Sidecar, receiver: Receiver) -> None:
    """Deny, warn and allow, with who, what, why, and the id that the audit log has too."""
    with exporting(tmp_path, sidecar, labels={"cluster": "c1"}) as server:
        server.ready()
        answers = [
            server.admit(pod(), userInfo={"username": "alice", "groups": ["dev"]}),
            server.admit(pod(owner="me")),
            server.admit(thing("Service")),
        ]
        records = decisions(receiver, 3)
    denied, warned, allowed = records
    for answer, record in zip(answers, records, strict=True):
        assert answer["auditAnnotations"] == {"decision-id": record["id"]}
        assert answer["allowed"] is record["allowed"]
        assert answer["status"]["code"] == record["code"]
        assert record["specVersion"] == "1.0"
        assert record["podUID"] == "uid-1"
        assert record["pod"] == "waddle-0"
        assert record["labels"] == {"cluster": "c1"}
        assert record["policyDigest"]
        assert record["durationNs"] > 0
        assert "object" not in record
    assert [record["verdict"] for record in records] == ["deny", "warn", "allow"]
    # Before them come the process's start and the policies that it took.
    assert [record["sequence"] for record in records] == [3, 4, 5]
    started, policies = receiver.records[:2]
    assert (started["event"], policies["event"]) == ("started", "policies")
    assert policies["details"] == {
        "digest": denied["policyDigest"],
        "templates": 3,
        "constraints": 4,
    }
    assert denied["requestUsername"] == "alice"
    assert denied["requestUserGroups"] == ["dev"]
    assert denied["resourceName"] == "web"
    assert denied["resourceNamespace"] == "default"
    assert [one["message"] for one in denied["results"]] == [
        "label <owner> is missing",
        "label <team> is missing",
    ]
    assert denied["results"][0]["constraint"]["name"] == "needs-owner"
    assert denied["results"][0]["template"] == "requiredlabel"
    assert [one["enforcementAction"] for one in denied["results"]] == ["deny", "warn"]
    assert warned["constraintsEvaluated"] == 2
    assert "results" not in allowed


def test_what_is_refused_as_undecidable_is_recorded_with_the_constraint_and_the_cause(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    with exporting(tmp_path, sidecar) as server:
        server.ready()
        # Time in which it has 50 ms of a busy processor, beside the thread that answers.
        assert server.post(review(thing("ConfigMap")), "/v1/admit?timeout=10s").status == 200
        (record,) = decisions(receiver, 1)
    assert (record["allowed"], record["code"]) == (False, 422)
    (undecided,) = record["undecided"]
    assert (undecided["cause"], undecided["answer"]) == ("object", "reject")


def test_sigterm_waits_until_the_last_answer_s_record_is_acknowledged(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    with exporting(tmp_path, sidecar, flushSeconds=3600) as server:
        server.ready()
        for _ in range(20):
            server.admit(pod())
        assert server.stop() == 0
    assert len(decisions(receiver, 20)) == 20
    assert sidecar.metric("gaps_total") == 0


def test_records_of_a_sidecar_s_absence_arrive_after_it(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    backoff = {"initialSeconds": 0.01, "maxSeconds": 0.1}
    with exporting(tmp_path, sidecar, backoff=backoff) as server:
        server.ready()
        server.admit(pod())
        decisions(receiver, 1)
        sidecar.kill()
        for _ in range(30):
            assert server.admit(pod())["status"]["code"] == 403
        sidecar.start().ready()
        decisions(receiver, 31)
        await_true(lambda: {record["sequence"] for record in receiver.records} == set(range(1, 34)))
        # Records whose delivery was not saved before the kill arrive twice, still in order.
        first = dict.fromkeys(record["sequence"] for record in receiver.records)
        assert list(first) == list(range(1, 34))
        await_true(lambda: server.metric("waddle_decisions_acknowledged_total") == 33)
        assert server.metric("waddle_decisions_offered_total") == 33
        assert server.metric("waddle_decisions_queued") == 0


def test_readyz_says_that_the_sidecar_takes_no_records_and_where_it_should_be(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    """Its process is gone, then its socket too; the replica stays ready."""

    def notes() -> str:
        answer = server.get("health", "/readyz?verbose")
        assert answer.status == 200
        return answer.body.decode()

    backoff = {"initialSeconds": 0.01, "maxSeconds": 0.1}
    with exporting(tmp_path, sidecar, backoff=backoff) as server:
        server.ready()
        server.admit(pod())
        decisions(receiver, 1)
        await_true(lambda: "takes no records" not in notes())
        sidecar.kill()
        where = f"[!]the sidecar at {sidecar.url} takes no records of the decision log"
        await_true(lambda: where in notes() and "Connection refused" in notes())
        assert "kubectl logs POD -c decisions" in notes()
        sidecar.socket.unlink()
        await_true(lambda: "No such file or directory" in notes())
        sidecar.start().ready()
        server.admit(pod())
        await_true(lambda: "takes no records" not in notes())


def test_the_configuration_is_read_again_when_it_changes(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    with exporting(tmp_path, sidecar, "--poll-interval=100ms") as server:
        server.ready()
        server.admit(pod())
        decisions(receiver, 1)
        config = tmp_path / "decisions.yaml"
        settings = json.loads(config.read_text())
        config.write_text("sidecarURL: [broken")
        server.wait_for("the decision log's configuration was rejected; the last good one stays")
        assert server.metric('waddle_reload_failing{subject="decision_log"}') == 1
        config.write_text(json.dumps({**settings, "rules": [{"verdicts": ["deny"]}]}))
        server.wait_for("the decision log's configuration was loaded")
        server.admit(pod())
        server.admit(pod(owner="me"))
        assert [record["verdict"] for record in decisions(receiver, 2)] == ["deny", "warn"]
        assert server.metric('waddle_decisions_dropped_total{reason="rule"}') == 1


def test_objects_are_recorded_if_wanted_and_secrets_masked(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    secret = {**thing("Secret"), "data": {"password": "aHVudGVyMg=="}}
    mask = ["object.metadata.labels.private"]
    with exporting(tmp_path, sidecar, includeObjects=True, mask=mask) as server:
        server.ready()
        server.admit(secret)
        server.admit(pod(private="yes", owner="me"))
        first, second = decisions(receiver, 2)
    assert first["object"]["data"] == {"password": "**masked**"}
    assert second["object"]["metadata"]["labels"] == {"private": "**masked**", "owner": "me"}
    assert second["masked"] == ["object.metadata.labels.private"]
    assert second["userInfo"] == {"username": "alice"}


def test_a_wrong_configuration_stops_the_start_with_its_place(
    tmp_path: Path, sidecar: Sidecar
) -> None:
    policies = write_policies(tmp_path / "policies", REQUIRED_LABELS)
    config = tmp_path / "decisions.yaml"
    config.write_text("sidecarURL: pigeon://loft")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "webhook", "serve", f"--policies={policies}"),
            *("--host=127.0.0.1", "--port=0", "--health-addr=127.0.0.1:0", "--prometheus-port=0"),
            f"--decision-log-config={config}",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert "--decision-log-config" in done.stderr
    assert "unknown scheme 'pigeon'" in done.stderr


def test_with_the_log_off_nothing_of_it_is_imported(tmp_path: Path) -> None:
    """A server that has answered reviews has not imported webhook.decisions."""
    policies = write_policies(
        tmp_path / "policies", REQUIRED_LABELS, constraint("needs-owner", "owner")
    )
    report = tmp_path / "modules"
    program = (
        "import atexit, sys, pathlib\n"
        f"atexit.register(lambda: pathlib.Path({str(report)!r}).write_text(chr(10).join(sys.modules)))\n"
        "from webhook.cli.main import main\n"
        "main()\n"
    )
    hook = tmp_path / "hook"
    hook.mkdir()
    # `python -m webhook` runs this in the place of the package's own __main__.
    (hook / "sitecustomize.py").write_text(program.partition("from webhook")[0])
    environment = {**os.environ, "PYTHONPATH": str(hook)}
    with Server(policies, environment=environment) as server:
        server.ready()
        assert server.admit(pod())["status"]["code"] == 403
        assert "auditAnnotations" not in server.admit(pod(owner="me"))
        assert server.stop() == 0
    imported = report.read_text().split()
    assert "webhook.server.admission" in imported
    assert [name for name in imported if name.startswith("webhook.decisions")] == []


def test_ten_thousand_audit_violations_with_details_arrive_whole(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    """An audit is many times the queue: it waits for room, and nothing is dropped."""
    from webhook import log
    from webhook.decisions.configuration import parse
    from webhook.decisions.exporter.encoding import Origin
    from webhook.decisions.exporter.exporter import Exporter
    from webhook.decisions.exporter.record import audit_finished, audit_started
    from webhook.decisions.exporter.settings import read_settings

    settings = {"sidecarURL": sidecar.url, "flushSeconds": 0.001, "queue": {"maxRecords": 200}}
    exporter = Exporter(
        read_settings(parse(json.dumps(settings).encode(), "test")),
        Origin(pod_uid="audit"),
        log.Log(lambda _: None).logger("test"),
    )

    async def audit() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(exporter.run())
            await exporter.put(audit_started(exporter.decision_id(), "run"))
            for number in range(2000):
                await exporter.put(
                    {
                        "eventType": "decision",
                        "id": exporter.decision_id(),
                        "auditID": "run",
                        "verdict": "deny",
                        "resourceName": f"object-{number}",
                        "results": [
                            {"message": f"m{n}", "details": {"lines": ["x" * 100] * 3}}
                            for n in range(5)
                        ],
                    }
                )
            await exporter.put(
                audit_finished(
                    exporter.decision_id(), "run", reviewed=2000, violations=10_000, duration_ns=1
                )
            )
            await exporter.drain(60)

    asyncio.run(audit())
    records = receiver.wait_for(2002)
    assert [record["sequence"] for record in records] == list(range(1, 2003))
    violations = [result for record in records for result in record.get("results", ())]
    assert len(violations) == 10_000
    assert all(result["details"] == {"lines": ["x" * 100] * 3} for result in violations)
    assert exporter.counters.dropped == {}


# --- the command line ----------------------------------------------------------------------------


def waddle(*arguments: str | Path, stdin: bytes = b"") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "webhook", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=stdin.decode(),
        check=False,
        cwd=ROOT,
    )


def test_recorded_traffic_is_shown_counted_and_replayed(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    """Recorded decisions replay unchanged with the same policies, and changed with others."""
    with exporting(tmp_path, sidecar, includeObjects=True) as server:
        server.ready()
        for labels in ({}, {"owner": "me", "team": "t"}, {"team": "t"}):
            server.admit(pod(**labels))
        server.admit(thing("Service"))
        server.admit(pod(), operation="DELETE")
        records = decisions(receiver, 5)
    recorded = tmp_path / "week.ndjson"
    recorded.write_text("".join(json.dumps(record) + "\n" for record in [*records, records[0]]))

    same = waddle("decisions", "replay", recorded, "--policies", tmp_path / "policies")
    assert same.returncode == 0, same.stderr
    assert "5 decisions replayed, 0 verdicts changed" in same.stdout

    others = write_policies(tmp_path / "others", REQUIRED_LABELS, constraint("needs-team", "team"))
    changed = waddle("decisions", "replay", recorded, "--policies", others)
    assert changed.returncode == 1
    assert "deny -> allow  CREATE Pod default/web by alice" in changed.stdout
    assert "- [RequiredLabel/needs-owner] label <owner> is missing" in changed.stdout
    document = json.loads(
        waddle("decisions", "replay", recorded, "--policies", others, "-o", "json").stdout
    )
    assert [(one["before"], one["after"]) for one in document["changed"]] == [("deny", "allow")]

    stats = json.loads(waddle("decisions", "stats", recorded, "-o", "json").stdout)
    assert stats["decisions"] == 5
    assert stats["duplicates"] == 1
    assert stats["verdicts"] == {"deny": 3, "allow": 2}
    assert stats["policies"][0] == {
        "kind": "RequiredLabel",
        "name": "needs-owner",
        "enforcementAction": "deny",
        "count": 3,
    }
    shown = waddle("decisions", "stats", recorded).stdout
    assert "5 decisions, 1 delivered twice" in shown

    lines = waddle("decisions", "tail", "-", stdin=recorded.read_bytes()).stdout.splitlines()
    assert lines[0].endswith("DENY   CREATE Pod default/web by alice")
    assert lines[1] == "    [RequiredLabel/needs-owner] deny: label <owner> is missing"
    queue = waddle("decisions", "tail", sidecar.queue).stdout
    assert queue.count("DENY ") == 3


def test_nothing_to_replay_is_not_taken_for_agreement(tmp_path: Path) -> None:
    policies = write_policies(tmp_path / "policies", REQUIRED_LABELS)
    record = {"eventType": "decision", "verdict": "allow", "constraintsEvaluated": 0}
    done = waddle(
        "decisions", "replay", "-", "--policies", policies, stdin=json.dumps(record).encode()
    )
    assert done.returncode == 2
    assert (
        "recorded without an object (includeObjects is off, or maxRecordBytes too low): 1"
        in done.stdout
    )


def test_a_record_s_text_cannot_steer_a_terminal(tmp_path: Path) -> None:
    record = {
        "eventType": "decision",
        "verdict": "deny",
        "resourceName": "a\x1b[2Jb\nc",
        "results": [{"message": "x\x1b]0;title\x07\ny"}],
    }
    shown = waddle("decisions", "tail", "-", stdin=json.dumps(record).encode()).stdout
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2


def test_a_queue_is_followed_while_a_sidecar_writes_it(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "webhook", "decisions", "tail", "-f", str(sidecar.queue)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        with exporting(tmp_path, sidecar) as server:
            server.ready()
            server.admit(pod())
            lines = [process.stdout.readline() for _ in range(3)]
            assert lines[0].endswith("lifecycle started\n")
            assert lines[2].endswith("CREATE Pod default/web by alice\n")
    finally:
        process.kill()
        process.communicate()


def test_a_denied_exemption_and_what_cannot_be_reviewed_are_on_record(
    tmp_path: Path, sidecar: Sidecar, receiver: Receiver
) -> None:
    """No policy decided about them: the record says what did."""
    label = "admission.gatekeeper.sh/ignore"
    with exporting(tmp_path, sidecar) as server:
        server.ready()
        namespace = thing("Namespace", "c", labels={label: ""})
        answer = server.post(review(namespace), "/v1/admitlabel").verdict
        deep = review(pod(owner="me", deep="@here@"))
        ordered = {name: deep[name] for name in ("kind", "apiVersion", "request")}
        raw = json.dumps(ordered, separators=(",", ":")).encode()
        refused = server.post(raw.replace(b'"@here@"', b"[" * 10_020 + b"]" * 10_020)).verdict
        denied, unread = decisions(receiver, 2)
    assert (answer["allowed"], refused["allowed"]) == (False, False)
    assert answer["auditAnnotations"] == {"decision-id": denied["id"]}
    assert (denied["verdict"], denied["allowed"], denied["code"]) == ("deny", False, 403)
    assert denied["errors"] == [f"Only exempt namespace can have the {label} label"]
    assert denied["resourceName"] == "c"
    assert (unread["verdict"], unread["allowed"]) == ("error", False)
    assert unread["requestUID"] == refused["uid"]
    assert "nested deeper" in unread["errors"][0]


def test_each_sink_gets_what_it_selects(tmp_path: Path, receiver: Receiver) -> None:
    """By kind, verdict, namespace and action, and in each format."""
    sinks = {
        "all": {},
        "denied": {"select": {"verdicts": ["deny"]}},
        "services": {"select": {"kinds": ["Serv*"]}},
        "warnings": {
            "select": {"actions": ["warn"], "points": ["admission"]},
            "format": "gatekeeper",
        },
        "audits": {"select": {"points": ["audit"]}},
        "elsewhere": {"select": {"namespaces": ["kube-*"], "points": ["admission"]}},
    }
    configured = [
        {"name": name, "type": "file", "settings": {"path": str(tmp_path / name)}, **more}
        for name, more in sinks.items()
    ]
    with Sidecar(tmp_path / "sidecar", configured) as sidecar:
        with exporting(tmp_path, sidecar) as server:
            server.ready()
            server.admit(pod())
            server.admit(pod(owner="me"))
            server.admit(thing("Service"))
        for name in sinks:
            sidecar.await_metric(f'sink_lag_records{{sink="{name}"}}', 0)
    found = {
        name: [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        if (tmp_path / name).exists()
        else []
        for name in sinks
    }
    kinds = {
        name: [record.get("verdict", record.get("eventType")) for record in records]
        for name, records in found.items()
    }
    assert kinds["all"].count("deny") == kinds["all"].count("warn") == 1
    assert [kind for kind in kinds["denied"] if kind != "lifecycle"] == ["deny"]
    assert [kind for kind in kinds["services"] if kind != "lifecycle"] == ["allow"]
    assert set(kinds["warnings"]) == {"violation_admission"}
    assert kinds["audits"] == kinds["elsewhere"] == []
    assert not receiver.records
