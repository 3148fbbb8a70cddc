"""Policies that want all of a replica's time or memory, and the requests that they match."""

import json
from pathlib import Path
from typing import Any

import yaml

BODIES = Path(__file__).parents[1] / "bodies"

REGO = {
    # Ten billion sums.
    "endless": """
        violation[{"msg": msg}] {
          numbers := numbers.range(1, 2000)
          sums := [s | x := numbers[_]; y := numbers[_]; z := numbers[_]; s := x + y + z]
          msg := sprintf("%v", [count(sums)])
        }
    """,
    # Ten million violations, each with the whole object in its message.
    "output": """
        violation[{"msg": msg, "details": input.review.object}] {
          x := numbers.range(1, 3000)[_]
          y := numbers.range(1, 3000)[_]
          msg := sprintf("%v %v %v", [x, y, input.review.object])
        }
    """,
    # Rego has no recursion, so this is what recursion would do: 3^20 calls, 20 deep.
    "recursion": "\n".join(
        [
            """
        violation[{"msg": msg}] { msg := sprintf("%v", [f20(1)]) }
        f0(x) = y { y := x + 1 }
    """,
            *(
                f"f{n}(x) = y {{ y := f{n - 1}(3 * x) + f{n - 1}(3 * x + 1) + f{n - 1}(3 * x + 2) }}"
                for n in range(1, 21)
            ),
        ]
    ),
    # Backtracking would never end; linear time has a megabyte to go through, again and again.
    "pattern": """
        violation[{"msg": "matched"}] {
          text := replace(sprintf("%0100000d", [0]), "0", "aaaaaaaaaa")
          i := numbers.range(1, 10000)[_]
          regex.match(sprintf("^(a+)+(a|aa)+(.*a){20}[%v]$", [i]), text)
        }
    """,
    # Strings that double, and arrays of them: a petabyte in the end.
    "memory": "\n".join(
        [
            """
        violation[{"msg": msg}] {
          xs := [s | numbers.range(1, 1000)[_]; s := g40(["x"])]
          msg := sprintf("%v", [count(xs)])
        }
        g0(x) = x
    """,
            *(f"g{n}(x) = y {{ z := g{n - 1}(x); y := array.concat(z, z) }}" for n in range(1, 41)),
        ]
    ),
}


def documents() -> list[dict[str, Any]]:
    """A template and a constraint that denies for each, about ConfigMaps with its label."""
    found: list[dict[str, Any]] = []
    for name, rego in REGO.items():
        kind = f"Hostile{name.title()}"
        found += [
            {
                "apiVersion": "templates.gatekeeper.sh/v1",
                "kind": "ConstraintTemplate",
                "metadata": {"name": kind.lower()},
                "spec": {
                    "crd": {"spec": {"names": {"kind": kind}}},
                    "targets": [
                        {
                            "target": "admission.k8s.gatekeeper.sh",
                            "rego": f"package hostile\n{rego}",
                        }
                    ],
                },
            },
            {
                "apiVersion": "constraints.gatekeeper.sh/v1beta1",
                "kind": kind,
                "metadata": {"name": name},
                "spec": {
                    "match": {
                        "kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}],
                        "labelSelector": {"matchLabels": {"hostile": name}},
                    }
                },
            },
        ]
    return found


def write(folder: Path) -> list[Path]:
    """The policies into a folder, beside which a body for each of them is written."""
    (folder / "hostile.yaml").write_text(yaml.safe_dump_all(documents()))
    bodies = []
    for name in REGO:
        review = json.loads((BODIES / "pod.json").read_text())
        request = review["request"]
        request["kind"] = {"group": "", "version": "v1", "kind": "ConfigMap"}
        request["resource"] = {"group": "", "version": "v1", "resource": "configmaps"}
        request["object"] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": request["namespace"],
                "labels": {"hostile": name},
            },
        }
        body = folder.parent / f"{name}.json"
        body.write_text(json.dumps(review))
        bodies.append(body)
    return bodies
