"""``pathTests``: a mutator assigns only where its path exists, or where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from webhook.mutation.errors import InvalidMutator
from webhook.mutation.location import Location, canonical, parse, quoted

MUST_EXIST: Final = "MustExist"
MUST_NOT_EXIST: Final = "MustNotExist"


class Allowed(NamedTuple):
    """The values allowed at one node of a location."""

    present: bool
    missing: bool


ANYTHING: Final = Allowed(present=True, missing=True)
_ONLY_MISSING: Final = Allowed(present=False, missing=True)


def only_where_missing(location: Location) -> tuple[Allowed, ...]:
    """Tests that hold only where nothing stands at the location yet."""
    return (ANYTHING,) * (len(location) - 1) + (_ONLY_MISSING,)


def read_path_tests(location: Location, tests: Sequence[Any], owner: str) -> tuple[Allowed, ...]:
    """Reads the tests of each node of a location; raises :class:`InvalidMutator`.

    ``owner`` is the kind and name of the mutator. The error for a refused order of a child's and
    its parent's tests names their places in the list, as in Gatekeeper.
    """
    pairs: list[tuple[Location, str]] = []
    for test in tests:
        if type(test) is not dict:
            raise InvalidMutator(f"{owner} has a path test that is not an object")
        path = test.get("subPath") or ""
        condition = test.get("condition") or ""
        if type(path) is not str or type(condition) is not str:
            raise InvalidMutator(f"{owner} has a path test with fields of a wrong type")
        try:
            pairs.append((parse(path), condition))
        except InvalidMutator as error:
            raise InvalidMutator(
                f"problem parsing sub path `{path}` for {owner}: {error}"
            ) from None
    for nodes, _ in pairs:
        if nodes != location[: len(nodes)]:
            raise InvalidMutator(
                "all subpaths must be a prefix of the `location` value of the mutation: "
                f"subpath {quoted(canonical(nodes))} is not a prefix of "
                f"location {quoted(canonical(location))}"
            )
    conditions: dict[int, str] = {len(nodes): condition for nodes, condition in pairs}
    for nodes, condition in pairs:
        if conditions[len(nodes)] != condition:
            raise InvalidMutator(
                f"conflicting path test conditions: path {quoted(canonical(nodes))} is marked "
                f"both {MUST_EXIST} and {MUST_NOT_EXIST}"
            )
    _check_order(pairs)
    return tuple(_allowed(conditions.get(depth)) for depth in range(1, len(location) + 1))


def _check_order(tests: list[tuple[Location, str]]) -> None:
    absent = [place for place, (_, condition) in enumerate(tests) if condition == MUST_NOT_EXIST]
    present = [place for place, (_, condition) in enumerate(tests) if condition == MUST_EXIST]
    if absent and present and present[-1] > absent[0]:
        child, parent = tests[present[-1]][0], tests[absent[0]][0]
        raise InvalidMutator(
            f"conflicting path test conditions: path {quoted(canonical(child))} is marked "
            f"{MUST_EXIST} but parent {quoted(canonical(parent))} {MUST_NOT_EXIST}"
        )


def _allowed(condition: str | None) -> Allowed:
    if condition is None:
        return ANYTHING
    # Of any other text, which the kind's schema keeps out of a cluster, neither holds.
    return Allowed(condition == MUST_EXIST, condition == MUST_NOT_EXIST)
