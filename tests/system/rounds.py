"""Rounds: a policy of the tests' own goes the whole way of a policy, by every program there is.

That nobody writes any more is not told by a clock: a program that is slow looks like one that
rests. Something newer is let go by everybody instead. Each program takes what it watches in its
order, and does first what was due first; so who had something to write has written it once it
has the newer policy in force and has said so. What only time brings (turns, doubts, what is
compared again each minute) is for the simulated worlds, whose time is their own.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from tests.patience import until
from tests.system.replicas import (
    CONSTRAINTS,
    CRD_PATH,
    TEMPLATES,
    Plane,
    constraint,
    template,
    try_request,
)

ROUNDS_QUIET = 3
"""In a row, in which nothing else is written: each of two who fight has seen the other's last word
in the first, and would have written in the next."""

ROUNDS_MAX = 40
"""Then whoever writes is not going to end; a start of three replicas is over within five."""

STATUSES = "/apis/status.gatekeeper.sh/v1beta1"
PREFIX = "round"

_numbers = itertools.count(1)


class Policy(Protocol):
    """A template and a constraint of the same name, both with a word."""

    def documents(self, kind: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns template and constraint; both differ for each word."""
        ...

    def has_passed(self, name: str, word: str) -> bool:
        """Whether all that else comes of them is there; statuses and byPod have said it by now."""
        ...

    def has_gone(self, name: str) -> bool:
        """Whether nothing of it is left, after its template was deleted."""
        ...


@dataclass(frozen=True, slots=True)
class InRego:
    """A template in Rego; its CRD's schema has the word too, so that each round writes it."""

    plane: Plane

    def documents(self, kind: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns template and constraint, as :class:`Policy` has it."""
        made = template(kind)
        schema = made["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]
        schema["properties"][word] = {"type": "string"}
        return made, constraint(kind.lower(), word, kind)

    def has_passed(self, name: str, word: str) -> bool:
        """Statuses and byPod say all."""
        return True

    def has_gone(self, name: str) -> bool:
        """Whether the CRD is."""
        crd = f"{CRD_PATH}/{name}.constraints.gatekeeper.sh"
        return try_request(self.plane.api, "GET", crd) is None


class Rounds:
    """Rounds of one policy, which stays from one rest to the next."""

    def __init__(self, plane: Plane, policy: Policy | None = None) -> None:
        self._plane = plane
        self._policy = policy or InRego(plane)
        self._kind = f"{PREFIX.title()}{next(_numbers)}"
        self._name = self._kind.lower()

    def close(self) -> None:
        """Take the policy away."""
        self._plane.delete_template(self._name)

    def have_gone(self) -> bool:
        """Whether nothing is left of the policy that was taken away."""
        return self._policy.has_gone(self._name)

    def rest(
        self,
        names: Iterable[str],
        written: Callable[[], list[str]],
        *,
        shown: Iterable[str] | None = None,
    ) -> list[str]:
        """As the function, with what was left of the last time."""
        names = sorted(names)
        shown = names if shown is None else sorted(shown)
        before, quiet = written(), 0
        for _ in range(ROUNDS_MAX):
            self._go(names, shown)
            after = written()
            quiet = quiet + 1 if after == before else 0
            if quiet == ROUNDS_QUIET:
                return after
            news, before = Counter(after) - Counter(before), after
        raise AssertionError(f"they write and write: {dict(news)}")

    def _go(self, names: list[str], shown: list[str]) -> None:
        """Let a newer policy go by everybody."""
        word = f"round{next(_numbers)}"
        made, of_it = self._policy.documents(self._kind, word)
        first = self._plane.put_template(made)
        second = self._plane.put_constraint(of_it)
        for kind, path, document in (
            ("constrainttemplatepodstatuses", f"{TEMPLATES}/{self._name}", first),
            ("constraintpodstatuses", f"{CONSTRAINTS}/{self._name}/{self._name}", second),
        ):
            self._await(kind, path, document["metadata"]["generation"], names, shown)
        until(lambda: self._policy.has_passed(self._name, word), f"{word} has passed")

    def _await(
        self, kind: str, path: str, generation: int, names: list[str], shown: list[str]
    ) -> None:
        until(
            lambda: self._has_statuses(kind, generation, names),
            lambda: f"all of {names} say {generation} of {path}: {self._entries(kind)}",
        )
        until(
            lambda: self._is_shown(path, generation, shown), f"byPod of {path} is at {generation}"
        )

    def _has_statuses(self, kind: str, generation: int, names: list[str]) -> bool:
        entries = [one for one in self._entries(kind) if one["id"] in names]
        return sorted(one["id"] for one in entries) == names and all(
            one.get("observedGeneration") == generation and one.get("enforced", True)
            for one in entries
        )

    def _entries(self, kind: str) -> list[dict[str, Any]]:
        items = self._plane.api.request("GET", f"{STATUSES}/{kind}")["items"]
        return [one["status"] for one in items if self._name in one["metadata"]["name"]]

    def _is_shown(self, path: str, generation: int, shown: list[str]) -> bool:
        entries = self._plane.by_pod(path)
        return sorted(entry["id"] for entry in entries) == shown and all(
            entry.get("observedGeneration") == generation for entry in entries
        )


def others(written: list[str]) -> list[str]:
    """Returns the writes that do not concern the rounds' own policies."""
    return [line for line in written if PREFIX not in line]


def rest(
    plane: Plane,
    names: Iterable[str],
    written: Callable[[], list[str]] | None = None,
    *,
    shown: Iterable[str] | None = None,
    policy: Policy | None = None,
) -> list[str]:
    """Go rounds until several in a row have seen nothing else written; all that was written so far.

    By the Pods of these names; ``shown`` are those in byPod, where these are not all. ``written``
    gives what was written, where that is not what replicas wrote.
    """
    with closing(Rounds(plane, policy)) as rounds:
        rested = rounds.rest(names, written or (lambda: others(plane.writes())), shown=shown)
    until(rounds.have_gone, "nothing is left of the rounds")
    return rested
