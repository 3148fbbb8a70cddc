"""Counts of the enforcement benchmark."""

import json

from loadtest.enforcement.report import summary
from loadtest.enforcement.requests import counted


def line(verb, resource, agent="waddle/0.1.0", **reference):
    return json.dumps(
        {"verb": verb, "userAgent": agent, "objectRef": {"resource": resource, **reference}}
    )


def test_the_95th_percentile_is_the_nearest_rank():
    assert summary(range(1, 41)) == {"p50": 20.5, "p95": 38, "min": 1, "max": 40}
    assert summary([7]) == {"p50": 7, "p95": 7, "min": 7, "max": 7}


def test_writes_are_counted_by_verb_and_resource_and_reads_and_others_are_not():
    kind = {"apiGroup": "constraints.gatekeeper.sh", "subresource": "status"}
    lines = [
        line("create", "constraintpodstatuses"),
        line("create", "constraintpodstatuses"),
        line("update", "changing", **kind),
        line("watch", "changing", **kind),
        line("create", "constraintpodstatuses", agent="gatekeeper/v3"),
    ]
    assert counted(lines, "waddle/") == {
        "create constraintpodstatuses": 2,
        "update constraints/status": 1,
    }
