"""Rounds: a policy of the tests' own goes the whole way of a policy, by every program there is.

That nobody writes any more is not told by a clock: a program that is slow looks like one that
rests. Something newer is let go by everybody instead. Each program takes what it watches in its
order, and does first what was due first; so who had something to write has written it once it
has the newer policy in force and has said so. What only time brings (turns, doubts, what is
compared again each minute) is for the simulated worlds, whose time is their own.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from tests.cluster import ApiError
from tests.patience import until
from tests.system.replicas import CONSTRAINTS, TEMPLATES, Plane, constraint, template

ROUNDS_QUIET = 3
"""In a row, in which nothing else is written: each of two who fight has seen the other's last word
in the first, and would have written in the next."""

ROUNDS_MAX = 40
"""Then whoever writes is not going to end; a start of three replicas is over within five."""

STATUSES = "/apis/status.gatekeeper.sh/v1beta1"
PREFIX = "round"

_numbers = itertools.count(1)

Policy = Callable[[str, str], tuple[dict[str, Any], dict[str, Any]]]
"""A template of a kind and a constraint of its name, both with a word: another for another word."""


def in_rego(kind: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema has the word as well, so that the constraints' CRD is written in each round."""
    made = template(kind)
    schema = made["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]
    schema["properties"][word] = {"type": "string"}
    return made, constraint(kind.lower(), word, kind)


class Rounds:
    """Rounds of one policy, by the Pods of these names."""

    def __init__(
        self,
        plane: Plane,
        names: Sequence[str],
        *,
        shown: Sequence[str] | None = None,
        policy: Policy = in_rego,
        has_passed: Callable[[str, str], bool] = lambda name, word: True,
    ) -> None:
        """``shown`` are those in byPod, where these are not all.

        ``has_passed`` says of the policy's name and word what else must be so.
        """
        self._plane = plane
        self._names = sorted(names)
        self._shown = self._names if shown is None else sorted(shown)
        self._policy = policy
        self._has_passed = has_passed
        self._kind = f"{PREFIX.title()}{next(_numbers)}"
        self._name = self._kind.lower()

    def close(self) -> None:
        """Take the policy away."""
        self._plane.delete_template(self._name)

    def go(self) -> None:
        """Let a newer policy go by everybody."""
        word = f"round{next(_numbers)}"
        made, of_it = self._policy(self._kind, word)
        first = self._plane.put_template(made)
        second = self._put(of_it)
        self._go_through("constrainttemplatepodstatuses", f"{TEMPLATES}/{self._name}", first)
        path = f"{CONSTRAINTS}/{self._name}/{self._name}"
        self._go_through("constraintpodstatuses", path, second)
        until(lambda: self._has_passed(self._name, word), f"{word} has passed")

    def _put(self, document: dict[str, Any]) -> dict[str, Any]:
        """Apply the constraint, as soon as no policy of the API server's own is in its way.

        Gatekeeper's refuse what they are about until the API server knows the kind of their
        parameters.
        """
        made: dict[str, Any] = {}

        def is_taken() -> bool:
            try:
                made.update(self._plane.put_constraint(document))
            except ApiError as error:
                if "failed to configure policy" not in error.body:
                    raise
                return False
            return True

        until(is_taken, "the constraint is taken")
        return made

    def _go_through(self, kind: str, path: str, document: dict[str, Any]) -> None:
        generation = document["metadata"]["generation"]

        def said() -> str:
            return f"every program says {generation} of {path}: {self._entries(kind)}"

        until(lambda: self._is_said(kind, generation), said)
        until(lambda: self._is_shown(path, generation), f"byPod of {path} is at {generation}")

    def _is_said(self, kind: str, generation: int) -> bool:
        entries = [one for one in self._entries(kind) if one["id"] in self._names]
        return sorted(one["id"] for one in entries) == self._names and all(
            one.get("observedGeneration") == generation and one.get("enforced", True)
            for one in entries
        )

    def _entries(self, kind: str) -> list[dict[str, Any]]:
        items = self._plane.api.request("GET", f"{STATUSES}/{kind}")["items"]
        return [one["status"] for one in items if self._name in one["metadata"]["name"]]

    def _is_shown(self, path: str, generation: int) -> bool:
        entries = self._plane.by_pod(path)
        return sorted(entry["id"] for entry in entries) == self._shown and all(
            entry.get("observedGeneration") == generation for entry in entries
        )


def others(written: list[str]) -> list[str]:
    """What was written of anything but rounds' own policies."""
    return [line for line in written if PREFIX not in line]


def rest(
    plane: Plane,
    names: Sequence[str],
    written: Callable[[], list[str]] | None = None,
    **options: Any,
) -> list[str]:
    """Go rounds until several in a row have seen nothing else written; all that was written so far.

    ``written`` gives it, where that is not what replicas wrote.
    """
    written = written or (lambda: others(plane.writes()))
    before, quiet = written(), 0
    with closing(Rounds(plane, names, **options)) as made:
        for _ in range(ROUNDS_MAX):
            made.go()
            after = written()
            quiet = quiet + 1 if after == before else 0
            if quiet == ROUNDS_QUIET:
                return after
            news, before = Counter(after) - Counter(before), after
    raise AssertionError(f"they write and write: {dict(news)}")
