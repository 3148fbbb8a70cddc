"""The policies that change: copies of the library's, with a rule whose text and parameter move.

None of them says anything of the bodies that are asked. A Pod that names the
last word of a constraint is denied by it, with the revision of its template in
the message: so it is seen what is enforced.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from loadtest.bench import policies
from loadtest.changes.churn import Change
from tests.system.replicas import CONSTRAINTS, TEMPLATES

COPIED = ("K8sContainerLimits", "K8sAllowedRepos", "K8sPSPVolumeTypes", "K8sPSPAllowedUsers")
"""Large and small ones: 5.2, 1.0, 0.7 and 4.3 KB of Rego, with and without libraries."""

CONSTRAINTS_EACH = 3

TEMPLATE_EVERY = 10
"""Of 200 changes 20 are of templates."""

LABEL = "changes.waddle.dev/word"

# The steps of a constraint's life: absent after the last.
LIFE = ("create", "update", "update", "update", "delete")

RULE = """
violation[{"msg": msg}] {
  input.review.object.metadata.labels["%s"] == input.parameters.word
  msg := sprintf("revision %d: %%v", [input.parameters.word])
}
"""


@dataclass(slots=True)
class Constraint:
    """A constraint that changes, with the step of its life."""

    kind: str
    name: str
    spec: dict[str, Any]
    step: int
    word: str

    @property
    def exists(self) -> bool:
        """Whether it is there now."""
        return LIFE[self.step] != "delete"

    @property
    def path(self) -> str:
        """Returns the path of the constraint."""
        return f"{CONSTRAINTS}/{self.kind.lower()}/{self.name}"

    def document(self) -> dict[str, Any]:
        """The object with its word."""
        spec = copy.deepcopy(self.spec)
        spec.setdefault("parameters", {})["word"] = self.word
        return {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": self.kind,
            "metadata": {"name": self.name},
            "spec": spec,
        }


@dataclass(slots=True)
class Changing:
    """All that change, and what was last applied of each."""

    sources: list[dict[str, Any]]
    revisions: list[int]
    constraints: list[Constraint]
    number: int = 0
    """The number of changes."""

    _turns: dict[str, int] = field(default_factory=lambda: {"template": 0, "constraint": 0})

    @classmethod
    def begin(cls) -> "Changing":
        """Before the first change: every constraint is there."""
        templates, constraints = policies.read("p12")
        kinds = {one["spec"]["crd"]["spec"]["names"]["kind"]: one for one in templates}
        specs = {one["kind"]: one["spec"] for one in constraints}
        sources = [_renamed(kinds[kind]) for kind in COPIED]
        made = [
            Constraint(f"Changing{kind}", f"changing-{number}", specs[kind], number % 4, f"w{at}")
            for at, (number, kind) in enumerate(
                (number, kind) for number in range(CONSTRAINTS_EACH) for kind in COPIED
            )
        ]
        return cls(sources, [0] * len(sources), made)

    def templates(self) -> list[dict[str, Any]]:
        """All templates, as they are now."""
        return [self._template(at) for at in range(len(self.sources))]

    def changes(self) -> Iterator[Change]:
        """Yields changes without end."""
        while True:
            self.number += 1
            yield (
                self._change_template()
                if self.number % TEMPLATE_EVERY == 0
                else self._change_constraint()
            )

    def words(self) -> Iterator[tuple[str, str]]:
        """Each constraint's last word, and the message that denies it; empty where it is deleted."""
        revisions = {
            source["spec"]["crd"]["spec"]["names"]["kind"]: revision
            for source, revision in zip(self.sources, self.revisions, strict=True)
        }
        for one in self.constraints:
            yield one.word, f"revision {revisions[one.kind]}: {one.word}" if one.exists else ""

    def _template(self, at: int) -> dict[str, Any]:
        document = copy.deepcopy(self.sources[at])
        document["spec"]["targets"][0]["rego"] += RULE % (LABEL, self.revisions[at])
        return document

    def _change_template(self) -> Change:
        at = self._turn("template", len(self.sources))
        self.revisions[at] = self.number
        document = self._template(at)
        return Change("template", f"{TEMPLATES}/{document['metadata']['name']}", document)

    def _change_constraint(self) -> Change:
        one = self.constraints[self._turn("constraint", len(self.constraints))]
        one.step = (one.step + 1) % len(LIFE)
        if not one.exists:
            return Change("delete", one.path, None)
        one.word = f"w{self.number}"
        return Change(LIFE[one.step], one.path, one.document())

    def _turn(self, change: str, count: int) -> int:
        at = self._turns[change]
        self._turns[change] = (at + 1) % count
        return at


def _renamed(template: dict[str, Any]) -> dict[str, Any]:
    """A copy under another name, with the parameter that its rule reads."""
    document = copy.deepcopy(template)
    names = document["spec"]["crd"]["spec"]["names"]
    names["kind"] = f"Changing{names['kind']}"
    document["metadata"]["name"] = names["kind"].lower()
    schema = document["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]
    schema["properties"]["word"] = {"type": "string"}
    return document
