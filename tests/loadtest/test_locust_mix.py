"""The mix of requests, and that its expected answers are Gatekeeper's."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loadtest.locust.mix import LARGE_BYTES, MIB, POLICY_SETS, mix, standing_objects
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs

LOADTEST = Path(__file__).parents[2] / "loadtest"


def review_of(case: Any) -> dict[str, Any]:
    before, after = case.review("payments")
    found: dict[str, Any] = json.loads(before + b"u-1" + after)
    return found


@pytest.mark.parametrize("policies", POLICY_SETS)
def test_gatekeeper_s_own_engine_gives_the_expected_messages(
    program: Programs, policies: str, tmp_path: Path
) -> None:
    """Each object of the mix, judged by gator with the set that is served."""
    cases = mix(policies)
    found: dict[str, list[tuple[str, str]]] = {}
    names = {}
    for number, case in enumerate(cases):
        if case.name.endswith("MiB"):
            continue  # gator prints the object with each result
        obj = review_of(case)["request"]["object" if case.obj else "oldObject"]
        obj["metadata"] |= {"name": f"case-{number}"}
        names[f"case-{number}"] = case.name
        found[case.name] = []
        (tmp_path / f"{number}.json").write_text(json.dumps(obj))
    finished = subprocess.run(
        [
            program("gator"),
            "test",
            f"--filename={LOADTEST / 'policies' / policies}",
            f"--filename={LOADTEST / 'locust' / 'policies'}",
            f"--filename={tmp_path}",
            "--output=json",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    for result in json.loads(finished.stdout):
        line = f"[{result['constraint']['metadata']['name']}] {result['msg']}"
        name = names[result["violatingObject"]["metadata"]["name"]]
        found[name].append((result["enforcementAction"], line))
    for case in cases:
        if case.name in found:
            denials = sorted(line for action, line in found[case.name] if action == "deny")
            warnings = sorted(line for action, line in found[case.name] if action == "warn")
            assert "\n".join(denials) == case.expected.message, case.name
            assert bool(denials) is not case.expected.allowed, case.name
            assert tuple(warnings) == case.expected.warnings, case.name


def test_the_mix_has_every_kind_of_request() -> None:
    """Good and bad, created, updated and deleted, warned of, large and very large."""
    cases = {case.name: case for case in mix("p12")}
    operations = {(case.operation, case.subject["kind"]) for case in cases.values()}
    assert operations == {
        ("CREATE", "Pod"),
        *(
            (verb, kind)
            for verb in ("CREATE", "UPDATE", "DELETE")
            for kind in ("Deployment", "ConfigMap")
        ),
    }
    assert any(not case.expected.allowed for case in cases.values())
    assert any(case.expected.warnings for case in cases.values())
    large, largest = (
        len(json.dumps(cases[name].subject)) for name in ("pod 20 KB", "config map 1 MiB")
    )
    assert LARGE_BYTES <= large < LARGE_BYTES * 1.3
    assert MIB * 0.95 < largest < MIB * 1.05


def test_reviews_are_what_an_api_server_sends() -> None:
    """Updates have both objects and they differ, deletes have the old one only."""
    for case in mix("p12"):
        request = review_of(case)["request"]
        assert request["uid"] == "u-1"
        assert request["namespace"] == case_namespace(request)
        objects = (request["object"], request["oldObject"])
        if case.operation == "CREATE":
            assert objects[1] is None
        elif case.operation == "UPDATE":
            assert None not in objects
            assert objects[0] != objects[1]
        else:
            assert objects[0] is None
        recorded = LOADTEST / "bodies" / f"{case.name}.json"
        if recorded.exists():
            assert request["object"] == json.loads(recorded.read_text())["request"]["object"]


def case_namespace(request: dict[str, Any]) -> str:
    obj = request["object"] or request["oldObject"]
    return str(obj["metadata"]["namespace"])


def test_requests_to_an_api_server_write_nothing() -> None:
    """Every request is a dry run; only updates and deletes need an object, and it is made."""
    standing = {
        (path, json.loads(body)["metadata"]["name"]) for path, body in standing_objects("ns")
    }
    for case in mix("p12"):
        method, path, body = case.call("ns")
        plain, _, query = path.partition("?")
        assert query == "dryRun=All"
        assert method == {"CREATE": "POST", "UPDATE": "PUT", "DELETE": "DELETE"}[case.operation]
        assert (body is None) == (method == "DELETE")
        if method != "POST":
            collection, _, name = plain.rpartition("/")
            assert (collection, name) in standing
        if body is not None:
            assert "uid" not in json.loads(body)["metadata"]


def test_an_unknown_set_of_policies_is_an_error_that_names_the_known() -> None:
    with pytest.raises(ValueError, match="p1, p12, p100"):
        mix("p13")
