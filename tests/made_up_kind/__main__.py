"""``python -m tests.made_up_kind FOLDER``: the kind by its row alone, at every door and in a cluster."""

from webhook.policy_kinds import table

from tests.made_up_kind.excuse import EXCUSES  # isort: skip

table.POLICY_KINDS = (*table.POLICY_KINDS, EXCUSES)

# Modules that read the table are imported after it.
import asyncio  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import yaml  # noqa: E402

from tests.properties.doors.doors import (  # noqa: E402
    Files,
    differences,
    review_of,
    serve,
)
from tests.properties.doors.worlds import World, world  # noqa: E402
from tests.simulation import control_plane  # noqa: E402
from tests.webhook.cli.in_process import waddle  # noqa: E402
from tests.webhook.controllers.session import session  # noqa: E402
from webhook.api.admission import read_review  # noqa: E402
from webhook.console.sorts import category_of  # noqa: E402
from webhook.server import submission  # noqa: E402

CRDS = tuple(yaml.safe_load_all((Path(__file__).parent / "crds.yaml").read_text()))
SERVED = "excuses.example.com", "excuses"
STATUSES = "status.gatekeeper.sh", "excusepodstatuses"


def excuse(**spec: Any) -> dict[str, Any]:
    """An Excuse, of every object of the namespace ``web``."""
    kind = {"apiVersion": "excuses.example.com/v1", "kind": "Excuse"}
    return {**kind, "metadata": {"name": "web"}, "spec": spec or {"namespace": "web"}}


def objects(place: str) -> tuple[dict[str, Any], ...]:
    """A Deployment without an owner."""
    pod = {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    metadata = {"name": f"of-{place}", "namespace": place}
    spec = {"template": pod}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    return ({**kind, "metadata": metadata, "spec": spec},)


def made_up() -> World:
    """A template, a constraint on everything, and an Excuse of one namespace."""
    policies = [item for item in world(1).policies if item["kind"] == "Namespace"]
    schema = {"type": "object"}
    rego = 'package always\nviolation[{"msg": "always"}] { true }'
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "always"},
        "spec": {
            "crd": {
                "spec": {"names": {"kind": "Always"}, "validation": {"openAPIV3Schema": schema}}
            },
            "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": rego}],
        },
    }
    constraint = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Always",
        "metadata": {"name": "c"},
        "spec": {"match": {"kinds": [{"apiGroups": ["apps"], "kinds": ["Deployment"]}]}},
    }
    subjects = (*objects("web"), *objects("shop"))
    return World(1, (template, constraint, excuse(), *policies), subjects, subjects)


def at_doors(folder: Path) -> None:
    """Every door reads it, and finds what the server finds."""
    given = made_up()
    (folder / "server").mkdir()
    found = serve(Files(given, folder / "server"))
    assert found["of-shop"], "the constraint says nothing"
    assert found["of-web"] == frozenset(), "it is read from files, and has no effect"
    (folder / "doors").mkdir()
    differing = differences(given, folder / "doors")
    assert not differing, "\n".join(differing)


def refused(folder: Path) -> None:
    """A broken one is refused by the webhook, and told of by who reads files."""
    request = review_of(excuse(nothing=1) | {"metadata": {"name": "web", "namespace": ""}})
    checks: Any = None
    fault = submission.check(read_review(request), checks)
    assert fault is not None
    assert fault.code == 422
    assert "Excuse web has no spec.namespace" in fault.message
    broken = folder / "broken.yaml"
    broken.write_text(yaml.safe_dump(excuse(nothing=1)))
    for command in (("check", "-f", broken), ("test", "-f", broken)):
        run = waddle(*command)
        assert run.returncode != 0
        assert "Excuse web has no spec.namespace" in run.stdout + run.stderr, run
    assert category_of(excuse()) == "excuse"


async def followed(folder: Path) -> None:
    """A replica follows it, has its last good revision in force, and says so."""
    async with session(folder, "webhook", "status") as replica:
        replica.make(*SERVED, excuse())
        entry: list[dict[str, Any]] = []

        def says(generation: int, *, errors: bool) -> bool:
            entry[:] = replica.get(*SERVED, "web").get("status", {}).get("byPod", ())
            return bool(entry) and (
                entry[0]["observedGeneration"],
                entry[0]["activeGeneration"],
                "errors" in entry[0],
            ) == (generation, 1, errors)

        def conditions() -> set[str]:
            held = replica.get(*SERVED, "web")["status"].get("conditions", ())
            return {one["type"] for one in held if one["status"] == "True"}

        await replica.until(lambda: says(1, errors=False), "in force, and told")
        replica.change(*SERVED, "web", spec={"nothing": 1})
        await replica.until(lambda: says(2, errors=True), "broken, and the last good one in force")
        await replica.until(lambda: "Error" in conditions(), "a condition that says so")
        replica.drop(*SERVED, "web")
        await replica.until(lambda: not replica.all(*STATUSES), "no status of what is gone")
        revision = replica.serving.revision
        assert revision is not None
        assert revision.policies.stages == ()


def main() -> None:
    """All of it; ends with an error where the kind is not as any other."""
    folder, began = Path(sys.argv[1]), time.monotonic()
    with_own = (*control_plane.manifests(), *CRDS)
    control_plane.manifests = lambda: with_own  # type: ignore[assignment]  # an installation with its CRDs
    at_doors(folder)
    refused(folder)
    asyncio.run(followed(folder))
    print(f"as any other kind, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
