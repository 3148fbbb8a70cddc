"""Decisions of the servers in the decision log's world, and the expected records.

The product's recorder makes them; here they are written out by hand, and receivers compare.
"""

import dataclasses
import datetime as dt
import time
from typing import Any, Final

from tests.simulation.loop import Loop
from webhook.api.admission import AdmissionResponse, read_request
from webhook.constraint.constraint import Constraint
from webhook.constraint.result import Responses, Result
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.masking import Masking, parse_path
from webhook.decisions.exporter.recorder import AdmissionRecorder
from webhook.decisions.exporter.settings import ExporterSettings
from webhook.decisions.rules import RecordRule, RecordRules

PLAIN: Final[dict[str, Any]] = {}

SETTINGS: Final[tuple[dict[str, Any], ...]] = (
    *(PLAIN, PLAIN, PLAIN, PLAIN),
    {"rules": RecordRules((RecordRule(namespaces=("kube-*",)),))},
    {
        "include_objects": True,
        "masking": Masking((parse_path("object.data[*]"), parse_path("requestUsername"))),
    },
    {"include_user_info": False, "labels": {"cluster": "one"}},
)
"""Settings of exporters, beside their bounds."""

TARGET: Final = "admission.k8s.gatekeeper.sh"

CONSTRAINTS: Final = tuple(
    Constraint(
        "Always",
        name,
        {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "metadata": {"name": name, **more}},
    )
    for name, more in (("a", {"generation": 3}), ("b", {"annotations": {"severity": "high"}}))
)
DESCRIBED: Final = tuple(
    {"group": "constraints.gatekeeper.sh", "version": "v1beta1", "kind": "Always", **more}
    for more in ({"name": "a", "generation": 3}, {"name": "b", "annotations": {"severity": "high"}})
)

_OF_TIME: Final = ("sequence", "timestamp", "durationNs", "queueDurationNs")
USER_FIELDS: Final = ("requestUsername", "requestUserUID", "requestUserGroups", "userInfo")


@dataclasses.dataclass(frozen=True)
class Offered:
    """An offered record."""

    process: str
    place: int
    """Among all that were."""
    seconds: float
    """When, since 1970."""
    record: dict[str, Any]
    """The expected record without its number and its times."""
    kept: bool


class Books:
    """All that was offered, by the records' names."""

    def __init__(self) -> None:
        self.offered: dict[str, Offered] = {}
        self.numbers: dict[tuple[str, int], str] = {}
        """The offered record of each number, by arrival."""
        self._names: dict[str, int] = {}

    def note(self, record: dict[str, Any], *, kept: bool = True) -> None:
        """A record is offered now."""
        place = len(self.offered)
        self.offered[record["id"]] = Offered(record["process"], place, time.time(), record, kept)

    def judge(self, record: dict[str, Any]) -> str:
        """Returns the fault of a record that arrived; empty if there is none."""
        name = record.get("id")
        offered = self.offered.get(str(name))
        if offered is None:
            return f"a record that nobody offered: {record}"
        key = (record["process"], record["sequence"])
        known = self.numbers.setdefault(key, str(name))
        first = self._names.setdefault(str(name), record["sequence"])
        if (known, first) != (name, record["sequence"]):
            return f"{known} as {key[1]}, and {name} as {first} and {key[1]}"
        if not offered.kept:
            return f"{name}, which a rule leaves out"
        wrong = {
            field: (record.get(field), offered.record.get(field))
            for field in {**record, **offered.record}
            if field not in _OF_TIME and record.get(field) != offered.record.get(field)
        }
        if "timestamp" in record:
            recorded_at = dt.datetime.fromisoformat(record["timestamp"]).timestamp()
            if (
                abs(recorded_at - offered.seconds) > 5e-6
                or not 249e6 < record["durationNs"] < 251e6
            ):
                wrong["timestamp"] = (record["timestamp"], record["durationNs"])
        return f"{name} with other contents than were offered: {wrong}" if wrong else ""

    def disordered(self) -> str:
        """Numbers that do not follow the order in which records were offered."""
        last: dict[str, Offered] = {}
        for (process, number), name in sorted(self.numbers.items()):
            offered, before = self.offered[name], last.get(process)
            if before is not None and offered.place < before.place:
                return f"{process} numbered {name} as {number}, behind what it was offered later"
            last[process] = offered
        return ""


class Server:
    """The random decisions of a server's process."""

    def __init__(self, loop: Loop, exporter: Exporter, books: Books) -> None:
        self.exporter = exporter
        self._chance = loop.random
        self._recorder = AdmissionRecorder(exporter)
        self._books = books
        self._requests = 0

    def decide(self) -> None:
        """An admission, or now and then an event; in the process's own context."""
        if self._chance.random() < 0.8:
            self._admit()
        else:
            self._happen()

    def _constant(self) -> dict[str, Any]:
        origin, labels = self.exporter.origin, self.exporter.settings.labels
        return {
            "specVersion": "1.0",
            "podUID": origin.pod_uid,
            "pod": origin.pod,
            "podNamespace": origin.namespace,
            "node": origin.node,
            "process": origin.process,
            **({"labels": labels} if labels else {}),
        }

    def _happen(self) -> None:
        text = "x" * self._chance.choice([1, 60, 300])
        body = {"eventType": "lifecycle", "id": self.exporter.decision_id(), "event": text}
        self._books.note({**self._constant(), **body})
        # As a recorder has its own events: behind what was decided before them.
        self.exporter.settle()
        self.exporter.offer(body)

    def _admit(self) -> None:
        chance = self._chance
        self._requests += 1
        text = "x" * chance.choice([1, 60, 300])
        labels = {"app": text} if chance.random() < 0.5 else None
        subject = {
            "kind": "ConfigMap",
            "metadata": {"name": "named", "labels": labels},
            "data": {"key": text},
        }
        deletes = chance.random() < 0.2
        user = {"username": "u", "uid": "7", "groups": ["g"]} if chance.random() < 0.8 else {}
        uid = f"r-{self._requests}"
        request: dict[str, Any] = {
            "uid": uid,
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": chance.choice(["", "n"]),
            "namespace": chance.choice(["shop", "kube-system"]),
            "operation": "DELETE" if deletes else "CREATE",
            "userInfo": user,
            "dryRun": chance.random() < 0.2,
            "oldObject" if deletes else "object": subject,
        }
        found = chance.choice([(), (), (), (0,), (1,), (0, 1)])
        responses = Responses(
            tuple(Result(TARGET, CONSTRAINTS[item], text, {"n": item}, "deny") for item in found),
            evaluated=2,
        )
        record = {
            **self._constant(),
            "eventType": "decision",
            "enforcementPoint": "validation.gatekeeper.sh",
            "requestUID": uid,
            "verdict": "deny" if found else "allow",
            "allowed": not found,
            "code": 403 if found else 200,
            "operation": request["operation"],
            "dryRun": request["dryRun"],
            "constraintsEvaluated": 2,
            "resourceGroup": "",
            "resourceAPIVersion": "v1",
            "resourceKind": "ConfigMap",
            "resourceNamespace": request["namespace"],
            "resourceName": request["name"] or "named",
            "resourceLabels": labels or {},
            "requestResource": request["resource"],
            "requestSubresource": "",
            "requestUsername": user.get("username", ""),
            "requestUserUID": user.get("uid", ""),
            "requestUserGroups": user.get("groups", []),
            "policyDigest": "",
            "policyRevision": 0,
        }
        if found:
            record["results"] = [_result(item, text) for item in found]
        kept = self._leave(record, request, subject, "oldObject" if deletes else "object")
        now = time.monotonic()
        answer = AdmissionResponse(uid, not found, 403 if found else 200, "", text)
        answer = self._recorder.answered(
            read_request(request), responses, None, now - 0.75, now - 0.25, answer
        )
        record["id"] = answer.decision_id
        self._books.note(record, kept=kept)

    def _leave(
        self, record: dict[str, Any], request: dict[str, Any], subject: dict[str, Any], name: str
    ) -> bool:
        """Applies the settings to a record; returns False if it is left out."""
        settings = self.exporter.settings
        if settings.include_objects:
            record["object"] = record["oldObject"] = record["requestOptions"] = None
            record[name] = {**subject, "data": {"key": "**masked**"}}
            record["userInfo"] = request["userInfo"]
            record["requestUsername"] = "**masked**"
            record["masked"] = [f"{name}.data.*", "requestUsername"]
        if not settings.include_user_info:
            for field in USER_FIELDS:
                record.pop(field, None)
        return not settings.rules.rules or request["namespace"] == "shop"


def _result(item: int, text: str) -> dict[str, Any]:
    return {
        "constraint": DESCRIBED[item],
        "template": "always",
        "target": TARGET,
        "enforcementAction": "deny",
        "enforcementActions": [],
        "message": text,
        "details": {"n": item},
        "cause": "violation",
    }


def settings_by_chance(loop: Loop, **bounds: Any) -> ExporterSettings:
    """An exporter's settings."""
    return ExporterSettings(**bounds, **loop.random.choice(SETTINGS))
